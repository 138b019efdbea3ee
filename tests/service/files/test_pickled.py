import pickle
import struct
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.files.errors import BadFile
from service.files.pickled import MAX_STEPS, Storage, View, unpickle

PROTO = b"\x80\x02"


def refusal(data: bytes) -> BadFile:
    with pytest.raises(BadFile) as caught:
        unpickle(data)
    return caught.value


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def storage(kind: bytes = b"FloatStorage", key: bytes = text("0"), count: bytes = b"K\x08") -> bytes:
    return b"(" + text("storage") + b"ctorch\n" + kind + b"\n" + key + text("cpu") + count + b"tQ"


def tensor(offset: bytes = b"K\x02", shape: bytes = b"K\x03\x85", strides: bytes = b"K\x01\x85") -> bytes:
    held = storage() + offset + shape + strides + b"\x89ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + held + b"tR"


Plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(-(2**62), 2**62), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(Plain)
def test_plain_values_are_read_as_pickle_reads_them(value: Any) -> None:
    assert unpickle(pickle.dumps(value, protocol=2)) == value


def test_an_ordered_dict_keeps_its_order_and_loses_its_attributes() -> None:
    state = OrderedDict(b=1, a=2)
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    found = unpickle(pickle.dumps(state, protocol=2))
    assert isinstance(found, dict)
    assert list(found.items()) == [("b", 1), ("a", 2)]
    assert not hasattr(found, "_metadata")


def test_a_tensor_is_a_view_of_a_storage() -> None:
    assert unpickle(PROTO + tensor() + b".") == View(Storage("F32", "0", 8), 2, (3,), (1,))


def test_a_parameter_is_its_tensor() -> None:
    parameter = b"ctorch._utils\n_rebuild_parameter\n(" + tensor() + b"\x88ccollections\nOrderedDict\n)RtR"
    assert unpickle(PROTO + parameter + b".") == unpickle(PROTO + tensor() + b".")


@pytest.mark.parametrize(
    ("shape", "strides", "fits"),
    [
        (b"K\x06\x85", b"K\x01\x85", True),
        (b"K\x07\x85", b"K\x01\x85", False),
        (b"K\x02K\x03\x86", b"K\x01K\x02\x86", True),
        (b"K\x02K\x03\x86", b"K\x02K\x02\x86", False),
        (b"K\xffK\xff\x86", b"K\x00K\x00\x86", True),
        (b"K\x00K\xff\x86", b"K\xffK\xff\x86", True),
        (b")", b")", True),
        (b"K\x02\x85", b")", False),
        (b"J\xff\xff\xff\xff\x85", b"K\x01\x85", False),
        (b"K\x02\x85", b"J\xff\xff\xff\xff\x85", False),
        (b"\x88\x85", b"K\x01\x85", False),
        (b"G?\xf0\0\0\0\0\0\0\x85", b"K\x01\x85", False),
        (b"]", b"]", False),
        (b"K\x01" * 9 + b"t", b"K\x01" * 9 + b"t", False),
    ],
)
def test_a_view_stays_inside_its_storage(shape: bytes, strides: bytes, fits: bool) -> None:
    if shape.endswith(b"t"):
        shape, strides = b"(" + shape, b"(" + strides
    data = PROTO + tensor(shape=shape, strides=strides) + b"."
    if fits:
        assert isinstance(unpickle(data), View)
    else:
        assert refusal(data).title == "the checkpoint is damaged"


@pytest.mark.parametrize(
    "told",
    [
        storage(key=text("")),
        storage(key=text("../0")),
        storage(key=text("٣")),
        storage(key=b"K\x00"),
        storage(count=b"J\xff\xff\xff\xff"),
        storage(count=b"\x88"),
        storage(count=b"\x8a\x08" + b"\xff" * 7 + b"\x7f"),
        b"K\x01Q",
        b"NQ",
        b")Q",
        b"(" + text("storage") + text("FloatStorage") + text("0") + text("cpu") + b"K\x01tQ",
        b"(" + text("module") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x01tQ",
    ],
)
def test_a_storage_is_described_as_torch_does(told: bytes) -> None:
    assert "storage" in refusal(PROTO + told + b".").detail


