import numpy as np
import pytest

from engine.class_measures import (
    accuracy,
    accuracy_given_head,
    calibration,
    confusion,
    constant_accuracy,
    constant_log_loss,
    log_loss,
)

#: Scores that are logarithms of probabilities: what they say can be read off.
SURE = np.log([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.5001, 0.4999]])
LABELS = np.array([0, 1, 1, 0])


def test_accuracy_and_log_loss():
    assert accuracy(SURE, LABELS) == 0.75
    assert log_loss(SURE, LABELS) == pytest.approx(-np.log([0.9, 0.1, 0.8, 0.5001]).mean())
    assert log_loss(SURE + 1000, LABELS) == pytest.approx(log_loss(SURE, LABELS))


def test_the_calibration_of_a_table_that_can_be_worked_out_by_hand():
    error, bins = calibration(SURE, LABELS)
    # Two answers of 0.9, one of them right; one of 0.8, right; one of 0.5001, right.
    assert error == pytest.approx(2 / 4 * abs(0.5 - 0.9) + 1 / 4 * abs(1 - 0.8) + 1 / 4 * abs(1 - 0.5001))
    filled = {place: each for place, each in enumerate(bins) if each["images"]}
    assert {place: each["images"] for place, each in filled.items()} == {7: 1, 11: 1, 13: 2}
    assert filled[13]["accuracy"] == 0.5
    assert filled[13]["confidence"] == pytest.approx(0.9)
    assert (len(bins), bins[0]["from"], bins[-1]["to"]) == (15, 0, 1)


def test_who_is_right_as_often_as_it_thinks_is_calibrated():
    thinks = np.log(np.tile([0.75, 0.25], (4, 1)))
    assert calibration(thinks, np.array([0, 0, 0, 1]))[0] == pytest.approx(0)
    assert calibration(thinks, np.array([1, 1, 1, 1]))[0] == pytest.approx(0.75)


def test_full_certainty_falls_into_the_last_bin():
    error, bins = calibration(np.array([[1000.0, 0.0]]), np.array([0]))
    assert (error, bins[-1]["images"]) == (0, 1)


def test_the_confusion_matrix_has_a_row_a_class_and_a_column_an_answer():
    y_NK = np.eye(3)[[0, 1, 1, 2, 0]]
    assert confusion(y_NK, np.array([0, 0, 1, 1, 1])).tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


def test_given_the_head_only_its_own_classes_compete():
    # Two heads, of two and of three classes. The second image is of the second head, which the first one shouts down.
    y_NK = np.array([[3.0, 1.0, 2.0, 0.0, 0.0], [9.0, 0.0, 1.0, 5.0, 2.0]])
    labels = np.array([0, 3])
    assert accuracy(y_NK, labels) == 0.5
    assert accuracy_given_head(y_NK, labels, [2, 3]) == 1.0
    assert accuracy_given_head(y_NK, np.array([1, 4]), [2, 3]) == 0.0


def test_who_does_not_look_at_the_image():
    known, labels = np.array([0, 0, 0, 1]), np.array([0, 1])
    assert constant_accuracy(known, labels) == 0.5
    assert constant_log_loss(known, labels) == pytest.approx(-np.log([0.75, 0.25]).mean())
