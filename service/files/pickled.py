"""The pickle inside a .pt file, run by a machine that can make plain values and marks of tensors, and nothing else.

It knows the instructions that torch.save writes for a state dict. There is no import, no call and no attribute in it:
a name such as `torch._utils _rebuild_tensor_v2` is looked up in a table of our own, and makes a View.
"""

import re
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from service.files.errors import BadFile
from service.files.words import quoted

MAX_STEPS = 200_000
MAX_DIMENSIONS = 8
MAX_COUNT = 2**60
MAX_LONG = 8  # bytes of a whole number
MORE = "the checkpoint holds more than tensors"
DAMAGED = "the checkpoint is damaged"
NOT_TAKEN = "this kind of .pt is not taken"
HOW = "save only the tensors: torch.save(model.state_dict(), path)"
KEY = re.compile(r"[0-9]{1,9}", re.ASCII)

STORAGES = {
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "DoubleStorage": "F64",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "BoolStorage": "BOOL",
}


class Known(Enum):
    ORDERED_DICT = "collections OrderedDict"
    TENSOR = "torch._utils _rebuild_tensor_v2"
    PARAMETER = "torch._utils _rebuild_parameter"


class StorageType(NamedTuple):
    dtype: str


class Storage(NamedTuple):
    dtype: str
    key: str
    length: int


