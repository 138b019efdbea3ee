from benchmarks.reports import PAGES, words_of, write_report

CAPTURE, CONTINUAL, CLASSES = PAGES


def test_every_page_leads_to_those_that_are_there(tmp_path):
    capture = write_report(tmp_path / CAPTURE, ["# Capture", "", "Made so."], [("Table 1", ["| a |"])])
    assert "classes (not run: `make reproduce-classification`)" in capture.read_text()
    continual = write_report(tmp_path / CONTINUAL, ["# Tasks", "", "Made otherwise."], [("Table 3", ["| b |"])])
    assert f"[learning task after task]({CONTINUAL})" in capture.read_text()
    assert f"[capture]({CAPTURE}), **learning task after task** (this page), classes (not run" in continual.read_text()
    assert not (tmp_path / CLASSES).exists()


def test_a_page_written_anew_leaves_the_others_as_they_were(tmp_path):
    pages = [write_report(tmp_path / name, [f"# {name}", "", "Made so."], [("Table", ["| a |"])]) for name in PAGES]
    before = [page.read_text() for page in pages]
    write_report(pages[1], ["# New", "", "Made again."], [("Other", ["| b |"])])
    after = [page.read_text() for page in pages]
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1].startswith("# New\n\nReports: ")
    assert after[1].endswith("\n\nMade again.\n\n## Other\n\n| b |\n")


def test_where_things_lie_does_not_decide_about_figures():
    assert words_of(["--epochs", "5", "--docs", "x", "--kept"]) == ["--epochs", "5", "--kept"]
