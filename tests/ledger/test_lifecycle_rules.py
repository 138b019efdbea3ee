"""Whatever is done to a job in whatever order, its record stays sound."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from soundness import assert_ledger_sound
from sqlalchemy import update

from flashcards.contract.specs import job_spec
from ledger import jobs, lifecycle
from ledger.admission import Admitted
from ledger.db import Database
from ledger.errors import Conflict
from ledger.migrate import migrate
from ledger.tables import DEFAULT_TENANT, Job


class Lifecycle(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.db = Database(f"sqlite:///{Path(self.folder.name) / 'ledger.db'}")
        migrate(self.db)
        self.claims: list[lifecycle.Claim] = []
        spec = job_spec.validate_python({"kind": "capture", "model": "model_" + "0" * 32, "max_attempts": 2})
        with self.db.write() as session:
            admitted = Admitted(queue="cpu", inputs=[spec.model])
            self.job_id = jobs.create(session, DEFAULT_TENANT, spec, admitted).id

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    @rule()
    def claim(self) -> None:
        got = lifecycle.claim(self.db, "cpu", "worker_a", 60, self.job_id)
        if got is not None:
            self.claims.append(got)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), state=st.sampled_from(["succeeded", "failed", "cancelled"]))
    def settle(self, data, state) -> None:
        held = data.draw(st.sampled_from(self.claims))
        with self.db.write() as session:
            settled = lifecycle.settle(session, held, state, reason="said so")
        assert not settled or held == self.claims[-1]

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data) -> None:
        with self.db.write() as session:
            lifecycle.release(session, data.draw(st.sampled_from(self.claims)), "deploy")

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def report(self, data) -> None:
        held = data.draw(st.sampled_from(self.claims))
        pulse = jobs.record(self.db, held, 60, jobs.Reports(entries=[("log", {"line": "x"})], progress={"step": 1}))
        assert pulse is None or held == self.claims[-1]

    @rule()
    def expire(self) -> None:
        with self.db.write() as session:
            session.execute(update(Job).where(Job.state == "running").values(lease_until=1.0))
        lifecycle.expire(self.db)

    @rule()
    def cancel(self) -> None:
        try:
            with self.db.write() as session:
                lifecycle.request_cancel(session, DEFAULT_TENANT, self.job_id)
        except Conflict:
            pass

    @rule()
    def retry(self) -> None:
        try:
            with self.db.write() as session:
                lifecycle.retry(session, DEFAULT_TENANT, self.job_id)
        except Conflict:
            pass

    @invariant()
    def sound(self) -> None:
        assert_ledger_sound(self.db)


LASTING = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "stateful_step_count": 20}


class TestRules(Lifecycle.TestCase):
    settings = settings(max_examples=4, **LASTING)


@pytest.mark.slow
class TestRulesAtLength(Lifecycle.TestCase):
    settings = settings(max_examples=25, **LASTING)
