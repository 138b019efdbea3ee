"""Rows of the ledger as the resources of the contract."""

from collections.abc import Iterable, Mapping, Sequence

from flashcards.contract import learners, resources
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.keys import Key
from flashcards.contract.results import Memory
from flashcards.contract.submissions import Submission
from flashcards.contract.uploads import Upload
from flashcards.contract.webhooks import Delivery, Try, Webhook
from ledger import tables, uploads
from ledger.clock import as_datetime, maybe_datetime
from ledger.summaries import job_summary
from service.paging import encode_cursor


def key(row: tables.ApiKey) -> Key:
    return Key(
        id=row.id,
        name=row.name,
        tenant=row.tenant,
        hint=row.hint,
        scopes=row.scopes,
        requests_per_minute=row.requests_per_minute,
        max_unfinished_jobs=row.max_unfinished_jobs,
        max_stored_bytes=row.max_stored_bytes,
        retain_data=row.retain_data,
        created_at=as_datetime(row.created_at),
        expires_at=maybe_datetime(row.expires_at),
        revoked_at=maybe_datetime(row.revoked_at),
        last_used_at=maybe_datetime(row.last_used_at),
    )


def upload(row: tables.Upload, missing: list[int]) -> Upload:
    answer = uploads.answered(row)
    return Upload(
        id=row.id,
        digest=row.digest,
        size=row.size,
        part_size=row.part_size,
        parts=uploads.count(row),
        missing=missing,
        became=None if answer is None else answer.location,
        created_at=as_datetime(row.created_at),
        expires_at=as_datetime(row.expires_at),
    )


def model(row: tables.Model) -> resources.Model:
    architecture = architecture_spec.validate_python(row.architecture)
    return resources.Model(
        id=row.id,
        name=row.name,
        architecture=architecture,
        architecture_name=architecture.name,
        task=architecture.task,
        input=row.input,
        range=row.range,
        parameters=row.parameters,
        digest=row.digest,
        size=row.size,
        origin=row.origin,
        job=row.job_id,
        probe=row.probe_digest,
        capsule=row.capsule,
        mapping=row.mapping,
        uploaded_digest=row.uploaded_digest,
        created_at=as_datetime(row.created_at),
    )


def dataset(row: tables.Dataset) -> resources.Dataset:
    return resources.Dataset(
        id=row.id,
        name=row.name,
        digest=row.digest,
        size=row.size,
        format=row.format,
        splits=row.splits,
        preparation=row.preparation,
        uploaded_digest=row.uploaded_digest,
        created_at=as_datetime(row.created_at),
        expires_at=maybe_datetime(row.expires_at),
    )


def flashcards(row: tables.Flashcards) -> resources.Flashcards:
    return resources.Flashcards(
        id=row.id,
        name=row.name,
        model=row.model_id,
        job=row.job_id,
        recipe=row.recipe,
        digest=row.digest,
        size=row.size,
        materialised=row.materialised,
        created_at=as_datetime(row.created_at),
    )


def learner(row: tables.Learner, head: tables.Version | None) -> learners.Learner:
    architecture = architecture_spec.validate_python(row.architecture)
    memory = Memory.model_validate(head.memory) if head else None
    return learners.Learner(
        id=row.id,
        name=row.name,
        model=row.model_id,
        autoencoder=row.autoencoder_id,
        compare=row.compare_id,
        scenario=row.scenario,
        noise=row.noise if row.scenario == "denoising" else None,
        clip=row.clip,
        architecture=architecture,
        architecture_name=architecture.name,
        autoencoder_architecture=row.autoencoder,
        input=row.input,
        range=row.range,
        version=row.version,
        tasks=[measure["task"] for measure in head.measures] if head else [],
        keeps_data=head is not None and head.keeps_data,
        memory=memory,
        network_mb=memory and memory.network_mb,
        external_mb=memory and memory.external_mb,
        created_at=as_datetime(row.created_at),
    )


