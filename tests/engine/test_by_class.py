import numpy as np
import torch

from engine.sources.by_class import classes_in_turn, drawn
from engine.sources.latent import Decoding
from flashcards.contract.class_moments import ClassMoments


def moments() -> ClassMoments:
    """Class 1 has no images; classes 0 and 2 lie apart, and are wide in one direction each."""
    mean = np.array([[0.0, 0.0], [9.0, 9.0], [20.0, -20.0]])
    factor = np.array([[[2.0, 0.0]], [[0.0, 0.0]], [[0.0, 3.0]]])
    return ClassMoments(np.array([5.0, 0.0, 7.0]), mean, factor, np.full((3, 2), 0.01))


def test_classes_take_turns_and_those_without_images_are_left_out():
    assert classes_in_turn(moments(), 0, 5).tolist() == [0, 2, 0, 2, 0]
    assert classes_in_turn(moments(), 3, 2).tolist() == [2, 0]


def test_latents_have_the_moments_of_their_class():
    z = drawn(moments(), seed=3, first=0, count=8000, lane=2)
    for place, label in ((0, 0), (1, 2)):
        own, told = z[place::2], moments()
        covariance = told.factor_CKD[label].T @ told.factor_CKD[label] + 0.01 * np.eye(2)
        np.testing.assert_allclose(own.mean(0), told.mean_CD[label], atol=0.15)
        np.testing.assert_allclose(np.cov(own.T), covariance, atol=0.3)


def test_a_card_depends_on_its_number_alone():
    whole = drawn(moments(), seed=3, first=0, count=10, lane=2)
    np.testing.assert_array_equal(whole[4:7], drawn(moments(), seed=3, first=4, count=3, lane=2))
    assert not np.allclose(whole, drawn(moments(), seed=4, first=0, count=10, lane=2))


def test_a_card_is_decoded_from_the_latent_of_its_class():
    class Network(torch.nn.Module):
        """Gives back what it gets, so that a step back leads nowhere."""

        def decoder(self, z):
            return z.view(-1, 1, 1, 2)

        def forward(self, x):
            return x

    decoding = Decoding(Network(), moments(), 3, (2,), (-50.0, 50.0), torch.device("cpu"))
    np.testing.assert_allclose(decoding.start(0, 4).flatten(1).numpy(), drawn(moments(), 3, 0, 4, 2), rtol=1e-5)
