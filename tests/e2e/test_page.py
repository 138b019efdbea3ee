"""The page and its script as a browser gets them: closed in by their policy, self-contained, and of one piece."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

POLICY = {
    "default-src": "'none'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "style-src": "'unsafe-inline'",
    "script-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
LOADING = {"src", "srcset", "poster", "data", "background", "action", "formaction"}
UNSAFE = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "DOMParser",
    "import(",
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag

    def values(self, name: str) -> set[str]:
        return {attributes[name] for _, attributes in self.found if attributes.get(name)}


@pytest.fixture(scope="module")
def page(api) -> str:
    answer = api.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


@pytest.fixture(scope="module")
def script(api) -> str:
    answer = api.get("/page.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    return answer.text


@pytest.fixture(scope="module")
def tags(page) -> Tags:
    parser = Tags()
    parser.feed(page)
    return parser


def test_policy_lets_the_page_load_only_from_here(api):
    headers = api.get("/").headers
    given = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";") if part.strip())
    assert POLICY.items() <= given.items()
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert api.get("/page.js").headers["x-content-type-options"] == "nosniff"


def test_nothing_is_fetched_from_elsewhere(page, script, tags):
    assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", page + re.sub(r"//.*", "", script), re.I)
    assert "://" not in page + script
    assert "@import" not in page
    assert "url(" not in page
    for name in LOADING | {"href"}:
        for value in tags.values(name):
            own = value.startswith("/") and not value.startswith("//")
            assert own or value.startswith("#") or value == "data:,", (name, value)


def test_policy_does_not_break_the_page(tags):
    """Inline scripts, handlers and javascript: links would be refused by it in silence."""
    scripts = [attributes for tag, attributes in tags.found if tag == "script"]
    assert [attributes.get("src") for attributes in scripts] == ["/page.js"]
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]


def test_names_from_strangers_never_become_markup(script):
    assert [word for word in UNSAFE if word in script] == []


def test_script_parses(script, tmp_path):
    assert script.startswith('"use strict";')
    node = shutil.which("node")
    if node is None:  # no parser at hand: a cut or garbled file shows in its braces, outside of texts and patterns
        plain = re.sub(r'"[^"\n]*"|/\\\{.*?/g', "", script)
        assert [pair for pair in ("()", "[]", "{}") if plain.count(pair[0]) != plain.count(pair[1])] == []
        return
    copy = tmp_path / "page.js"
    copy.write_text(script)
    done = subprocess.run([node, "--check", copy], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_page_and_script_know_the_same_names(tags, script):
    """What the script looks up by id, part or command is in the page, and every hole names words that it has."""
    ids = {str(value) for value in tags.values("id")}
    looked_up = set(re.findall(r'\$\("([\w-]+)"\)', script))
    templates = set(re.findall(r'sync\([^;]*?, "([\w-]+)", ', script))
    lists = set(re.findall(r"(\w+): \{ limit: ", script))
    assert templates
    assert lists == {"jobs", "flashcards", "models", "datasets"}
    assert looked_up | templates | lists | {f"{name}-item" for name in lists} <= ids
    assert len(ids) == len([attributes for _, attributes in tags.found if attributes.get("id")]), "an id is there twice"

    assert set(re.findall(r'part\("(\w+)"', script)) == tags.values("data-part")
    commands = script.partition("const commands = {")[2].partition("\n};")[0]
    assert tags.values("data-command") == set(re.findall(r"^  (\w+)(?:\(|: \()", commands, re.M))


def test_holes_name_words_that_exist(page, script):
    words = script.partition("const words = {")[2].partition("\n};")[0]
    known = set(re.findall(r"^  (\w+)(?:\(|:|,)", words, re.M))
    used = set(re.findall(r"\{[\w.]+:(\w+)\}", page.partition("<body>")[2]))
    assert used
    assert used <= known


def test_controls_have_names(tags):
    """A screen reader says what each list, bar, picture and icon-like button is."""
    for tag, attributes in tags.found:
        if tag == "img":
            assert attributes.get("alt"), attributes
        if attributes.get("role") in ("progressbar", "img") or tag in ("table", "dialog"):
            assert attributes.get("aria-label") or attributes.get("aria-labelledby"), (tag, attributes)
        if tag == "button":
            assert attributes.get("type") == "button", attributes
    headings = tags.values("id")
    assert tags.values("aria-labelledby") <= headings


def test_commands_of_the_empty_page_work(api, digits_npz, script):
    """The lines to copy use these routes and bodies; here they are asked without a shell."""
    for path in (
        "/v1/datasets?name=waves",
        "/v1/datasets?name=images",
        "/v1/models?name=mine&architecture=blk_4_fil_64",
    ):
        assert path in script
    dataset = api.post("/v1/datasets?name=images", content=digits_npz).json()
    body = {"kind": "train", "dataset": dataset["id"], "architecture": "blk_1_fil_32", "epochs": 10}
    assert api.post("/v1/jobs?validate_only=true", json=body).status_code == 200


def test_lists_that_the_page_polls_answer(api, script):
    assert "/v1/jobs?state=running" in script
    for name, limit in re.findall(r"(\w+): \{ limit: (\d+) \}", script):
        answer = api.get(f"/v1/{name}?limit={limit}")
        assert answer.status_code == 200
        assert set(answer.json()) == {"items", "next_cursor"}
