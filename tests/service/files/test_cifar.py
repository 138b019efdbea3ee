import numpy as np
import pytest
from published import COLOURS, WANTED, cifar, convert, tar

from service.files.errors import BadFile

LABELS = np.arange(7)
TEN = cifar(COLOURS, LABELS)
HUNDRED = cifar(COLOURS, LABELS, LABELS * 10)
NAMES = [f"name{number}" for number in range(10)]
#: In the order of no one, as the official tar is.
OFFICIAL = {
    "cifar-10-batches-bin/data_batch_1.bin": TEN[:3073],
    "cifar-10-batches-bin/batches.meta.txt": "\n".join([*NAMES, ""]).encode(),
    "cifar-10-batches-bin/data_batch_3.bin": TEN[2 * 3073 : 5 * 3073],
    "cifar-10-batches-bin/test_batch.bin": TEN[5 * 3073 :],
    "cifar-10-batches-bin/readme.html": b"<html></html>",
    "cifar-10-batches-bin/data_batch_2.bin": TEN[3073 : 2 * 3073],
}


def refusal(data: bytes, **changed: object) -> BadFile:
    with pytest.raises(BadFile) as caught:
        convert(data, WANTED._replace(**changed))
    return caught.value


@pytest.mark.parametrize(("data", "labels"), [(TEN, LABELS), (HUNDRED, LABELS * 10)])
def test_a_bare_file(data: bytes, labels: np.ndarray) -> None:
    told, arrays = convert(data)
    assert np.array_equal(arrays["x_train"], COLOURS)
    assert arrays["y_train"].tolist() == labels.tolist()
    assert told["splits"]["train"]["classes"] == 7


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_the_official_tar(mode: str) -> None:
    told, arrays = convert(tar(OFFICIAL, mode))
    assert np.array_equal(arrays["x_train"], COLOURS[:5])
    assert np.array_equal(arrays["x_test"], COLOURS[5:])
    assert arrays["y_train"].tolist() == [0, 1, 2, 3, 4]
    assert told["splits"]["test"]["labels"] == NAMES


def test_the_official_tar_of_a_hundred() -> None:
    fine = "\n".join(f"fine{number}" for number in range(100)).encode()
    files = {"train.bin": HUNDRED[: 4 * 3074], "test.bin": HUNDRED[4 * 3074 :], "fine_label_names.txt": fine}
    told, arrays = convert(tar({f"cifar-100-binary/{name}": data for name, data in files.items()}))
    assert arrays["y_train"].tolist() == [0, 10, 20, 30]
    assert told["splits"]["train"]["labels"][99] == "fine99"


def test_it_is_prepared_as_asked() -> None:
    told, arrays = convert(tar(OFFICIAL), WANTED._replace(input=(16, 16, 1), invert=True))
    assert arrays["x_train"].shape == (5, 16, 16, 1)
    assert told["preparation"] == {"input": "16x16x1", "resize": "bilinear", "channels": "luma", "invert": True}


@pytest.mark.parametrize("data", [TEN[:-1], TEN + b"\0", b"\x0a" + TEN[1:], cifar(COLOURS, LABELS + 20, LABELS)])
def test_a_bare_file_must_be_right_to_the_last_label(data: bytes) -> None:
    assert refusal(data).title == "not a dataset"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"cifar-10-batches-bin/data_batch_1.bin": TEN[:3072]}, "records of 3,073 bytes"),
        ({"cifar-10-batches-bin/data_batch_1.bin": b""}, "records of 3,073 bytes"),
        ({"cifar-10-batches-bin/data_batch_1.bin": b"\x0a" + TEN[1:3073]}, "CIFAR-10 does not have"),
        ({"cifar-10-batches-bin/data_batch_9.bin": TEN}, "'data_batch_9.bin' is no part of CIFAR-10"),
        ({"cifar-10-batches-bin/readme.html": bytes(2 << 20)}, "is no part of a known dataset"),
        ({"again/test_batch.bin": TEN}, "twice"),
        ({f"{number}.txt": b"" for number in range(70)}, "more than 64"),
    ],
)
def test_a_tar_that_does_not_hold_together(changes: dict[str, bytes], word: str) -> None:
    assert word in refusal(tar({**OFFICIAL, **changes})).detail


@pytest.mark.parametrize(
    ("files", "word"), [({}, "a gzip file"), ({"a.png": b""}, "'a.png'"), ({"test.bin": HUNDRED}, "no train split")]
)
def test_other_tars_are_refused(files: dict[str, bytes], word: str) -> None:
    assert word in refusal(tar(files)).detail


def test_label_names_are_left_out_where_they_do_not_fit() -> None:
    told, _ = convert(tar({**OFFICIAL, "cifar-10-batches-bin/batches.meta.txt": b"cat dog"}))
    assert told["splits"]["train"]["labels"] is None


@pytest.mark.parametrize("cut", [100, 700, 5000, 20_000])
def test_a_tar_that_is_cut_off(cut: int) -> None:
    assert refusal(tar(OFFICIAL, "w")[:cut]).title in ("the file is cut off", "the tar is damaged", "not a dataset")
    assert refusal(tar(OFFICIAL)[:cut]).title == "the file is cut off"


def test_a_tar_is_bounded() -> None:
    assert refusal(tar(OFFICIAL), max_bytes=10_000).title == "the dataset is too large"
