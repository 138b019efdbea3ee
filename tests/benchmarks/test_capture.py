"""What `make bench-capture` comes to; each of its bars has a test of its own."""

import pytest

from benchmarks import capture, paper


@pytest.fixture
def bars(monkeypatch):
    def make(**gates: bool) -> list[tuple[str, list[str]]]:
        seen: list[tuple[str, list[str]]] = []

        def bar(name: str, holds: bool):
            return lambda words: seen.append((name, words)) or (0 if holds else 1)

        monkeypatch.setattr(capture, "BARS", {name: bar(name, holds) for name, holds in gates.items()})
        return seen

    return make


def test_every_bar_runs_and_one_missed_gate_is_told(bars, capsys):
    seen = bars(fidelity=True, counts=False, speed=True)
    assert capture.main(["--bar", "fidelity,counts,speed", "--threads", "1"]) == 1
    assert seen == [(name, ["--threads", "1"]) for name in ("fidelity", "counts", "speed")]
    assert "gates missed: counts" in capsys.readouterr().out


def test_one_bar_alone(bars, capsys):
    seen = bars(fidelity=False, speed=True)
    assert capture.main(["--bar", "speed"]) == 0
    assert seen == [("speed", [])]
    assert "every gate holds" in capsys.readouterr().out


def test_the_counts_are_held(monkeypatch, capsys):
    assert capture.main(["--bar", "counts"]) == 0
    monkeypatch.setitem(paper.LATENTS, "blk_3_fil_64", 1025)
    assert capture.main(["--bar", "counts"]) == 1
    assert "FAILS" in capsys.readouterr().out
