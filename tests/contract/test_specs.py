import pytest
from pydantic import ValidationError

from flashcards.contract.specs import job_spec

MODEL, DATASET = "model_" + "0" * 32, "dataset_" + "0" * 32


def test_the_defaults_are_the_paper_s_or_measured():
    train = job_spec.validate_python({"kind": "train", "dataset": DATASET})
    assert (train.architecture.name, train.epochs, train.patience) == ("blk_4_fil_64", 100, 20)
    assert (train.learning_rate, train.validation_share) == (1e-3, 0.1)
    capture = job_spec.validate_python({"kind": "capture", "model": MODEL})
    assert (capture.r, capture.count, capture.source) == ("auto", 5000, "auto")


def test_a_spec_survives_its_way_through_the_record():
    spec = job_spec.validate_python(
        {"kind": "train", "dataset": DATASET, "architecture": "blk_2_fil_8", "range": [-1, 1]}
    )
    assert job_spec.validate_python(spec.model_dump(mode="json")) == spec


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "capture"},
        {"kind": "capture", "model": DATASET},
        {"kind": "capture", "model": MODEL, "r": 0, "source": "maze"},
        {"kind": "evaluate", "dataset": DATASET},
        {"kind": "analyze", "model": MODEL, "retrain": [3]},
        {"kind": "analyze", "model": MODEL, "dataset": DATASET, "max_r": 5, "retrain": [6]},
        {"kind": "capture", "model": MODEL, "r": 1.5},
        {"kind": "capture", "model": MODEL, "count": 10**12},
        {"kind": "capture", "model": MODEL, "seed": -1},
        {"kind": "capture", "model": MODEL, "labels": {"k": "v" * 300}},
        {"kind": "capture", "model": MODEL, "labels": {str(n): "" for n in range(17)}},
        {"kind": "capture", "model": MODEL, "backend": "torch; rm"},
        {"kind": "train", "dataset": DATASET, "learning_rate": 0},
        {"kind": "train", "dataset": DATASET, "learning_rate": float("nan")},
        {"kind": "train", "dataset": DATASET, "validation_share": 1},
        {"kind": "train", "dataset": DATASET, "typo": 1},
        {
            "kind": "train",
            "dataset": DATASET,
            "range": [-1, 1],
            "architecture": {"blocks": 2, "filters": 4, "head": "sigmoid"},
        },
        {"model": MODEL},
    ],
)
def test_nonsense_is_refused(bad):
    with pytest.raises(ValidationError):
        job_spec.validate_python(bad)
