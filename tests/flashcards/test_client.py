import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_type_hints
from uuid import uuid4

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from service_process import free_port

from flashcards import Client
from flashcards.client.fields import CaptureFields, EvaluateFields, TaskFields, TrainFields
from flashcards.client.files import zip_images
from flashcards.contract.specs import CaptureSpec, EvaluateSpec, TaskSpec, TrainSpec
from flashcards.errors import Conflict, ConnectionFailed, FlashcardsError, Invalid, NotFound, TimedOut

NO_JOB = "job_" + "0" * 32


def test_arrays_become_a_dataset(client, digits):
    dataset = client.datasets.push(digits, name="digits")
    assert {name: split.count for name, split in dataset.splits.items()} == {"train": 1000, "test": 200}
    assert client.datasets.push(x=digits["x_test"], name="only x").splits["train"].count == 200


def test_arrays_need_a_name(client, digits):
    with pytest.raises(TypeError, match="name"):
        client.datasets.push(x=digits["x_test"])


def test_a_file_goes_up_in_pieces_and_comes_back_the_same(client, tmp_path):
    file = tmp_path / "noise.npz"
    np.savez(file, x=np.random.default_rng(0).integers(0, 256, (3000, 32, 32), np.uint8))
    told = []
    dataset = client.datasets.push(file, progress=lambda sent, total: told.append((sent, total)))
    assert dataset.name == "noise"
    assert len(told) == 3
    assert told[-1] == (file.stat().st_size,) * 2
    back = client.datasets.download(dataset.id, tmp_path)
    assert back.read_bytes() == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([file.name, f"{dataset.id}.npz"])


def pictures(folder: Path) -> Path:
    for place in range(6):
        label = folder / "shapes" / ("round" if place % 2 else "square")
        label.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8 + place // 4), 40 * place).save(label / f"{place}.png")
    (folder / "shapes/notes.txt").write_text("not an image")
    (folder / "shapes/.thumbnails").mkdir()
    Image.new("L", (2, 2)).save(folder / "shapes/.thumbnails/0.png")
    return folder / "shapes"


def test_a_folder_of_images_becomes_a_dataset(client, tmp_path):
    with pytest.raises(Invalid, match="differ in size"):
        client.datasets.push(pictures(tmp_path))
    dataset = client.datasets.push(tmp_path / "shapes", input=(8, 8, 1))
    split = dataset.splits["train"]
    assert (dataset.name, split.count, split.labels) == ("shapes", 6, ["round", "square"])
    assert client.datasets.push(str(tmp_path / "shapes"), "other", input="8x8x1").digest == dataset.digest


def test_the_same_folder_makes_the_same_zip(tmp_path):
    folder = pictures(tmp_path)
    zip_images(folder, tmp_path / "first.zip")
    (folder / "round/1.png").touch()
    zip_images(folder, tmp_path / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "first.zip") as archive:
        assert archive.namelist() == [
            "round/1.png",
            "round/3.png",
            "round/5.png",
            *(f"square/{n}.png" for n in (0, 2, 4)),
        ]


def test_a_folder_without_images_is_said_before_anything_is_sent(client, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(FlashcardsError, match="no image"):
        client.datasets.push(tmp_path)


def test_a_state_dict_is_pushed_as_torch_saved_it(client, trained, tmp_path):
    first = client.models.get(trained.result.model)
    tensors = load_file(client.models.weights(first.id, tmp_path))
    torch.save({f"module.{name}": tensor for name, tensor in tensors.items()}, tmp_path / "small.pt")
    model = client.models.push(tmp_path / "small.pt", architecture=first.architecture, input=first.input)
    assert model.mapping == {f"module.{name}": name for name in tensors}
    again = load_file(client.models.weights(model.id, tmp_path))
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)


def test_training_makes_a_model_that_beats_a_constant_image(client, trained):
    assert trained.state == "succeeded"
    assert trained.result.validation_mae < trained.result.constant_mae
    model = client.models.get(trained.result.model)
    assert (model.name, model.architecture_name, model.job) == ("small", "blk_1_fil_8", trained.id)
    assert len(client.jobs.metrics(trained.id).metrics["validation_mae"]) == 4


