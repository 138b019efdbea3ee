"""Published datasets by name, from a publisher on this machine to a dataset of the running service."""

import gzip
import io
import json

import numpy as np
import pytest
from PIL import Image
from published import COLOURS, DIGITS, cifar, idx, svhn, tar, zipped
from publisher import publishing
from typer.testing import CliRunner

from flashcards.cli import app
from flashcards.client.official import OFFICIAL

LABELS = np.arange(6)


def character() -> bytes:
    stream = io.BytesIO()
    Image.new("1", (105, 105), 1).save(stream, "PNG")
    return stream.getvalue()


def four_files(digits: np.ndarray) -> dict[str, bytes]:
    return {
        "train-images-idx3-ubyte.gz": gzip.compress(idx(digits)),
        "train-labels-idx1-ubyte.gz": gzip.compress(idx(LABELS)),
        "t10k-images-idx3-ubyte.gz": gzip.compress(idx(digits[:2])),
        "t10k-labels-idx1-ubyte.gz": gzip.compress(idx(LABELS[:2])),
    }


FILES = {
    "mnist": four_files(DIGITS),
    "fashion_mnist": four_files(255 - DIGITS),
    "cifar10": {
        "cifar-10-binary.tar.gz": tar(
            {"data_batch_1.bin": cifar(COLOURS, np.arange(7)), "test_batch.bin": cifar(COLOURS[:2], np.arange(2))}
        )
    },
    "cifar100": {
        "cifar-100-binary.tar.gz": tar(
            {
                "cifar-100-binary/train.bin": cifar(COLOURS, np.zeros(7), np.arange(7)),
                "cifar-100-binary/test.bin": cifar(COLOURS[:2], np.zeros(2), np.arange(2)),
            }
        )
    },
    "svhn": {
        "train_32x32.mat": svhn(COLOURS, [1, 2, 3, 4, 5, 6, 10]),
        "test_32x32.mat": svhn(COLOURS[:2], [1, 10]),
    },
    "omniglot": {
        "images_background.zip": zipped({"images_background/Greek/character01/0001_01.png": character()}),
        "images_evaluation.zip": zipped(
            {"images_evaluation/": b"", "images_evaluation/Angelic/character01/0002_01.png": character()}
        ),
    },
}


@pytest.fixture
def publisher(monkeypatch):
    with publishing() as server:
        for name, files in FILES.items():
            found = tuple(server.publish(f"{name}/{file}", content) for file, content in files.items())
            monkeypatch.setitem(OFFICIAL, name, found)
        yield server


@pytest.fixture
def run(service, monkeypatch):
    monkeypatch.delenv("FLASHCARDS_DATA", raising=False)

    def run(*words, exit_code: int = 0):
        done = CliRunner().invoke(app, [str(word) for word in words], env={"FLASHCARDS_URL": service.url})
        assert done.exit_code == exit_code, done.output
        return done

    return run


def test_every_published_dataset_is_tried_here():
    assert FILES.keys() == OFFICIAL.keys()
    for name, files in OFFICIAL.items():
        assert [file.name for file in files] == list(FILES[name])
        assert all(len(file.sha256) == 64 and file.size > 1000 for file in files)


def test_the_published_files_are_saved_as_they_are(run, publisher, tmp_path):
    shown = run("datasets", "pull", "mnist", "--to", tmp_path).stdout
    assert shown.splitlines() == [str(tmp_path / "mnist" / name) for name in FILES["mnist"]]
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == FILES["mnist"]


@pytest.mark.parametrize(
    ("name", "counts", "classes", "done"),
    [
        ("mnist", (6, 2), (6, 2), {"resize": "bilinear", "channels": "copied"}),
        ("fashion_mnist", (6, 2), (6, 2), {"resize": "bilinear", "channels": "copied"}),
        ("cifar10", (7, 2), (7, 2), None),
        ("cifar100", (7, 2), (7, 2), None),
        ("svhn", (7, 2), (7, 2), None),
        ("omniglot", (1, 1), (1, 1), {"resize": "bilinear", "channels": "copied"}),
    ],
)
def test_they_are_pushed_prepared(run, publisher, tmp_path, name, counts, classes, done):
    dataset = json.loads(run("datasets", "pull", name, "--push", "--to", tmp_path, "--json").stdout)
    splits = [dataset["splits"][split] for split in ("train", "test")]
    assert dataset["name"] == name
    assert tuple(split["count"] for split in splits) == counts
    assert tuple(split["classes"] for split in splits) == classes
    assert {split["shape"] for split in splits} == {"32x32x3"}
    assert dataset["preparation"] == (done and {"input": "32x32x3", "invert": False, **done})


def test_omniglot_keeps_its_alphabets_and_can_be_inverted(run, publisher, tmp_path):
    shown = run("datasets", "pull", "omniglot", "--push", "--to", tmp_path, "--input", "28x28x1", "--invert").stdout
    assert "Angelic/character01, Greek/character01" in shown
    assert "to 28x28x1, bilinear resize, inverted" in shown


def test_a_wrong_file_is_refused_in_words(run, publisher, tmp_path):
    publisher.files["/cifar10/cifar-10-binary.tar.gz"] = b"<html>moved</html>".ljust(OFFICIAL["cifar10"][0].size)
    told = run("datasets", "pull", "cifar10", "--to", tmp_path, exit_code=1).stderr
    assert "not the published file" in told
    assert list((tmp_path / "cifar10").iterdir()) == []


def test_a_folder_of_ones_own_comes_first(run, publisher, tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    np.savez(tmp_path / "own" / "mnist.npz", x_train=DIGITS, y_train=LABELS)
    monkeypatch.setenv("FLASHCARDS_DATA", str(tmp_path / "own"))
    assert run("datasets", "pull", "mnist", "--to", tmp_path).stdout.strip() == str(tmp_path / "mnist.npz")
    assert np.array_equal(np.load(tmp_path / "mnist.npz")["x_train"], DIGITS)
    dataset = json.loads(run("datasets", "pull", "mnist", "--push", "--to", tmp_path, "--json").stdout)
    assert (dataset["splits"]["train"]["shape"], dataset["splits"]["train"]["count"]) == ("32x32x3", 6)
    assert publisher.asked == []
    run("datasets", "pull", "cifar10", "--to", tmp_path)
    assert len(publisher.asked) == 1


def test_an_unknown_name_lists_the_known_ones(run):
    told = run("datasets", "pull", "imagenet", exit_code=1).stderr
    assert "mnist, fashion_mnist, cifar10" in told
    assert "dataset_" in told


def test_push_with_preparation(run, client, tmp_path):
    (tmp_path / "digits").write_bytes(gzip.compress(idx(DIGITS)))
    shown = run("datasets", "push", tmp_path / "digits", "--input", "8x8x3", "--invert").stdout
    assert "6 images of 8x8x3" in shown
    assert "to 8x8x3, bilinear resize, grey copied to 3 channels, inverted" in shown
    dataset = client.datasets.push(tmp_path / "digits", input=(8, 8, 3), invert=True)
    assert dataset.preparation.model_dump(mode="json") == {
        "input": "8x8x3",
        "resize": "bilinear",
        "channels": "copied",
        "invert": True,
    }
    assert client.datasets.get(dataset.id) == dataset
    assert client.datasets.push(x=DIGITS, name="as they are").preparation is None


def test_an_id_is_pulled_as_ever(run, client, tmp_path):
    id = client.datasets.push(x=DIGITS, name="digits").id
    assert run("datasets", "pull", id, "--to", tmp_path).stdout.strip() == str(tmp_path / f"{id}.npz")