class View(NamedTuple):
    """A tensor: which items of a storage, in steps of `strides` items."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def span(self) -> int:
        """Items from the first to the last, both counted."""
        if 0 in self.shape:
            return 0
        return 1 + sum((side - 1) * stride for side, stride in zip(self.shape, self.strides, strict=True))


class Ordered(dict[Any, Any]):
    """An OrderedDict; it may be given attributes, which are forgotten."""


NAMES: dict[str, object] = {known.value: known for known in Known}
NAMES |= {f"torch {name}": StorageType(dtype) for name, dtype in STORAGES.items()}


def unpickle(data: bytes) -> object:
    return Machine(data).run()


class Machine:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> object:
        for _ in range(MAX_STEPS):
            start = self._place
            code = self._take(1)
            if code == b".":
                return self._last()
            step = STEPS.get(code)
            if step is None:
                what = f"its pickle has the instruction 0x{code[0]:02x} at byte {start:,}, which no state dict needs"
                raise BadFile(MORE, f"{what}; {HOW}")
            step(self)
        raise BadFile(MORE, f"its pickle has more than {MAX_STEPS:,} instructions; {HOW}")

    def _last(self) -> object:
        if len(self._stack) != 1 or self._marks or self._place != len(self._data):
            raise damaged("its pickle does not end with one value")
        return self._stack[0]

    def _take(self, count: int) -> bytes:
        part = self._data[self._place : self._place + count]
        if len(part) != count:
            raise damaged("its pickle is cut off")
        self._place += count
        return part

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self._place, self._place + 200)
        if end < 0:
            raise damaged("a name in its pickle does not end")
        line = self._take(end + 1 - self._place)[:-1]
        return line.decode("ascii", "backslashreplace")

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _top(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise damaged("its pickle takes what it did not put down")
        return self._stack[-1]

    def _pop(self) -> Any:
        value = self._top()
        self._stack.pop()
        return value

    def _pop_to_mark(self) -> list[Any]:
        if not self._marks:
            raise damaged("its pickle has lost a mark")
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    def protocol(self) -> None:
        version = self._number("<B")
        if version != 2:
            raise BadFile(
                NOT_TAKEN, f"its pickle is of protocol {version}; torch.save writes 2 unless it is told otherwise"
            )

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def text(self) -> None:
        raw = self._take(self._number("<I"))
        try:
            self._push(raw.decode())
        except UnicodeDecodeError:
            raise damaged("a text in its pickle is not UTF-8") from None

    def long(self) -> None:
        count = self._number("<B")
        if count > MAX_LONG:
            raise damaged("a number in its pickle is larger than any count")
        self._push(int.from_bytes(self._take(count), "little", signed=True))

    def put(self, form: str) -> None:
        self._memo[self._number(form)] = self._top()

    def get(self, form: str) -> None:
        number = self._number(form)
        if number not in self._memo:
            raise damaged("its pickle asks for what it did not keep")
        self._push(self._memo[number])

    def tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(values)))

    def tuple_to_mark(self) -> None:
        self._push(tuple(self._pop_to_mark()))

    def append(self) -> None:
        self._extend([self._pop()])

    def appends(self) -> None:
        self._extend(self._pop_to_mark())

    def _extend(self, values: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise damaged("its pickle appends to what is no list")
        target.extend(values)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._update([key, value])

    def set_items(self) -> None:
        self._update(self._pop_to_mark())

    def _update(self, flat: list[Any]) -> None:
        target = self._top()
        if type(target) not in (dict, Ordered) or len(flat) % 2:
            raise damaged("its pickle sets items of what is no dict")
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            # A tuple of tuples of tuples would be walked over again for every hash.
            if type(key) not in (str, int):
                raise BadFile(MORE, f"a key in it is neither text nor a whole number; {HOW}")
            if key in target:
                raise damaged(f"{quoted(str(key))} stands twice in one dict")
            target[key] = value

    def name(self) -> None:
        module = self._line()
        name = f"{module} {self._line()}"
        if name not in NAMES:
            raise BadFile(MORE, f"it asks for {quoted(name.replace(' ', '.'))}; {HOW}")
        self._push(NAMES[name])

    def reduce(self) -> None:
        arguments, maker = self._pop(), self._pop()
        if type(arguments) is not tuple or not isinstance(maker, Known):
            raise damaged("its pickle calls what is no tensor and no dict")
        self._push(MAKERS[maker](*arguments))

    def build(self) -> None:
        """torch hangs a version number for each module on a state dict."""
        self._pop()
        if type(self._top()) is not Ordered:
            raise damaged("its pickle gives attributes to what has none")

    def storage(self) -> None:
        told = self._pop()
        if type(told) is not tuple or len(told) != 5:
            raise damaged("a storage in it is not described as torch does")
        word, kind, key, location, count = told
        named = word == "storage" and type(kind) is StorageType and type(location) is str
        if not named or type(key) is not str or not KEY.fullmatch(key) or not _is_count(count):
            raise damaged("a storage in it is not described as torch does")
        self._push(Storage(kind.dtype, key, count))


def damaged(detail: str) -> BadFile:
    return BadFile(DAMAGED, f"{detail}: save it and upload it again")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


def _are_counts(values: object) -> bool:
    return type(values) is tuple and len(values) <= MAX_DIMENSIONS and all(_is_count(value) for value in values)


def _ordered(*pairs: object) -> Ordered:
    if pairs:
        raise damaged("an OrderedDict in it is not made as torch does")
    return Ordered()


def _tensor(*told: Any) -> View:
    if len(told) not in (6, 7) or type(told[0]) is not Storage:
        raise damaged("a tensor in it is not described as torch does")
    storage, offset, shape, strides = told[:4]
    if not _is_count(offset) or not _are_counts(shape) or not _are_counts(strides) or len(shape) != len(strides):
        raise damaged("the sides or steps of a tensor in it are not plain counts")
    view = View(storage, offset, shape, strides)
    if offset + view.span > storage.length:
        raise damaged("a tensor in it reaches past the end of its storage")
    return view


def _parameter(*told: Any) -> View:
    if len(told) != 3 or type(told[0]) is not View:
        raise damaged("a parameter in it is not described as torch does")
    view: View = told[0]
    return view


MAKERS: dict[Known, Callable[..., object]] = {
    Known.ORDERED_DICT: _ordered,
    Known.TENSOR: _tensor,
    Known.PARAMETER: _parameter,
}

STEPS: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": Machine.protocol,
    b"}": lambda machine: machine._push({}),
    b"]": lambda machine: machine._push([]),
    b")": lambda machine: machine._push(()),
    b"N": lambda machine: machine._push(None),
    b"\x88": lambda machine: machine._push(True),
    b"\x89": lambda machine: machine._push(False),
    b"K": lambda machine: machine._push(machine._number("<B")),
    b"M": lambda machine: machine._push(machine._number("<H")),
    b"J": lambda machine: machine._push(machine._number("<i")),
    b"G": lambda machine: machine._push(machine._number(">d")),
    b"\x8a": Machine.long,
    b"X": Machine.text,
    b"(": Machine.mark,
    b"t": Machine.tuple_to_mark,
    b"\x85": lambda machine: machine.tuple_of(1),
    b"\x86": lambda machine: machine.tuple_of(2),
    b"\x87": lambda machine: machine.tuple_of(3),
    b"q": lambda machine: machine.put("<B"),
    b"r": lambda machine: machine.put("<I"),
    b"h": lambda machine: machine.get("<B"),
    b"j": lambda machine: machine.get("<I"),
    b"a": Machine.append,
    b"e": Machine.appends,
    b"s": Machine.set_item,
    b"u": Machine.set_items,
    b"c": Machine.name,
    b"R": Machine.reduce,
    b"b": Machine.build,
    b"Q": Machine.storage,
}
