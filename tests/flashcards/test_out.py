"""What leaves the service by client and command line: ONNX, bundles, cards as npz and parquet and torch datasets."""

import asyncio
import io
import json

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from flashcards import AsyncClient
from flashcards.cli import app
from flashcards.errors import ApiError


@pytest.fixture
def run(service):
    def run(*arguments: object, exit_code: int = 0):
        done = CliRunner().invoke(app, ["--url", service.url, *map(str, arguments)])
        assert done.exit_code == exit_code, done.output
        return done

    return run


class TestModels:
    def test_export_makes_and_downloads_an_onnx_file(self, run, trained, tmp_path):
        done = run("models", "export", trained.result.model, "--to", tmp_path / "net.onnx")
        assert "answers as the model does, within" in done.stderr
        assert done.stdout.strip() == str(tmp_path / "net.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
        assert session.run(None, {"x": np.zeros((2, 1, 8, 8), np.float32)})[0].shape == (2, 1, 8, 8)

    def test_export_for_programs(self, run, trained, tmp_path):
        told = json.loads(run("models", "export", trained.result.model, "--to", tmp_path, "--json").stdout)
        assert told == {"path": str(tmp_path / f"{trained.result.model}.onnx")}

    def test_an_export_is_a_job_as_any_other(self, client, trained):
        result = client.export(trained.result.model).wait().result
        assert result.max_abs_difference <= 1e-5
        assert result.model == trained.result.model

    def test_a_bundle_goes_out_and_comes_in(self, run, client, trained, tmp_path):
        path = run("models", "bundle", trained.result.model, "--to", tmp_path).stdout.strip()
        id = run("models", "import", path, "--name", "twin").stdout.strip()
        twin = client.models.get(id)
        assert (twin.name, twin.origin) == ("twin", "import")
        assert twin.digest == client.models.get(trained.result.model).digest
        told = run("models", "lineage", id).stdout
        assert f"imported from  {trained.result.model}" in told
        assert "origin there   train" in told
        taken = json.loads(run("models", "import", path, "--json").stdout)
        assert taken["model"]["name"] == "small"

    def test_what_is_no_bundle_is_refused_in_words(self, run, tmp_path):
        (tmp_path / "file").write_bytes(b"nothing")
        assert "a bundle is a zip" in run("models", "import", tmp_path / "file", exit_code=1).stderr

    def test_both_clients_have_them(self, service, client, trained, tmp_path):
        async def work():
            async with AsyncClient(service.url) as other:
                path = await other.models.bundle(trained.result.model, tmp_path)
                return await other.models.import_bundle(path)

        assert asyncio.run(work()).model.digest == client.models.get(trained.result.model).digest


class TestLearners:
    def test_a_version_goes_out_and_comes_in(self, run, client, trained, tmp_path):
        learner = client.learners.create(model=trained.result.model)
        path = run("learners", "bundle", learner.id, 0, "--to", tmp_path).stdout.strip()
        id = run("models", "import", path).stdout.strip()
        assert client.learners.get(id).tasks == learner.tasks
        assert client.learners.lineage(id).imported.id == learner.id


class TestCards:
    @pytest.fixture(scope="class")
    @classmethod
    def expected(cls, client, captured) -> np.ndarray:
        return client.flashcards.get(captured.result.flashcards).cards()

    def test_as_npz(self, run, captured, expected, tmp_path):
        path = run("cards", "pull", captured.result.flashcards, "--to", tmp_path / "cards.npz").stdout.strip()
        with np.load(path) as arrays:
            assert np.array_equal(arrays["x"], expected)
        assert [each.name for each in tmp_path.iterdir()] == ["cards.npz"]

    def test_as_parquet_of_pictures(self, run, captured, expected, tmp_path):
        path = run("cards", "pull", captured.result.flashcards, "--format", "parquet", "--to", tmp_path).stdout.strip()
        table = pq.read_table(path)
        rows = table.column("image").to_pylist()
        assert (len(rows), rows[69]["path"]) == (70, "card-000069.png")
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(row["bytes"]))) for row in rows])
        np.testing.assert_allclose(pixels / 255, expected[..., 0], atol=0.5 / 255 + 1e-6)
        metadata = table.schema.metadata
        assert json.loads(metadata[b"huggingface"])["info"]["features"] == {"image": {"_type": "Image"}}
        assert json.loads(metadata[b"flashcards.recipe"])["count"] == 70

    def test_what_went_out_comes_in_as_a_dataset(self, client, captured, tmp_path):
        path = client.flashcards.download(captured.result.flashcards, tmp_path, "parquet")
        split = client.datasets.push(path).splits["train"]
        assert (split.count, str(split.shape), split.classes) == (70, "8x8x1", None)

    def test_as_a_torch_dataset(self, captured, expected, tmp_path):
        for dataset in (captured.dataset(), captured.dataset(tmp_path)):
            found = torch.stack([dataset[place] for place in range(len(dataset))])
            assert torch.equal(found, torch.from_numpy(expected).permute(0, 3, 1, 2))
        assert [each.suffix for each in tmp_path.iterdir()] == [".npy"]

    def test_a_recipe_alone_has_no_pictures(self, client, trained):
        job = client.capture(trained.result.model, count=2, materialise=False).wait()
        with pytest.raises(ApiError, match="only the recipe"):
            client.flashcards.download(job.result.flashcards, ".", "parquet")

    def test_a_column_can_be_named(self, run, tmp_path):
        import pyarrow as pa

        buffer = io.BytesIO()
        Image.new("L", (8, 8), 7).save(buffer, "PNG")
        table = pa.table({"a": [buffer.getvalue()] * 3, "b": [b""] * 3, "kind": [1, 0, 1]})
        pq.write_table(table, tmp_path / "images.parquet")
        assert "?image=" in run("datasets", "push", tmp_path / "images.parquet", exit_code=1).stderr
        told = run("datasets", "push", tmp_path / "images.parquet", "--image", "a", "--label", "kind").stdout
        assert "3 images of 8x8x1" in told
        assert "2 classes" in told
