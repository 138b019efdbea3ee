"""What a runner makes of its assignment."""

from flashcards.contract.specs import job_spec
from worker.messages import Assignment, StagedDataset
from worker.runner import as_work

SPEC = job_spec.validate_python(
    {"kind": "train", "dataset": f"dataset_{'0' * 32}", "architecture": "blk_2_fil_16", "batch_size": 16}
)


def test_the_shape_of_the_images_says_how_many_threads_are_worth_it():
    def threads(shape: str | None) -> int:
        dataset = StagedDataset(path="/in/dataset.npz", digest="d", input=shape)
        given = Assignment(spec=SPEC, out="/out", dataset=dataset, resume_seconds=10, device="cpu", threads=8)
        return as_work(Assignment.model_validate_json(given.model_dump_json())).threads

    assert [threads("16x16x1"), threads("128x128x3"), threads(None)] == [1, 8, 8]
