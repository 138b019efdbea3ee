"""Every file of the corpus, posted to the running service: refused in words, soon, and nothing came of it."""

import subprocess
import sys
import time

import corpus_onnx
import corpus_published  # noqa: F401 - adds to the corpus
import httpx
import pytest
from corpus import CALLING, CORPUS, Hostile

QUERY = {"models": {"name": "x", "architecture": "blk_2_fil_4", "input": "16x16x1"}, "datasets": {"name": "x"}}
POSTS = [(each, route) for each in CORPUS for route in each.routes]


def children(service) -> list[str]:
    return [" ".join(line) for line in (each.cmdline() for each in service.tree()) if "service.files.child" in line]


def kept(service) -> list[str]:
    return sorted(path.name for folder in ("spool", "store") for path in (service.home / folder).rglob("*"))


@pytest.mark.parametrize(("each", "route"), POSTS, ids=[f"{each.name}-{route}" for each, route in POSTS])
def test_it_is_refused_in_words_and_nothing_runs(api: httpx.Client, service, tmp_path, each: Hostile, route: str):
    canary = tmp_path / "canary"
    content, before = each.build(str(canary)), kept(service)
    start = time.monotonic()
    params = {name: text for name, text in (QUERY[route] | each.query).items() if text}
    answer = api.post(f"/v1/{route}", params=params, content=content)
    seconds = time.monotonic() - start
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].isprintable() or "\n" in answer.json()["detail"]
    assert answer.json()["title"] != "the file could not be checked", answer.text
    assert corpus_onnx.WORDS.get(each.name, "") in "{title}: {detail}".format_map(answer.json())
    assert seconds < 10
    assert not canary.exists()
    assert api.get("/healthz").status_code == 200
    assert children(service) == []
    assert kept(service) == before


def test_the_corpus_is_large_and_its_names_are_different():
    assert len({each.name for each in CORPUS}) == len(CORPUS) >= 35
    assert all(each.tries for each in CORPUS)


@pytest.mark.parametrize("name", CALLING)
def test_the_calling_pickles_do_call_out_where_nobody_stops_them(tmp_path, name: str):
    canary = tmp_path / "canary"
    (tmp_path / "pickle").write_bytes(CALLING[name](str(canary)))
    loader = "import pickle, sys; pickle.Unpickler(open(sys.argv[1], 'rb')).load()"
    subprocess.run([sys.executable, "-I", "-c", loader, tmp_path / "pickle"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 5
    while not canary.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert canary.exists()
