import pytest

from engine.advice import advise


def test_the_first_minimum_of_the_distance_decides():
    advice = advise([0.5, 0.2, 0.1, 0.01, 0.01], [9, 4, 2, 1, 3, 5], 0.15, "dataset", starts_as_image=True)
    assert (advice.recommended_r, advice.p2_at, advice.p1_from) == (3, 3, 3)
    assert "first minimum of FLSD against the dataset, 1, from 9" in advice.reason
    assert "P1 holds there: the largest step, 0.1, is below" in advice.reason


def test_where_p1_comes_later_it_says_when():
    advice = advise([0.5, 0.4, 0.3, 0.01], [9, 4, 5, 6, 7], 0.05, "capsule", starts_as_image=True)
    assert (advice.recommended_r, advice.p1_from) == (1, 4)
    assert "P1 does not hold there" in advice.reason
    assert "below after pass 4" in advice.reason


def test_where_p1_never_comes_it_says_so():
    advice = advise([0.5, 0.4, 0.3], [9, 4, 5, 6], 0.05, "capsule", starts_as_image=True)
    assert advice.p1_from is None
    assert "none of the 3 passes" in advice.reason


def test_a_distance_that_still_falls_has_no_minimum_yet():
    advice = advise([0.5, 0.4, 0.3], [9, 4, 3, 2], 1, "dataset", starts_as_image=True)
    assert (advice.recommended_r, advice.p2_at) == (3, None)
    assert "larger max_r" in advice.reason


@pytest.mark.parametrize(("starts_as_image", "r"), [(True, 1), (False, 0)])
def test_a_pattern_is_no_card_before_a_pass_and_a_decoded_latent_is_one(starts_as_image, r):
    assert advise([0.1, 0.1], [1, 2, 3], 1, "dataset", starts_as_image).recommended_r == r


def test_without_a_pass_the_pass_that_was_not_taken_counts_for_p1():
    assert "P1 holds there: the largest step, 0.1" in advise([0.1, 9], [1, 2, 3], 0.2, "capsule", False).reason


@pytest.mark.parametrize(("passes", "starts_as_image", "r"), [(50, True, 10), (4, True, 4), (50, False, 0)])
def test_without_a_reference_the_paper_is_followed(passes, starts_as_image, r):
    advice = advise([0.1] * passes, None, None, None, starts_as_image)
    assert (advice.recommended_r, advice.p1_from, advice.p2_at) == (r, None, None)
    assert "neither a dataset nor a capsule" in advice.reason
