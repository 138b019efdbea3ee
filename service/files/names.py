"""Whose tensor is whose, where a checkpoint calls them differently than we do."""

from collections import Counter
from collections.abc import Collection, Mapping

from flashcards.contract.architecture import TensorShape
from service.files.errors import BadFile
from service.files.words import clipped, quoted, several, sides

UNFIT = "the weights do not fit the architecture"
AMBIGUOUS = "the tensors can be matched in more than one way"

Tensors = Mapping[str, TensorShape]


def match(
    ours: Tensors, theirs: Tensors, *, ordered: bool, whose: str, counters: Collection[str] = ()
) -> dict[str, str]:
    """Their name -> ours, in our order. `ordered`: theirs come in the order in which the network was written down.

    `counters` are those of theirs that are whole numbers. A file may do without: older torch wrote none.
    """
    if not counters:
        ours = {name: shape for name, shape in ours.items() if shape != ()}
    names = _matched(ours, theirs, ordered, whose)
    for name, our_name in names.items():
        if (name in counters) != (ours[our_name] == ()):
            wanted = "a whole number, int64" if ours[our_name] == () else "a float"
            raise BadFile(UNFIT, f"{quoted(our_name)} of {whose} is {wanted}, and {quoted(name)} of the file is not")
    return names


def _matched(ours: Tensors, theirs: Tensors, ordered: bool, whose: str) -> dict[str, str]:
    if ours.keys() == theirs.keys():
        return _checked({name: name for name in ours}, ours, theirs, whose)
    if prefix := _common_prefix(ours, theirs):
        return _checked({prefix + name: name for name in ours}, ours, theirs, whose)
    if Counter(ours.values()) != Counter(theirs.values()):
        raise _misfit(ours, theirs, whose)
    in_order = dict(zip(theirs, ours, strict=True))
    if ordered and list(ours.values()) == list(theirs.values()) and not _contradicts(in_order, ours):
        return in_order
    raise BadFile(AMBIGUOUS, f"{_why(ordered, whose)}\n{_side_by_side(ours, theirs)}")


def _common_prefix(ours: Tensors, theirs: Tensors) -> str | None:
    """`module.`, `_orig_mod.` and the like: one word before every name."""
    first = next(iter(ours))
    for name in theirs:
        prefix = name.removesuffix(first)
        if prefix != name and {prefix + each for each in ours} == theirs.keys():
            return prefix
    return None


def _contradicts(in_order: Mapping[str, str], ours: Tensors) -> bool:
    """A name of ours that stands for another tensor there: order and names say two things."""
    return any(theirs in ours and theirs != name for theirs, name in in_order.items())


def _checked(names: dict[str, str], ours: Tensors, theirs: Tensors, whose: str) -> dict[str, str]:
    for name, our_name in names.items():
        if theirs[name] != ours[our_name]:
            wanted, got = sides(ours[our_name]), sides(theirs[name])
            raise BadFile(UNFIT, f"{quoted(our_name)} of {whose} is {wanted}, and the file has {got}")
    return names


def _misfit(ours: Tensors, theirs: Tensors, whose: str) -> BadFile:
    missing, unexpected = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    parts = (("missing", missing), ("not expected", unexpected))
    words = "; ".join(f"{what}: {several(names)}" for what, names in parts if names)
    return BadFile(UNFIT, f"against {whose}, {words}")


def _why(ordered: bool, whose: str) -> str:
    if ordered:
        return f"the shapes are those of {whose}, but neither the names nor their order: rename the tensors to ours"
    how = "rename the tensors to ours, or upload the .pt, which keeps the order of the layers"
    return f"the shapes are those of {whose}, but not the names, and safetensors sorts by name: {how}"


def _side_by_side(ours: Tensors, theirs: Tensors) -> str:
    left = ["ours", *(f"{name} {sides(shape)}" for name, shape in ours.items())]
    right = ["theirs", *(f"{clipped(name)} {sides(shape)}" for name, shape in theirs.items())]
    width = max(map(len, left))
    return "\n".join(f"{mine.ljust(width)} | {other}" for mine, other in zip(left, right, strict=True))
