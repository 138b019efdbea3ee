"""What a file looks like by its first bytes, to tell the uploader what was sent instead."""

import codecs

HEAD_BYTES = 512
Utf8Decoder = codecs.getincrementaldecoder("utf-8")

SIGNATURES = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file it points to"),
    (b"PK\x05\x06", "an empty zip file"),
    (b"\x93NUMPY", "a single .npy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as .h5 or .keras weights"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"7z\xbc\xaf", "a 7z file"),
    (b"GGUF", "a GGUF file"),
    (b"PAR1", "a parquet file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"RIFF", "a WEBP image or another RIFF file"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"%PDF", "a PDF"),
    (b"%!PS", "a PostScript file"),
)
#: Tags of producer_name, producer_version, domain, model_version, doc_string, graph, opset_import.
ONNX_NEXT = (b"\x12", b"\x1a", b"\x22", b"\x28", b"\x32", b"\x3a", b"\x42")
TAR_PLACE, TAR = 257, b"ustar"


def looks_like(head: bytes) -> str:
    if not head:
        return "an empty file"
    if is_safetensors(head):
        return "a safetensors file"
    if is_onnx(head):
        return "an ONNX file"
    if head.startswith(b"PK\x03\x04"):
        return _zip(head)
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            return name
    if head[TAR_PLACE:].startswith(TAR):
        return "a tar file"
    if is_pickle(head):
        return "a pickle, such as an old .pt checkpoint"
    return _text(head)


def is_safetensors(head: bytes) -> bool:
    """A header length below 2**32, then the JSON. The first bytes alone may read as another format's signature."""
    return head[4:9] == b"\0\0\0\0{"


def is_onnx(head: bytes) -> bool:
    """A protobuf that begins with a small version number (the IR's), then another field of a model."""
    return len(head) > 2 and head[0] == 0x08 and 1 <= head[1] < 0x80 and head[2:3] in ONNX_NEXT


def is_pickle(head: bytes) -> bool:
    """Of protocol 2 to 5. The older ones are text."""
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _zip(head: bytes) -> str:
    if b"data.pkl" in head:
        return "a .pt checkpoint"
    return "an npz file" if b".npy" in head else "a zip file"


def _text(head: bytes) -> str:
    try:
        text = Utf8Decoder().decode(head).strip().lower()  # bears a character that the end of the head cuts
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return "a binary file of an unknown kind"
    if text.startswith(("<!doctype html", "<html")):
        return "an HTML page, perhaps a login or error page in place of the download"
    return "JSON text" if text.startswith(("{", "[")) else "a text file"
