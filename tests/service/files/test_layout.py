import pytest

from service.files.errors import BadFile
from service.files.layout import Layout, lay_out
from service.files.zipped import Entry

SUFFIXES = (".png", ".jpg")


def lay(*names: str) -> Layout:
    return lay_out([Entry(name, 0, 0, 0, 0, 0) for name in names], SUFFIXES)


def shown(layout: Layout) -> dict[str, list[tuple[str, int | None]]]:
    return {split: [(each.entry.name, each.label) for each in part] for split, part in layout.splits.items()}


def refusal(*names: str) -> BadFile:
    with pytest.raises(BadFile) as caught:
        lay(*names)
    return caught.value


def test_images_at_the_top_have_no_labels() -> None:
    found = lay("b.png", "a.JPG", "10.png", "9.png")
    assert shown(found) == {"train": [("10.png", None), ("9.png", None), ("a.JPG", None), ("b.png", None)]}
    assert found.labels == []


def test_folders_are_labels_in_the_order_of_their_names() -> None:
    found = lay("dog/1.png", "cat/2.png", "cat/1.png")
    assert shown(found) == {"train": [("cat/1.png", 0), ("cat/2.png", 0), ("dog/1.png", 1)]}
    assert found.labels == ["cat", "dog"]


def test_a_label_may_be_a_path_of_two_folders() -> None:
    found = lay("background/greek/alpha/1.png", "background/greek/beta/1.png", "background/latin/alpha/1.png")
    assert found.labels == ["greek/alpha", "greek/beta", "latin/alpha"]
    assert [label for _, label in shown(found)["train"]] == [0, 1, 2]
    both = lay("train/greek/alpha/1.png", "test/latin/a/1.png")
    assert shown(both) == {"train": [("train/greek/alpha/1.png", 0)], "test": [("test/latin/a/1.png", 1)]}


def test_one_folder_is_one_label() -> None:
    assert lay("cat/1.png", "cat/2.png").labels == ["cat"]


def test_splits_share_their_labels() -> None:
    found = lay("train/cat/1.png", "train/dog/1.png", "test/dog/2.png", "test/eel/1.png")
    assert shown(found) == {
        "train": [("train/cat/1.png", 0), ("train/dog/1.png", 1)],
        "test": [("test/dog/2.png", 1), ("test/eel/1.png", 2)],
    }
    assert found.labels == ["cat", "dog", "eel"]


def test_splits_may_have_no_labels_or_one_of_them_may() -> None:
    assert shown(lay("train/1.png", "test/1.png")) == {"train": [("train/1.png", None)], "test": [("test/1.png", None)]}
    mixed = shown(lay("train/cat/1.png", "test/1.png"))
    assert mixed == {"train": [("train/cat/1.png", 0)], "test": [("test/1.png", None)]}


def test_train_alone_is_enough() -> None:
    assert shown(lay("train/cat/1.png")) == {"train": [("train/cat/1.png", 0)]}


@pytest.mark.parametrize("wrapper", ["pets/", "my/data/"])
def test_the_folder_that_was_zipped_is_no_label(wrapper: str) -> None:
    assert lay(f"{wrapper}cat/1.png", f"{wrapper}dog/1.png").labels == ["cat", "dog"]
    assert list(lay(f"{wrapper}train/1.png", f"{wrapper}test/1.png").splits) == ["train", "test"]


def test_litter_is_left_out() -> None:
    litter = ("cat/", "__MACOSX/cat/._1.png", ".DS_Store", "cat/.DS_Store", "cat/Thumbs.db", "desktop.ini")
    assert shown(lay("cat/1.png", "dog/1.png", *litter)) == {"train": [("cat/1.png", 0), ("dog/1.png", 1)]}


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (("1.png", "cat/1.png"), "different depths"),
        (("cat/1.png", "cat/small/1.png", "dog/1.png"), "different depths"),
        (("a/b/c/1.png", "d/e/f/1.png"), "too deep"),
        (("train/a/b/c/1.png",), "too deep"),
        (("train/1.png", "val/1.png"), "'val/1.png' beside train/ and test/"),
        (("train/1.png", "1.png"), "'1.png' beside train/ and test/"),
        (("test/1.png",), "no train/"),
    ],
)
def test_other_layouts_are_refused_with_the_file(names: tuple[str, ...], word: str) -> None:
    bad = refusal(*names)
    assert bad.title == "the images are not laid out as a dataset"
    assert word in bad.detail


@pytest.mark.parametrize("name", ["readme.txt", "more.zip", "cat/labels.csv", "x.gif", "png", ".png.exe"])
def test_what_is_no_image_is_named(name: str) -> None:
    assert repr(name) in refusal("1.png", name).detail


@pytest.mark.parametrize("names", [(), ("cat/",), (".DS_Store",)])
def test_there_is_an_image(names: tuple[str, ...]) -> None:
    assert refusal(*names).title == "no images"


def test_the_number_of_labels_is_bounded() -> None:
    assert "2,001 labels" in refusal(*(f"{number}/1.png" for number in range(2001))).detail
    assert "letters" in refusal(*(f"{'x' * 300}{number}/1.png" for number in range(200))).detail
