from itertools import pairwise

from flashcards.contract.resources import Progress
from worker import stages
from worker.messages import SaidStage
from worker.stages import Stages


def told(*units: str | None) -> list[SaidStage]:
    said: list[SaidStage] = []
    work = Stages(said.append)
    for unit in units:
        work.heard(Progress(unit=unit))
    work.finish()
    return said


def test_what_is_read_what_is_counted_and_what_is_written():
    said = told("cards", "cards", "cards")
    assert [stage.name for stage in said] == ["load", "cards", "write"]
    for before, after in pairwise(said):
        assert before.began_at <= before.ended_at == after.began_at


def test_one_for_every_change_of_unit():
    assert [stage.name for stage in told("passes", "passes", "epochs", None)] == [
        "load",
        "passes",
        "epochs",
        "work",
        "write",
    ]


def test_who_never_got_to_work_only_read():
    assert [stage.name for stage in told()] == ["load"]


def test_there_is_an_end_to_them(monkeypatch):
    monkeypatch.setattr(stages, "MOST", 5)
    assert len(told(*["passes", "epochs"] * 50)) == 5
