import asyncio
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from service.files import parquet
from service.files.checker import check_file
from service.files.errors import BadFile
from service.files.facts import DatasetFacts, DatasetQuestion
from service.files.npz import Splits
from service.files.out import Out
from service.files.parts import Wanted
from service.files.process import ENVIRONMENT
from service.files.upload import Upload

WANTED = Wanted(max_bytes=10_000_000, max_side=64, max_channels=4, suffixes=(), input=None)
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4, 3, 3), np.uint8)


def png(pixels: np.ndarray, format: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format)
    return stream.getvalue()


SOME = [png(pixels) for pixels in PIXELS]


def parquet_of(columns: dict[str, Any], metadata: dict[str, str] | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    table = pa.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, stream, **options)
    return stream.getvalue()


def nested(images: list[bytes | None], paths: list[str] | None = None) -> list[dict[str, Any]]:
    """As the Hugging Face libraries write them."""
    names = paths or [f"{place}.png" for place in range(len(images))]
    return [{"bytes": data, "path": path} for data, path in zip(images, names, strict=True)]


def write(data: bytes, wanted: Wanted = WANTED) -> tuple[Splits, dict[str, np.ndarray]]:

    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as made:
        file.write(data)
        file.flush()
        with Out(made.fileno()) as out:
            told = parquet.write_parquet(Upload(file.fileno()), out, wanted)
        made.seek(0)
        return told, dict(np.load(io.BytesIO(made.read()), allow_pickle=False))


def refusal(data: bytes, wanted: Wanted = WANTED) -> BadFile:
    with pytest.raises(BadFile) as caught:
        write(data, wanted)
    return caught.value


def check(folder: Path, data: bytes, **asked: Any) -> tuple[DatasetFacts, dict[str, np.ndarray]]:
    """The way of an upload: by the sandboxed child."""
    upload, made = folder / "upload", folder / "made"
    upload.write_bytes(data)
    facts = asyncio.run(check_file(upload, DatasetQuestion(**{"max_bytes": 10**7, **asked}), made))
    return facts, dict(np.load(made, allow_pickle=False))


class TestRead:
    @pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
    @pytest.mark.parametrize("images", [nested(SOME), SOME], ids=["nested", "plain"])
    def test_images_and_labels_come_through_the_sandbox(self, tmp_path, images, compression):
        data = parquet_of({"image": images, "label": [3, 1, 1, 0, 3]}, compression=compression, row_group_size=2)
        facts, arrays = check(tmp_path, data)
        assert np.array_equal(arrays["x_train"], PIXELS)
        assert arrays["y_train"].tolist() == [3, 1, 1, 0, 3]
        split = facts.splits["train"]
        assert (split.count, str(split.shape), split.dtype, split.classes) == (5, "4x3x3", "uint8", 3)
        assert (split.lowest_label, split.highest_label, split.labels) == (0, 3, None)

    def test_they_are_brought_to_a_size(self, tmp_path):
        facts, arrays = check(tmp_path, parquet_of({"image": SOME}), input="8x8x1", invert=True)
        assert arrays["x_train"].shape == (5, 8, 8, 1)
        assert (facts.preparation.channels, facts.preparation.invert) == ("luma", True)

    def test_jpeg_and_webp_too(self):
        _, arrays = write(parquet_of({"image": [png(PIXELS[0], "JPEG"), png(PIXELS[1], "WEBP")]}))
        assert arrays["x_train"].shape == (2, 4, 3, 3)

    @pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary()])
    def test_large_offsets_are_no_difference(self, kind):
        _, arrays = write(parquet_of({"image": pa.array(SOME, kind)}))
        assert np.array_equal(arrays["x_train"], PIXELS)

    def test_many_rows_in_several_groups(self):
        data = parquet_of({"image": SOME * 60, "label": list(range(300))}, row_group_size=70)
        _, arrays = write(data)
        assert np.array_equal(arrays["x_train"][150:155], PIXELS)
        assert arrays["y_train"].tolist() == list(range(300))


