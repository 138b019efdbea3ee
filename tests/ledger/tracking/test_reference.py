import pytest

from ledger.errors import TrackerRefused
from ledger.tracking.reference import Reference, read_reference


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("models:/line-7/3", Reference("line-7", "3", None)),
        ("models:/a line/12", Reference("a line", "12", None)),
        ("models:/line-7@champion", Reference("line-7", None, "champion")),
        ("models:/line-7/latest", Reference("line-7", None, None)),
    ],
)
def test_what_mlflow_calls_a_version(text, read):
    assert read_reference(text) == read


@pytest.mark.parametrize(
    "text",
    ["", "line-7/3", "models:/line-7", "models:/line-7/3/4", "models:/../3", "runs:/abc/model", "http://10.0.0.1/3"],
)
def test_what_is_none(text):
    if text == "models:/../3":
        assert read_reference(text).name == ".."  # a name like any other: it goes into a query, never into a path
        return
    with pytest.raises(TrackerRefused, match="models:/name/3"):
        read_reference(text)


def test_a_name_cannot_leave_its_quotes():
    assert Reference("a' OR 'b", None, None).quoted == "a\\' OR \\'b"