def version(row: tables.Version, capsules: Mapping[int, tables.VersionCapsule]) -> learners.Version:
    kept = [capsules.get(task) for task in range(1, len(row.measures) + 1)]
    return learners.Version(
        learner=row.learner_id,
        number=row.number,
        parent=row.parent,
        task=row.task,
        dataset=row.dataset_id,
        test_dataset=row.test_dataset_id,
        repeated=row.repeated,
        job=row.job_id,
        strategy=row.strategy,
        digest=row.digest,
        size=row.size,
        architecture=row.architecture,
        autoencoder_digest=row.autoencoder_digest,
        capsules=[capsule and capsule.digest for capsule in kept],
        measures=row.measures,
        recipes=row.recipes,
        memory=row.memory,
        keeps_data=row.keeps_data,
        seconds=row.seconds,
        created_at=as_datetime(row.created_at),
    )


def job(
    row: tables.Job,
    queue_position: int | None,
    attempts: Iterable[tables.Attempt] = (),
    artifacts: Iterable[tables.Artifact] = (),
) -> resources.Job:
    return resources.Job(
        **dict(job_summary(row)),
        spec=row.spec,
        queue=row.queue,
        queue_position=queue_position,
        attempts=[attempt(each) for each in attempts],
        artifacts=[artifact(each) for each in artifacts],
    )


def submission(row: tables.Submission) -> Submission:
    return Submission(
        id=row.key,
        state="rejected" if row.job_id is None else "accepted",
        job=row.job_id,
        problem=row.problem,
        conflicts=row.conflicts,
        created_at=as_datetime(row.created_at),
    )


def attempt(row: tables.Attempt) -> resources.Attempt:
    return resources.Attempt(
        number=row.number,
        worker=row.worker_id,
        started_at=as_datetime(row.started_at),
        ended_at=maybe_datetime(row.ended_at),
        outcome=row.outcome,
        reason=row.reason,
    )


def artifact(row: tables.Artifact) -> resources.Artifact:
    return resources.Artifact(
        name=row.name,
        media_type=row.media_type,
        digest=row.digest,
        size=row.size,
        attempt=row.attempt,
        created_at=as_datetime(row.created_at),
    )


def event(row: tables.Event) -> resources.Event:
    return resources.Event(seq=row.seq, kind=row.kind, attempt=row.attempt, at=as_datetime(row.at), data=row.data)


def metrics(rows: Sequence[tables.Metric]) -> resources.Metrics:
    named: dict[str, list[resources.MetricPoint]] = {}
    for row in rows:
        point = resources.MetricPoint(step=row.step, value=row.value, attempt=row.attempt)
        named.setdefault(row.name, []).append(point)
    return resources.Metrics(metrics=named)


def webhook(row: tables.Webhook) -> Webhook:
    return Webhook(
        id=row.id,
        name=row.name,
        url=row.url,
        events=row.events,
        labels=row.labels,
        hint=row.hint,
        previous_until=maybe_datetime(row.previous_until),
        created_at=as_datetime(row.created_at),
    )


def delivery(row: tables.Delivery, tries: Iterable[tables.DeliveryTry]) -> Delivery:
    return Delivery(
        id=row.id,
        webhook=row.webhook_id,
        type=row.type,
        state=row.state,
        created_at=as_datetime(row.created_at),
        next_try_at=maybe_datetime(row.due_at),
        job=row.job_id,
        learner=row.learner_id,
        tries=[_try(row, each) for each in tries],
    )


def _try(row: tables.Delivery, each: tables.DeliveryTry) -> Try:
    left = each.seconds is None and (each.number < row.tries or row.leased_until is None)
    reason = "its worker ended in the middle: whether the receiver has it is not known" if left else each.reason
    at = as_datetime(each.started_at)
    return Try(number=each.number, at=at, seconds=each.seconds, status=each.status, reason=reason)


def page(items: Sequence[resources.Item], last_id: str | None) -> resources.Page[resources.Item]:
    return resources.Page(items=list(items), next_cursor=encode_cursor(last_id))
