"""`.pt`: what torch.save makes of a state dict, a zip of one pickle and the storages that it speaks of."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from service.files import zipped
from service.files.errors import BadFile
from service.files.pickled import DAMAGED, HOW, MORE, NOT_TAKEN, View, damaged, unpickle
from service.files.tensors import ITEM, Held, Tensor, check_dtype, check_number, is_name
from service.files.upload import Upload
from service.files.words import quoted, several, size
from service.files.zipped import Entry

MAX_ENTRIES = 20_000
MAX_PICKLE = 4 << 20
PARTS = re.compile(
    r"data\.pkl|version|byteorder|data/[0-9]{1,9}|\.format_version|\.storage_alignment|\.data/serialization_id"
)
#: Where people keep the state dict in a checkpoint of more things.
USUAL_KEYS = ("state_dict", "model_state_dict", "model", "model_state")
UPLOAD = "upload that"


def read_pt(upload: Upload) -> Held:
    parts = _parts(zipped.entries(upload, MAX_ENTRIES))
    _check_byte_order(upload, parts)
    if parts["data.pkl"].size > MAX_PICKLE:
        raise BadFile(MORE, f"its pickle takes {size(parts['data.pkl'].size)}; {HOW}")
    state = _state_dict(unpickle(_content(upload, parts["data.pkl"])))
    check_number(list(state), several(state))
    return Held("pt", {}, [_tensor(name, view, parts) for name, view in state.items()])


def _parts(entries: list[Entry]) -> dict[str, Entry]:
    """The entries without the folder that they all lie in."""
    _refuse_other_kinds([entry.name for entry in entries])
    tops = {entry.name.partition("/")[0] for entry in entries}
    parts = {entry.name.partition("/")[2]: entry for entry in entries}
    if len(tops) != 1 or "data.pkl" not in parts:
        raise BadFile(
            "not a checkpoint",
            f"the zip holds {several(e.name for e in entries)} and not one folder with a data.pkl; {HOW}",
        )
    strange = [entry.name for name, entry in parts.items() if not PARTS.fullmatch(name)]
    if strange:
        raise BadFile(MORE, f"beside the tensors there is {several(strange)}; {HOW}")
    if packed := [entry.name for entry in entries if entry.method != zipped.STORED]:
        raise BadFile("the .pt is compressed", f"{several(packed)}: torch.save stores; upload the file that it wrote")
    return parts


def _refuse_other_kinds(names: Sequence[str]) -> None:
    if "bundle.json" in names:
        raise BadFile("this is a bundle", "POST /v1/bundles takes it in, with its capsules and its lineage")
    inner = {name.partition("/")[2] for name in names} | set(names)
    if any(name == "constants.pkl" or name.startswith("code/") for name in inner):
        how = (
            f"TorchScript is code. Where you trust it: torch.save(torch.jit.load(path).state_dict(), new) and {UPLOAD}"
        )
    elif any(name == "archive_format" or name.startswith("serialized_exported_program") for name in inner):
        how = f"an exported program (.pt2) is loaded by unpickling. {HOW} and {UPLOAD}"
    elif any(name == ".data/extern_modules" or name.endswith(".py") for name in inner):
        how = f"a torch.package runs the code that it holds. {HOW} and {UPLOAD}"
    else:
        return
    raise BadFile(NOT_TAKEN, how)


def _check_byte_order(upload: Upload, parts: Mapping[str, Entry]) -> None:
    entry = parts.get("byteorder")
    if entry is not None and (entry.size > 10 or _content(upload, entry) != b"little"):
        raise BadFile(NOT_TAKEN, "its numbers are not little-endian: load it and save it on another machine")


def _content(upload: Upload, entry: Entry) -> bytes:
    """torch can be told to save no checksums; then they are 0."""
    return bytes(upload.bytes_at(entry.begin, entry.size)) if entry.crc == 0 else zipped.read(upload, entry)


def _state_dict(value: object) -> dict[str, View]:
    if not isinstance(value, dict):
        raise BadFile("no state dict", f"the file holds {_kind(value)}; {HOW}")
    if _is_state_dict(value):
        return value
    found = {key: state for key in USUAL_KEYS if _is_state_dict(state := value.get(key))}
    if len(found) > 1:
        raise BadFile("two state dicts", f"{several(found)} are both one: save the one that you mean by itself")
    if not found:
        holds = several(str(key) for key in value) or "nothing"
        raise BadFile(
            "no state dict", f"the file holds {holds}, and none of {', '.join(USUAL_KEYS)} in it is one; {HOW}"
        )
    (state,) = found.values()
    return state


def _is_state_dict(value: object) -> TypeGuard[dict[str, View]]:
    if not isinstance(value, dict) or not value:
        return False
    return all(type(name) is str and type(tensor) is View for name, tensor in value.items())


def _kind(value: object) -> str:
    return "a single tensor" if isinstance(value, View) else f"a {type(value).__name__}"


def _tensor(name: str, view: View, parts: Mapping[str, Entry]) -> Tensor:
    if not is_name(name):
        raise BadFile(DAMAGED, f"{quoted(name)} is not a name for a tensor")
    dtype = view.storage.dtype
    check_dtype(name, dtype, view.shape)
    entry = parts.get(f"data/{view.storage.key}")
    if entry is None or entry.size != view.storage.length * ITEM[dtype]:
        raise damaged(f"the storage of {quoted(name)} is missing, or not as long as the pickle says")
    return Tensor(name, dtype, view.shape, view.strides, entry.begin + view.offset * ITEM[dtype], view.span)
