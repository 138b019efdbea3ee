"""Parquet with image bytes: a column of encoded images, and perhaps one of labels, batch after batch.

An image is a binary value, or a struct with `bytes` in it, which is what the Hugging Face libraries write. pyarrow is
kept to one thread and to plain malloc: threads of its own would outlive the closing of the sandbox.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from service.files.errors import BadFile
from service.files.images import Gallery
from service.files.npz import Splits
from service.files.out import Out
from service.files.parquet_labels import Labels, class_names
from service.files.parts import Part, Pixels, Wanted
from service.files.prepare import Preparation
from service.files.upload import Upload
from service.files.words import clipped, quoted, several, size
from service.files.writing import write_parts

MAGIC = b"PAR1"
MAX_ROWS = 5_000_000
MAX_COLUMNS = 1_000
MAX_FOOTER = 64 << 20
MAX_IMAGE = 64 << 20
AT_ONCE = 64  # rows a batch
BUFFER = 1 << 20
#: From release 26 on pyarrow refuses a schema that nests too deep; before, the reader breaks on it, in its own process.
DEPTH = {"schema_depth_limit": 20} if "schema_depth_limit" in signature(pq.ParquetFile).parameters else {}
IMAGES = ("image", "img", "images", "x")
LABELS = ("label", "labels", "y", "class", "target", "fine_label")
DAMAGED = "the parquet file is damaged"
UNFIT = "the parquet file is not a dataset"
TOO_LARGE = "the dataset is too large"


class Columns(NamedTuple):
    image: str
    label: str | None
    names: Sequence[str] = ()  # of the labels 0, 1, .. where the file tells them


class Reading(io.RawIOBase):
    """The upload, for pyarrow: what it asks for lies in the file, so it is no larger than that."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._upload.size}[whence]
        self._place = max(0, begin + offset)
        return self._place

    def read(self, count: int = -1) -> bytes:
        rest = max(0, self._upload.size - self._place)
        count = rest if count is None or count < 0 else min(count, rest)
        data = bytes(self._upload.bytes_at(self._place, count))
        self._place += count
        return data


def write_parquet(upload: Upload, out: Out, wanted: Wanted) -> Splits:
    preparation = Preparation(wanted.input, wanted.invert)
    with _damage_is_bad():
        file = _open(upload)
        columns = _columns(file, wanted)
        _check_sizes(file, columns, wanted)
        parts = {"train": _part(upload, file, columns, wanted, preparation)}
        return write_parts(out, parts, preparation, wanted)


def _open(upload: Upload) -> pq.ParquetFile:
    if upload.size < 12 or upload.bytes_at(upload.size - 4, 4) != MAGIC:
        raise BadFile(DAMAGED, "it does not end as parquet does: it is cut off, or encrypted. Upload it again")
    footer = int.from_bytes(upload.bytes_at(upload.size - 8, 4), "little")
    if footer > min(MAX_FOOTER, upload.size):
        raise BadFile(DAMAGED, "its footer is larger than any real one")
    file = _opened(Reading(upload))
    if file.metadata.num_columns > MAX_COLUMNS:
        raise BadFile(UNFIT, f"it has {file.metadata.num_columns:,} columns; {MAX_COLUMNS:,} are the most")
    return file


def _opened(source: io.IOBase) -> pq.ParquetFile:
    return pq.ParquetFile(
        pa.PythonFile(source, mode="r"),
        buffer_size=BUFFER,
        pre_buffer=False,  # it would start a thread
        thrift_string_size_limit=MAX_FOOTER,
        thrift_container_size_limit=1_000_000,
        **DEPTH,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )


def _columns(file: pq.ParquetFile, wanted: Wanted) -> Columns:
    schema = file.schema_arrow
    image = _chosen(schema, wanted.image, IMAGES, [field.name for field in schema if _holds_images(field.type)])
    if image is None:
        how = "images are binary, or a struct with bytes: ?image= names their column"
        raise BadFile(UNFIT, f"its columns are {several(schema.names)}, and none is plainly that of the images; {how}")
    if not _holds_images(schema.field(image).type):
        kind = clipped(str(schema.field(image).type))
        raise BadFile(UNFIT, f"column {quoted(image)} is {kind}: images are binary, or a struct with bytes")
    labels = [field.name for field in schema if field.name in LABELS and _holds_labels(field.type)]
    label = _chosen(schema, wanted.label, LABELS, labels[:1])
    if label is not None and not _holds_labels(schema.field(label).type):
        kind = clipped(str(schema.field(label).type))
        raise BadFile(UNFIT, f"column {quoted(label)} is {kind}: labels are whole numbers, or words")
    return Columns(image, label, class_names(schema, label))