@pytest.mark.parametrize(
    "name",
    [
        "os system",
        "builtins eval",
        "torch FloatTensor",
        "torch  FloatStorage",
        "torch floatStorage",
        "collections OrderedDict.__class__",
        "collections.abc OrderedDict",
        "torch._utils _rebuild_tensor",
        "torch._utils _rebuild_tensor_v3",
        "__main__ Net",
        "numpy._core.multiarray scalar",
    ],
)
def test_other_names_are_refused_by_name(name: str) -> None:
    module, _, attribute = name.partition(" ")
    bad = refusal(PROTO + f"c{module}\n{attribute}\n.".encode())
    assert bad.title == "the checkpoint holds more than tensors"
    assert repr(f"{module}.{attribute}".replace(" ", ".")) in bad.detail


KNOWN = b"\x80}])N\x88\x89KMJG\x8aX(t\x85\x86\x87qrhjaesucRbQ."


@pytest.mark.parametrize("code", [code for code in range(256) if code not in KNOWN])
def test_every_other_instruction_is_refused(code: int) -> None:
    assert f"0x{code:02x}" in refusal(PROTO + b"}" + bytes([code]) + b"K\x01\n\n....").detail


@pytest.mark.parametrize("protocol", [0, 1, 3, 4, 5, 255])
def test_other_protocols_are_refused(protocol: int) -> None:
    assert str(protocol) in refusal(b"\x80" + bytes([protocol]) + b"}.").detail


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        PROTO,
        PROTO + b"}",
        PROTO + b"}}.",
        PROTO + b"}..",
        PROTO + b"(}.",
        PROTO + b"t.",
        PROTO + b"}(\x85.",
        PROTO + b"}(s.",
        PROTO + b"K\x01K\x02s.",
        PROTO + b"](K\x01u.",
        PROTO + b"}(K\x01u.",
        PROTO + b"}(K\x01K\x02K\x01K\x03u.",
        PROTO + b"}K\x01a.",
        PROTO + b")K\x01a.",
        PROTO + b"}Nb.",
        PROTO + b"ctorch\nFloatStorage\n)R.",
        PROTO + b"K\x01)R.",
        PROTO + b"ccollections\nOrderedDict\n]R.",
        PROTO + b"ccollections\nOrderedDict\n]\x85R.",
        PROTO + b"ctorch._utils\n_rebuild_tensor_v2\n)R.",
        PROTO + b"ctorch._utils\n_rebuild_parameter\n)R.",
        PROTO + b"ctorch._utils\n_rebuild_parameter\nNNN\x87R.",
        PROTO + b"h\x00.",
        PROTO + b"q\x00.",
        PROTO + b"\x8a\x09" + bytes(9) + b".",
        PROTO + b"X\x02\x00\x00\x00\xff\xff.",
        PROTO + b"X\xff\xff\xff\xffx.",
        PROTO + b"c" + b"x" * 300,
        PROTO + b"ctorch",
    ],
)
def test_a_damaged_pickle_is_refused(data: bytes) -> None:
    assert refusal(data).title == "the checkpoint is damaged"


def test_keys_are_text_or_numbers() -> None:
    doubled = b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (step, step, step + 1) for step in range(60))
    assert "key" in refusal(PROTO + b"}(" + doubled + b"K\x01u.").detail


def test_the_number_of_instructions_is_bounded() -> None:
    assert f"{MAX_STEPS:,}" in refusal(PROTO + b"]" * (MAX_STEPS + 1)).detail


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_state_dict_is_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(PROTO + b"}(" + text("a") + tensor() + text("b") + tensor() + b"u.")
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    try:
        unpickle(bytes(damaged))
    except BadFile as bad:
        bad.detail.encode()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([bytes([code]) for code in KNOWN]) | st.binary(max_size=3), max_size=30))
def test_any_sequence_of_instructions_is_refused_or_read(steps: list[bytes]) -> None:
    try:
        unpickle(PROTO + b"".join(steps))
    except BadFile as bad:
        bad.detail.encode()