def test_a_prediction_is_waited_for(client, trained, digits_id):
    job = client.predict(model=trained.result.model, dataset=digits_id, rows=[4, 2])
    assert job.state == "succeeded"
    assert [each.row for each in job.result.reconstructed] == [4, 2]
    assert client.models.get(trained.result.model).task == "reconstruct"


def test_weights_can_be_pulled_and_pushed_again(client, trained, tmp_path):
    first = client.models.get(trained.result.model)
    file = client.models.weights(first.id, tmp_path / "small.safetensors")
    again = client.models.push(file)
    assert again.id != first.id
    assert (again.name, again.digest, again.architecture) == ("small", first.digest, first.architecture)
    client.models.delete(again.id)
    with pytest.raises(NotFound):
        client.models.get(again.id)


def test_cards_come_as_arrays(client, captured, tmp_path):
    id = captured.result.flashcards
    assert client.flashcards.get(id).recipe.count == 70
    assert client.flashcards.cards(id, offset=60).shape == (10, 8, 8, 1)
    everything = np.concatenate(list(client.flashcards.all_cards(id)))
    assert everything.shape == (70, 8, 8, 1)
    assert np.array_equal(np.load(client.flashcards.download(id, tmp_path)), everything)
    stored = client.jobs.artifact(captured.id, "cards.npy", tmp_path)
    assert np.array_equal(np.load(stored), everything)
    assert client.flashcards.sheet(id, tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")


def test_storage_names_what_is_kept_and_for_whom(client, trained):
    model = client.models.get(trained.result.model)
    kept = client.storage(limit=1)
    assert (len(kept.items), kept.files > 1, kept.next_cursor is None) == (1, True, False)
    files = {file.digest: file for file in client.stored_files()}
    assert len(files) == kept.files
    assert sum(file.size for file in files.values()) == kept.bytes
    assert model.id in files[model.digest].kept_for
    assert files[model.digest].expires_at is None


def test_direct_downloads_work_where_the_store_gives_no_links(service, client, trained, tmp_path):
    with Client(service.url, direct_downloads=True) as direct:
        file = direct.models.weights(trained.result.model, tmp_path / "direct")
    assert file.read_bytes() == client.models.weights(trained.result.model, tmp_path / "plain").read_bytes()


def test_events_are_told_from_first_to_last(client, trained):
    events = list(client.jobs.events(trained.id))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].data["state"] == "succeeded"
    assert list(client.jobs.events(trained.id, after=2)) == events[2:]
    assert list(client.jobs.events(trained.id, after=len(events))) == []


def test_events_go_on_after_a_dropped_connection(client, relay, trained):
    relay.cuts = [("down", 900), ("down", 900), ("down", 0)]
    with Client(relay.url) as far:
        assert list(far.jobs.events(trained.id)) == list(client.jobs.events(trained.id))
    assert relay.connections == 4


def test_a_post_whose_answer_was_lost_is_not_done_twice(client, relay, trained):
    relay.cuts = [("down", 0)]
    label = {"test": uuid4().hex}
    with Client(relay.url) as far:
        job = far.capture(model=trained.result.model, count=1, labels=label)
    assert relay.connections == 2
    assert [found.id for found in client.jobs.each(label=label)] == [job.id]


def test_an_upload_that_broke_off_is_sent_again(client, relay):
    relay.cuts = [("up", 3_000_000)]
    name = uuid4().hex
    with Client(relay.url) as far:
        dataset = far.datasets.push(x=np.zeros((5000, 32, 32), np.uint8), name=name)
    assert relay.connections == 2
    assert [found.id for found in client.datasets.each() if found.name == name] == [dataset.id]


def test_a_download_that_broke_off_starts_again(relay, client, digits_id, tmp_path):
    relay.cuts = [("down", 20_000)]
    with Client(relay.url) as far:
        file = far.datasets.download(digits_id, tmp_path)
    assert relay.connections == 2
    assert file.stat().st_size == client.datasets.get(digits_id).size
    assert list(tmp_path.iterdir()) == [file]


