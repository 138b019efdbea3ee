"""Every view, opened by its address in a real browser: something to read, names for all of it, a silent console."""

from pathlib import Path

import browser
import pytest

CHECKS = Path(__file__).with_name("accessibility.js").read_text()


def paths(things) -> dict[str, str]:
    """An address, and what can be read there once it is drawn."""
    return {
        "/": "Overview",
        "/jobs": "succeeded",
        f"/jobs/{things['capture']}": "Open the flashcards",
        f"/jobs/{things['learn']}": "Open the learner",
        f"/jobs/{things['analyze']}": "Recommended r",
        f"/jobs/{things['failed']}": "ran out of its time",
        "/models": "blk_2_fil_4",
        f"/models/{things['model']}": "Lineage",
        "/datasets": "digits",
        f"/datasets/{things['dataset']}": "Train an autoencoder on it",
        "/flashcards": "small cards",
        f"/flashcards/{things['cards']}": "Pass by pass",
        "/learners": "pupil",
        f"/learners/{things['learner']}": "Timeline",
        "/compare": "Compare strategies",
        "/api": "/v1/learners/{learner_id}/tasks",
    }


def walk(page, things) -> None:
    for path, words in paths(things).items():
        page.open(path, words)
        page.check()


def test_every_view_can_be_read_by_everybody(page, things):
    walk(page, things)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scheme"), [("wide", "dark"), ("narrow", "light"), ("narrow", "dark")])
def test_every_view_small_and_dark(page, things, size, scheme):
    browser.resize(page.driver, browser.NARROW if size == "narrow" else browser.WIDE)
    browser.prefer(page.driver, scheme)
    walk(page, things)
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(18, 21, 24)") == (scheme == "dark")


def test_the_checks_see_what_is_wrong(page):
    page.open("/api", "/v1/models")
    page.run(
        """
        const made = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
        const add = (tag, text) => document.querySelector("main").appendChild(made(tag, text));
        add("button", ""); add("h4", "deep"); add("img", ""); add("input", "");
        add("p", "pale").style.color = "#999";
        """
    )
    found = " ".join(page.run(CHECKS))
    for node in ("button", "input"):
        assert f'{node} "": has no name' in found
    assert "follows a heading of level 2" in found
    assert "has no alt" in found
    assert '"pale": contrast 2.6' in found


@pytest.mark.slow
@pytest.mark.timeout(400)  # nine jobs, on a machine that others use too
def test_a_comparison_has_its_table(page, compared):
    page.open(f"/compare/{compared}", "Average MAE")
    page.check()
    assert page.all("td b.best")
    assert page.all("svg.bars rect.best")
    assert len(page.all("path.curve")) == 2
    assert page.one("a[download='table.csv']").get_attribute("href").endswith("table.csv")
    browser.resize(page.driver, browser.NARROW)
    page.check()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/jobs/job_" + "0" * 32, "/models/nothing", "/learners/learner_" + "f" * 32])
def test_what_is_not_there_is_said(page, path):
    page.open(path, "There is no such thing")
    assert all("status of 4" in message for message in page.errors())


@pytest.mark.slow
def test_cards_are_looked_at_pass_by_pass(page, things):
    page.open(f"/flashcards/{things['cards']}", "Pass by pass")
    slider, canvas = page.one("#passes"), page.one("canvas")
    before = page.run("return arguments[0].toDataURL()", canvas)
    page.run(
        "arguments[0].value = arguments[0].value === '0' ? 1 : 0; arguments[0].dispatchEvent(new Event('input'))",
        slider,
    )
    page.wait(lambda: page.run("return arguments[0].toDataURL()", canvas) != before, "the cards stay what they were")
    page.run("const s = document.querySelector('#before'); s.value = 0; s.dispatchEvent(new Event('input'))")
    page.see("r = 0: maze")
    assert page.errors() == []


@pytest.mark.slow
def test_a_kind_of_job_that_the_page_does_not_know_is_shown_all_the_same(page):
    page.open("/api", "/v1/models")
    told = page.driver.execute_async_script(
        """
        const done = arguments[0], root = document.querySelector("script[type=module]").src.replace(/views.*/, "");
        const result = { accuracy: 0.91, classes: ["cat", "dog"], odd: { a: [1, 2], b: null }, curve: [3, 2, 1] };
        const show = ({ resultPart }) => done(resultPart({ kind: "foretell", result }, new Map()).textContent);
        import(root + "results.js").then(show);
        """
    )
    assert "0.91" in told
    assert "cat, dog" in told
    assert "a 1, 2" in told
