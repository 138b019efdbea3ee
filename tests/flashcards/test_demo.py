import psutil
import pytest
from PIL import Image

from flashcards.demo import digits, run_demo, service
from flashcards.errors import CannotStart


@pytest.mark.slow
def test_the_demo_goes_the_whole_way_and_cleans_up(tmp_path):
    before = psutil.Process().children(recursive=True)
    summary = run_demo(tmp_path / "out", images=400, epochs=4, count=9, r=3, quiet=True)
    assert summary.test_mae < summary.constant_mae
    assert summary.gamma2_last < summary.gamma2_first
    assert summary.taught_mae < 2 * summary.test_mae
    assert "288 cards" in summary.taught_by
    assert (summary.parameters, summary.cards, summary.r) == (14_225, 9, 3)
    assert list(summary.seconds) == ["start", "upload", "train", "evaluate", "capture", "cards", "distill"]
    for picture in (summary.sheet, summary.reconstructions):
        with Image.open(picture) as image:
            assert image.format == "PNG"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "sheet.png",
        "source.png",
        "reconstructions.png",
        "service.log",
    }
    left = set(psutil.Process().children()) - set(before)
    assert not left


def test_the_digits_are_real_and_split():
    arrays = digits()
    assert arrays["x_train"].shape == (1438, 16, 16)
    assert arrays["x_test"].shape == (359, 16, 16)
    assert set(arrays["y_test"]) == set(range(10))
    assert (arrays["x_train"].min(), arrays["x_train"].max()) == (0, 255)


def test_a_service_that_cannot_start_says_why(tmp_path):
    (tmp_path / "home").write_text("a file where a folder should be")
    with pytest.raises(CannotStart, match="File exists"), service(tmp_path / "home", tmp_path / "service.log"):
        pass