def test_a_deletion_whose_answer_was_lost_is_a_deletion(client, relay, digits):
    dataset = client.datasets.push(x=digits["x_test"], name="short-lived")
    relay.cuts = [("down", 0)]
    with Client(relay.url) as far:
        far.datasets.delete(dataset.id)
        with pytest.raises(NotFound):
            far.datasets.delete(dataset.id)


def test_pages_end_where_the_list_ends(client, digits_id, trained, captured):
    page = client.jobs.list(limit=1)
    assert len(page.items) == 1
    assert client.jobs.list(limit=1, cursor=page.next_cursor).items != page.items
    assert {trained.id, captured.id} <= {job.id for job in client.jobs.each(state="succeeded")}
    assert {job.kind for job in client.jobs.each(kind="capture")} == {"capture"}
    assert digits_id in [dataset.id for dataset in client.datasets.each()]


def test_a_job_can_be_given_up_on_cancelled_retried_and_deleted(client, trained, busy):
    job = client.capture(model=trained.result.model)
    with pytest.raises(TimedOut, match=job.id):
        client.jobs.wait(job.id, timeout=0.3)
    with pytest.raises(TimeoutError):
        client.jobs.wait(job.id, timeout=0.3, on_event=lambda event: None)
    with pytest.raises(Conflict, match="cancel it"):
        client.jobs.delete(job.id)
    assert client.jobs.cancel(job.id).state == "cancelled"
    assert client.jobs.retry(job.id).state == "queued"
    assert client.jobs.cancel(job.id).state == "cancelled"
    assert client.jobs.wait(job.id, timeout=10).state == "cancelled"
    client.jobs.delete(job.id)
    with pytest.raises(NotFound):
        client.jobs.get(job.id)


def test_a_spec_can_be_checked_without_queueing_it(client, digits_id):
    spec = {"kind": "train", "dataset": digits_id, "architecture": "blk_2_fil_8", "labels": {"only": "checked"}}
    assert client.submit(spec, validate_only=True).spec.epochs == 100
    assert client.submit(TrainSpec(**spec), validate_only=True).queue == "cpu"
    assert list(client.jobs.each(label={"only": "checked"})) == []


def test_a_refusal_names_the_fields(client, digits_id):
    with pytest.raises(Invalid) as refused:
        client.train(dataset=digits_id, epochs=0, architecture="resnet")
    assert refused.value.status == 422
    assert {error.field for error in refused.value.problem.errors} >= {"body.train.epochs"}


def test_every_error_of_ours_is_one_kind(client):
    with pytest.raises(FlashcardsError, match=NO_JOB):
        client.jobs.get(NO_JOB)
    with pytest.raises(FlashcardsError, match="empty"):
        client.jobs.get("")


def test_where_nobody_answers_it_says_what_to_do():
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        assert not client.is_ready()
        with pytest.raises(ConnectionFailed, match="flashcards serve"):
            client.jobs.list()


def test_an_address_needs_a_scheme():
    with pytest.raises(ValueError, match="http://"):
        Client("localhost:8642")


def test_the_address_comes_from_the_environment(service, monkeypatch):
    monkeypatch.setenv("FLASHCARDS_URL", service.url)
    with Client() as client:
        assert client.is_ready()


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"dataset"} | set(get_type_hints(TrainFields)), TrainSpec),
        ({"model"} | set(get_type_hints(CaptureFields)), CaptureSpec),
        (set(get_type_hints(EvaluateFields)), EvaluateSpec),
        (set(get_type_hints(TaskFields)), TaskSpec),
    ],
    ids=["train", "capture", "evaluate", "task"],
)
def test_every_field_of_a_spec_is_an_argument(fields, spec):
    assert fields == set(spec.model_fields) - {"kind"}


def test_importing_is_light():
    heavy = "{'httpx', 'pydantic', 'numpy', 'torch', 'rich', 'typer'} & set(sys.modules)"
    far = "{'torch', 'sqlalchemy', 'celery', 'sklearn', 'service', 'ledger'} & set(sys.modules)"
    script = f"import sys, flashcards; assert not {heavy}, {heavy}; flashcards.Client; assert not {far}, {far}"
    subprocess.run([sys.executable, "-c", script], check=True)
