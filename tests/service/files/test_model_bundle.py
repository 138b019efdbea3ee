"""The child's side of bundles; over HTTP they are in tests/service/test_bundles.py."""

import hashlib
import io
import json
import tempfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import weights
from zips import Member, zip_of

from flashcards.contract import bundle
from service.files import model_bundle
from service.files.errors import BadFile
from service.files.upload import Upload

WEIGHTS = weights()


def manifest(**files: bytes) -> bytes:
    told = {name: {"size": len(data), "digest": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    return json.dumps({"format": "flashcards-bundle", "version": 1, "files": told}).encode()


def packed(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in {"bundle.json": manifest(**files), **files}.items():
            archive.writestr(name, data)
    return stream.getvalue()


def read(data: bytes) -> dict[str, object]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return model_bundle.read_model_bundle(Upload(file.fileno()))


GOOD = packed(**{"model.safetensors": WEIGHTS, "README.md": b"# A net", "lineage.json": b"{}"})


def test_it_tells_where_files_lie_and_what_they_hold():
    told = read(GOOD)
    begin = told["places"]["model.safetensors"]
    assert GOOD[begin : begin + len(WEIGHTS)] == WEIGHTS
    assert told["weights"]["model.safetensors"]["tensors"]["encoder.stem.weight"] == [4, 1, 3, 3]
    assert (told["texts"], told["capsules"]) == ({"lineage.json": {}}, {})


def test_both_sides_speak_of_the_same_format():
    assert (model_bundle.FORMAT, model_bundle.VERSION) == (bundle.FORMAT, bundle.VERSION)
    assert (model_bundle.MANIFEST, model_bundle.MAX_TEXT) == (bundle.MANIFEST, bundle.MOST_TEXT)
    assert set(model_bundle.TEXTS) == {bundle.LINEAGE, bundle.RECIPES, bundle.METRICS}


@pytest.mark.parametrize(
    "name", [b"../model.safetensors", b"/etc/passwd", b"a\\b", b"C:/x", b"a/./b", b"model\n.safetensors"]
)
def test_a_name_that_leads_elsewhere_is_refused(name):
    data = zip_of(Member(manifest(), b"bundle.json"), Member(b"x", name))
    with pytest.raises(BadFile, match="leads elsewhere"):
        read(data)


def test_a_name_that_stands_in_it_twice_is_refused():
    with pytest.raises(BadFile, match="twice"):
        read(zip_of(Member(manifest(), b"bundle.json"), Member(manifest(), b"bundle.json")))


def test_a_link_is_refused():
    with pytest.raises(BadFile, match="link"):
        read(zip_of(Member(manifest(), b"bundle.json"), Member(b"/etc/passwd", b"README.md", mode=0o120777)))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_refused(data: st.DataObject) -> None:
    """All bytes are under a digest or a checksum, but for times and flags that nobody looks at."""
    damaged = bytearray(GOOD)
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    try:
        told = read(bytes(damaged))
    except BadFile as bad:
        bad.detail.encode()
        return
    begin = told["places"]["model.safetensors"]
    assert damaged[begin : begin + len(WEIGHTS)] == WEIGHTS