class TestColumns:
    def test_they_are_found_by_their_usual_names(self):
        data = parquet_of({"id": [b"a"] * 5, "img": nested(SOME), "fine_label": [1] * 5, "size": [7] * 5})
        told, arrays = write(data)
        assert (told["splits"]["train"]["classes"], sorted(arrays)) == (1, ["x_train", "y_train"])

    def test_or_by_being_the_only_one(self):
        told, arrays = write(parquet_of({"picture": SOME, "rating": [1] * 5}))
        assert (told["splits"]["train"]["classes"], sorted(arrays)) == (None, ["x_train"])

    def test_or_they_are_named(self):
        data = parquet_of({"image": [b""] * 5, "photo": SOME, "kind": ["b", "a", "b", "b", "a"]})
        told, arrays = write(data, WANTED._replace(image="photo", label="kind"))
        assert arrays["y_train"].tolist() == [1, 0, 1, 1, 0]
        assert told["splits"]["train"]["labels"] == ["a", "b"]

    def test_words_may_be_a_dictionary(self):
        data = parquet_of({"image": SOME, "label": pa.array(["x", "y", "x", "x", "z"]).dictionary_encode()})
        told, arrays = write(data)
        assert (arrays["y_train"].tolist(), told["splits"]["train"]["labels"]) == ([0, 1, 0, 0, 2], ["x", "y", "z"])

    def test_names_of_classes_come_from_the_metadata(self):
        features = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
        metadata = {"huggingface": json.dumps(features)}
        told, _ = write(parquet_of({"image": nested(SOME), "label": [0, 1, 1, 0, 0]}, metadata))
        assert told["splits"]["train"]["labels"] == ["cat", "dog"]
        told, _ = write(parquet_of({"image": nested(SOME), "label": [0, 2, 1, 0, 0]}, metadata))
        assert told["splits"]["train"]["labels"] is None

    @pytest.mark.parametrize(
        ("columns", "wanted", "words"),
        [
            ({"a": SOME, "b": SOME}, {}, "?image= names their column"),
            ({"text": ["a"]}, {}, "?image= names their column"),
            ({"image": SOME}, {"image": "photo"}, "there is no column 'photo'"),
            ({"image": SOME, "label": [1] * 5}, {"image": "label"}, "images are binary"),
            ({"image": SOME, "label": [1.5] * 5}, {"label": "label"}, "labels are whole numbers"),
            ({"image": SOME, "label": [None, 1, 1, 1, 1]}, {}, "a label is missing"),
            ({"image": SOME, "label": ["a\n", "b", "b", "b", "b"]}, {}, "is no label"),
            ({"image": pa.array(SOME, pa.binary()).slice(0, 0)}, {}, "no row"),
            ({"image": [*SOME[:4], None]}, {}, "'row 4' has no image bytes"),
            ({"image": nested([SOME[0], None])}, {}, "'row 1, 1.png' has no image bytes"),
            ({"image": [{"bytes": SOME[0], "path": "a"}, None]}, {}, "'row 1' has no image bytes"),
            ({"image": [SOME[0], b"no image"]}, {}, "'row 1' cannot be read"),
            ({"image": [SOME[0], png(PIXELS[0][:, :2])]}, {}, "'row 0' is 4x3x3, 'row 1' is 4x2x3"),
            ({"image": [png(np.zeros((65, 4), np.uint8))]}, {}, "?input="),
        ],
    )
    def test_what_does_not_fit_is_said_in_words(self, columns, wanted, words):
        assert words in refusal(parquet_of(columns), WANTED._replace(**wanted)).detail


class TestHostile:
    def test_sizes_are_checked_before_a_page_is_read(self):
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
        data = parquet_of({"image": [png(noise)] * 3})
        assert "inflate to" in refusal(data, WANTED._replace(max_bytes=1000)).detail
        data = parquet_of({"image": [png(np.zeros((64, 64, 3), np.uint8))] * 9})
        assert "take 110,592 bytes" in refusal(data, WANTED._replace(max_bytes=100_000)).detail

    @pytest.mark.slow
    def test_a_bomb_of_one_value(self, tmp_path):
        """A column of equal values takes no room in the file, and none here before it is looked at."""
        data = parquet_of({"image": [bytes(50_000_000)] * 30}, compression="zstd", use_dictionary=True)
        with pytest.raises(BadFile) as caught:
            check(tmp_path, data, max_bytes=2 * 10**9)
        assert len(data) < 100_000
        assert "cannot be read" in caught.value.detail or "memory" in caught.value.detail

    def test_rows_are_bounded(self, monkeypatch):
        monkeypatch.setattr(parquet, "MAX_ROWS", 4)
        assert "5 rows; 4 are the most" in refusal(parquet_of({"image": SOME})).detail

    def test_a_file_that_is_cut_off(self):
        data = parquet_of({"image": SOME})
        assert "does not end as parquet does" in refusal(data[:-1]).detail
        assert refusal(data[:100] + data[-300:]).title == "the parquet file is damaged"

    def test_what_has_no_columns_has_none_to_name(self, tmp_path):
        stream = io.BytesIO()
        np.savez(stream, x=PIXELS)
        with pytest.raises(BadFile, match=r"leave them out"):
            check(tmp_path, stream.getvalue(), image="x")

    @settings(max_examples=300, deadline=None)
    @given(st.data())
    def test_damage_is_refused_or_read(self, data: st.DataObject) -> None:
        """Now and then pyarrow aborts over it, so each try is a process of its own, as it is in the service."""
        damaged = bytearray(FILE)
        places = st.integers(4, len(damaged) - 1)
        for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
            damaged[place] = value
        ended = apart(lambda: read_or_refused(bytes(damaged)))
        if os.WIFSIGNALED(ended):
            assert os.WTERMSIG(ended) == signal.SIGABRT
            with tempfile.TemporaryDirectory() as folder, pytest.raises(BadFile, match="the check stopped"):
                check(Path(folder), bytes(damaged))
        else:
            assert os.waitstatus_to_exitcode(ended) == 0


def read_or_refused(damaged: bytes) -> bool:
    try:
        _, arrays = write(damaged)
    except BadFile as bad:
        return bool(bad.detail.encode())
    return len(arrays["x_train"]) == len(SOME)


def apart(told: Callable[[], bool]) -> int:
    """How a process ended that was asked this: 0 is yes."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        ended = 2
        try:
            ended = 0 if told() else 1
        finally:
            os._exit(ended)
    return os.waitpid(child, 0)[1]


FILE = parquet_of({"image": nested(SOME), "label": [0, 1, 2, 3, 4]}, row_group_size=2)


def test_it_stays_one_thread() -> None:
    """A second one, started while modules are imported, would not be held by the filter of system calls."""
    code = "import os, service.files.parquet; print(len(os.listdir('/proc/self/task')))"
    told = subprocess.run(
        [sys.executable, "-I", "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "1"
