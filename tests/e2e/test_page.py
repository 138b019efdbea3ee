"""The page as a browser gets it: closed in by its policy, self-contained, small, and of one piece."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

import service.page
from flashcards.contract.specs import JobSpec
from service.page.routes import VIEWS

STATIC = Path(service.page.__file__).parent / "static"
SCRIPTS = sorted(STATIC.rglob("*.js"))
STYLES = sorted(STATIC.rglob("*.css"))
POLICY = {
    "default-src": "'none'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "style-src": "'self'",
    "script-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
LOADING = {"src", "srcset", "poster", "data", "background", "action", "formaction", "href"}
UNSAFE = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "DOMParser",
    "import(",
    'setAttribute("style"',
    "localStorage",
    "sessionStorage",
    "document.cookie",
)
WEIGHT = 300_000  # bytes of one view without its pictures


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.found if attributes.get(name)]


@pytest.fixture(scope="module", params=VIEWS)
def page(request, api) -> str:
    answer = api.get(request.param.replace("{id}", "something"))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def test_policy_lets_the_page_load_only_from_here(api):
    for path in VIEWS:
        headers = api.get(path).headers
        parts = headers["content-security-policy"].split(";")
        assert dict(part.strip().split(" ", 1) for part in parts if part.strip()) == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_nothing_is_fetched_from_elsewhere(page):
    for name in LOADING:
        for value in Tags(page).values(name):
            assert value.startswith(("/", "#")), (name, value)
            assert not value.startswith("//"), (name, value)


def test_policy_does_not_break_the_page(page):
    """Inline scripts, styles and handlers, and javascript: links would be refused by it in silence."""
    found = Tags(page).found
    assert all(attributes.get("src") for tag, attributes in found if tag == "script")
    assert "style" not in [tag for tag, _ in found]
    assert not [name for _, attributes in found for name in attributes if name.startswith("on") or name == "style"]


def test_what_a_page_names_is_there(api, page):
    for path in {*Tags(page).values("src"), *Tags(page).values("href")}:
        if not path.startswith("#"):
            assert api.get(path).status_code == 200, path


def test_ids_are_there_once_and_fields_have_names(page):
    tags = Tags(page)
    ids = tags.values("id")
    assert len(ids) == len(set(ids))
    assert set(tags.values("aria-labelledby")) | set(tags.values("for")) <= set(ids)
    for tag, attributes in tags.found:
        if tag == "button":
            assert attributes.get("type"), attributes
        if tag in ("input", "select"):
            assert attributes.get("id") in tags.values("for"), attributes


def test_files_are_kept_forever_by_the_digest_in_their_address(api):
    (script,) = [value for value in Tags(api.get("/").text).values("src") if value.endswith(".js")]
    kept = api.get(script)
    assert kept.headers["content-type"].startswith("text/javascript")
    assert "immutable" in kept.headers["cache-control"]
    assert api.get(script, headers={"If-None-Match": kept.headers["etag"]}).status_code == 304

    digest = script.split("/")[2]
    other = api.get(script.replace(digest, "0" * 16))
    assert (other.status_code, other.content) == (200, kept.content)
    assert other.headers["cache-control"] == "no-cache"
    assert api.get(f"/page/{digest}/nowhere.js").status_code == 404
    assert api.get(f"/page/{digest}/..%2froutes.py").status_code == 404


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(STATIC).as_posix())
class TestScripts:
    def test_names_from_strangers_never_become_markup(self, script):
        assert [word for word in UNSAFE if word in script.read_text()] == []

    def test_it_imports_what_is_there(self, script):
        text = script.read_text()
        for names, path in re.findall(r"^import \{([^}]*)\} from \"(.*)\";$", text, re.M):
            target = (script.parent / path).resolve()
            assert target in SCRIPTS, path
            exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", target.read_text(), re.M)
            for name in filter(None, (name.strip() for name in names.split(","))):
                assert name in exported, (path, name)
                assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is imported for nothing"
        assert len(re.findall("^import ", text, re.M)) == len(
            re.findall(r"^import \{[^}]*\} from \".*\";$", text, re.M)
        )

    def test_it_is_small(self, script):
        assert len(script.read_text().splitlines()) < 200

    def test_it_parses(self, script, tmp_path):
        node = shutil.which("node")
        if node is None:
            pytest.skip("no node on this machine: the browser tests find out")
        copy = tmp_path / "script.mjs"
        copy.write_text(script.read_text())
        done = subprocess.run([node, "--check", copy], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_what_scripts_leave_out_is_so_anyway():
    """A line that was copied from the page asks for the same as the job that it was copied from."""
    (found,) = re.findall(r"^const DEFAULTS = \{(.*)\};$", (STATIC / "copy.js").read_text(), re.M)
    table = json.loads("{" + re.sub(r"(\w+): ", r'"\1": ', found) + "}")
    kinds = get_args(get_args(JobSpec)[0])
    for name, value in table.items():
        fields = [kind.model_fields[name].default for kind in kinds if name in kind.model_fields]
        assert fields, name
        assert set(fields) == {value}, name


def test_nothing_in_the_files_points_elsewhere():
    for path in SCRIPTS + STYLES:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert "://" not in text, path.name
        assert "@import" not in text
        assert not re.search(r"\burl\(", text)


def test_a_view_is_light(api):
    """All scripts and styles together: no view loads more than that."""
    assert sum(path.stat().st_size for path in SCRIPTS + STYLES) + len(api.get("/").content) < WEIGHT


def test_the_sample_is_a_dataset(api):
    digits = api.get("/page/digits.npz")
    answer = api.post("/v1/datasets", params={"name": "sample", "input": "16x16x1"}, content=digits.content)
    assert answer.status_code == 201, answer.text
    splits = answer.json()["splits"]
    assert splits["train"]["count"] + splits["test"]["count"] == 1797
    assert splits["train"]["classes"] == 10