def _chosen(schema: pa.Schema, named: str | None, usual: Sequence[str], fitting: list[str]) -> str | None:
    """The one that was named; else the first with a usual name; else the only one that fits."""
    if named is not None:
        if schema.names.count(named) != 1:
            raise BadFile(UNFIT, f"there is no column {quoted(named)}, or two: its columns are {several(schema.names)}")
        return named
    found = next((name for name in usual if fitting.count(name) == 1), None)
    return found or (fitting[0] if len(fitting) == 1 else None)


def _holds_images(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type)
    return _is_binary(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _holds_labels(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or words)


def _check_sizes(file: pq.ParquetFile, columns: Columns, wanted: Wanted) -> None:
    """What the footer says, before a page is read. That it says so is found out while pages are."""
    rows = file.metadata.num_rows
    if rows < 1:
        raise BadFile(UNFIT, "there is no row in it")
    if rows > MAX_ROWS:
        raise BadFile(TOO_LARGE, f"it has {rows:,} rows; {MAX_ROWS:,} are the most")
    inflated = sum(
        column.total_uncompressed_size
        for group in range(file.metadata.num_row_groups)
        for place in range(file.metadata.num_columns)
        if (column := file.metadata.row_group(group).column(place)).path_in_schema.split(".")[0] == columns.image
    )
    if inflated > wanted.max_bytes:
        raise BadFile(TOO_LARGE, f"its images inflate to {size(inflated)}, and {size(wanted.max_bytes)} are allowed")


def _part(upload: Upload, file: pq.ParquetFile, columns: Columns, wanted: Wanted, preparation: Preparation) -> Part:
    count = file.metadata.num_rows
    gallery = Gallery(upload, wanted, preparation, count)
    labels = Labels(columns.names)
    rows = _rows(file, columns, gallery, labels, count)
    return Part(count, rows, labels.written if columns.label is not None else None, labels.names)


def _rows(file: pq.ParquetFile, columns: Columns, gallery: Gallery, labels: Labels, count: int) -> Iterator[Pixels]:
    wanted = [columns.image, *([columns.label] if columns.label is not None else [])]
    row = 0
    for batch in file.iter_batches(AT_ONCE, columns=wanted, use_threads=False):
        images = batch.column(batch.schema.get_field_index(columns.image))
        if columns.label is not None:
            labels.add(batch.column(batch.schema.get_field_index(columns.label)), row)
        for name, data in _encoded(images, row):
            yield gallery.taken(name, data)[None]
        row += batch.num_rows
        if row > count:
            break
    if row != count:
        raise BadFile(DAMAGED, f"its footer says {count:,} rows, and there are {'more' if row > count else f'{row:,}'}")


def _encoded(images: pa.Array, first: int) -> Iterator[tuple[str, bytes]]:
    """Each with what to call it: its path where it has one."""
    paths: pa.Array | None = None
    if pa.types.is_struct(images.type):
        place = images.type.get_field_index("path")
        paths = images.field(place) if place >= 0 and pa.types.is_string(images.type.field(place).type) else None
        images = images.flatten()[images.type.get_field_index("bytes")]  # with the nulls of the struct
    for place, value in enumerate(images):
        path = paths[place].as_py() if paths is not None else None
        name = f"row {first + place}" + (f", {path}" if path else "")
        if not value.is_valid:
            raise BadFile(UNFIT, f"{quoted(name)} has no image bytes: a path alone leads nowhere from here")
        data = value.as_buffer()
        if data.size > MAX_IMAGE:
            raise BadFile(TOO_LARGE, f"{quoted(name)} takes {size(data.size)}; {size(MAX_IMAGE)} is the most")
        yield name, data.to_pybytes()


@contextmanager
def _damage_is_bad() -> Iterator[None]:
    try:
        yield
    except PermissionError:  # the sandbox's word, not the file's
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError):
            raise
        raise BadFile(DAMAGED, f"{clipped(str(error).splitlines()[0] if str(error) else 'it ends early')}") from error


def _get_ready() -> None:
    """pyarrow imports and allocates much when it is first used, and in the sandbox that is too late."""
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    table = pa.table(
        {"image": [{"bytes": b"x", "path": "a"}] * 3, "label": pa.array(["a", "b", "a"]).dictionary_encode()}
    )
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        stream = io.BytesIO()
        pq.write_table(table, stream, compression=codec)
        for batch in _opened(io.BytesIO(stream.getvalue())).iter_batches(2, use_threads=False):
            list(_encoded(batch.column(0), 0))
            batch.column(1).to_pylist()


_get_ready()
