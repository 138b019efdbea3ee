"""What a learner of classes can learn next, without a database: rows that were never stored are enough."""

import pytest

from flashcards.contract.image import ImageShape
from ledger.class_fits import Known, TaskClasses, check_class_lesson, place_in
from ledger.errors import Unfit
from ledger.tables import Dataset, Learner

SHAPE = ImageShape(8, 8, 1)


def learner(scenario="task_incremental", architecture="tasknet_width_2_hidden_8_latent_4") -> Learner:
    autoencoder = "tasknet_ae_width_2_hidden_8_latent_4"
    return Learner(scenario=scenario, architecture=architecture, autoencoder=autoencoder, range=[0.0, 1.0])


def split(low: int | None, high: int | None, count=40, names=None) -> dict:
    classes = None if low is None else high - low + 1
    told = {"count": count, "shape": "8x8x1", "dtype": "uint8", "low": 0, "high": 255, "classes": classes}
    return told | {"lowest_label": low, "highest_label": high, "labels": names}


def dataset(low=0, high=2, digest="d", tests=None, **fields) -> Dataset:
    splits = {"train": split(low, high, **fields)} | ({} if tests is None else {"test": split(*tests)})
    return Dataset(digest=digest, splits=splits)


def check(rows: Dataset, known: Known = Known(), pupil: Learner | None = None) -> Known:
    return check_class_lesson(pupil or learner(), known, rows, SHAPE)


def refusal(*words, **fields) -> str:
    with pytest.raises(Unfit) as unfit:
        check(*words, **fields)
    assert unfit.value.field == "dataset"
    return unfit.value.detail


class TestTasks:
    def test_a_head_is_added_for_the_classes_of_each(self):
        first = check(dataset(0, 2, "a"))
        both = check(dataset(3, 6, "b"), first)
        assert (first.heads, both.heads) == ((3,), (3, 4))
        assert place_in(learner(), both)[1:] == (3, 4, 3)

    def test_classes_of_one_name_belong_to_one_head(self):
        known = check(dataset(0, 1, "a", names=["cat", "dog"]))
        words = refusal(dataset(0, 1, "b", names=["dog", "horse"]), known)
        assert words == "its classes overlap those of task 1: both have dog"
        assert check(dataset(0, 1, "b", names=["cow", "horse"]), known).heads == (2, 2)

    def test_so_do_classes_of_one_number_where_numbers_go_through_all_tasks(self):
        known = check(dataset(0, 4, "a"))
        assert "its labels 4 to 7 overlap those of task 1, 0 to 4" in refusal(dataset(4, 7, "b"), known)
        assert check(dataset(0, 4, "b"), known).heads == (5, 5)  # each counts from 0: nothing says that they are equal

    def test_the_same_images_have_a_head_already(self):
        assert "the same images" in refusal(dataset(0, 1, "a"), check(dataset(0, 1, "a")))

    def test_a_head_that_was_named_is_kept_to(self):
        pupil = learner(architecture="tasknet_3_2_width_2_hidden_8_latent_4")
        known = check(dataset(0, 2, "a"), pupil=pupil)
        assert "3 classes, and head 2 of" in refusal(dataset(0, 2, "b"), known, pupil=pupil)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (dataset(None, None), "needs labels"),
        (dataset(-1, 1), "number them from 0"),
        (dataset(2, 2), "nothing to tell apart"),
        (dataset(0, 9, count=10), "every class has one image"),
        (dataset(0, 1, tests=(0, 2)), "the labels of test go from 0 to 2, and the task's are 0 to 1"),
        (dataset(0, 1, tests=(None, None)), "that it is measured on have no labels"),
    ],
)
def test_labels_that_cannot_be_learnt(rows, words):
    assert words in refusal(rows)


def test_sessions_have_the_classes_of_the_first():
    pupil = learner("new_instance")
    known = check(dataset(0, 2, "a"), pupil=pupil)
    assert check(dataset(0, 1, "a"), known, pupil=pupil).heads == (3,)
    assert "the learner's classes are 0 to 2" in refusal(dataset(0, 3, "b"), known, pupil=pupil)
    assert known.tasks == [TaskClasses(count=3, dataset="a")]
