import numpy as np
import pytest

from flashcards.contract import capsule
from flashcards.contract.capsule import BadCapsule
from flashcards.contract.class_moments import MOST_BYTES, ClassMeter, ClassMoments, rank_of
from flashcards.contract.meter import Meter


def latents(count: int = 300, size: int = 6) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    labels = np.arange(count) % 3
    mixing = chance.normal(size=(3, size, size))
    z = np.stack([mixing[label] @ chance.normal(size=size) + 10 * label for label in labels])
    return z, labels


def measured(z: np.ndarray, labels: np.ndarray, classes: int = 3) -> ClassMoments:
    meter = ClassMeter(classes, z.shape[1])
    for first in range(0, len(z), 70):
        meter.add(z[first : first + 70], labels[first : first + 70])
    return meter.moments()


def with_classes(moments: ClassMoments | None, size: int = 6) -> capsule.Capsule:
    meter = Meter()
    z, _ = latents(size=size)
    meter.add(z, np.full(len(z), 0.1), np.zeros((len(z), 2, 2, 1)))
    found = meter.capsule()
    return capsule.Capsule(found.facts, found.mean_D, triangle=found.triangle, by_class=moments)


def test_mean_and_covariance_of_each_class():
    z, labels = latents()
    moments = measured(z, labels)
    for label in range(3):
        own = z[labels == label]
        factor, diagonal = moments.factor_CKD[label], moments.diagonal_CD[label]
        np.testing.assert_allclose(moments.mean_CD[label], own.mean(0))
        np.testing.assert_allclose(factor.T @ factor + np.diag(diagonal), np.cov(own.T), atol=1e-8)
    assert moments.count_C.tolist() == [100, 100, 100]


def test_a_class_without_images_is_not_known():
    z, labels = latents()
    moments = measured(z, labels, classes=5)
    assert moments.known == [0, 1, 2]
    assert (moments.factor_CKD[3:] == 0).all()


def test_they_take_no_more_than_their_room():
    moments = measured(np.random.default_rng(0).normal(size=(400, 256)), np.arange(400) % 10, classes=10)
    assert moments.factor_CKD.shape == (10, rank_of(10, 256), 256) == (10, 17, 256)
    assert sum(4 * array.size for array in moments.tensors().values()) <= MOST_BYTES + 40
    assert not ClassMeter.fits(1000, 256)
    assert ClassMeter.fits(97, 256)


def test_a_capsule_brings_them_back():
    z, labels = latents()
    moments = measured(z, labels)
    back = capsule.read(with_classes(moments).to_bytes())
    for name, array in moments.tensors().items():
        np.testing.assert_allclose(back.by_class.tensors()[name], array, rtol=1e-6, atol=1e-6)
    assert capsule.read(with_classes(None).to_bytes()).by_class is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"diagonal_CD": np.full((3, 6), -1.0)}, "negative"),
        ({"mean_CD": np.zeros((3, 5))}, "class_mean has the shape"),
        ({"count_C": np.zeros(3)}, "no class has an image"),
        ({"mean_CD": np.full((3, 6), np.nan)}, "not finite"),
    ],
)
def test_what_cannot_be_true_is_refused(change, words):
    moments = measured(*latents())
    spoilt = ClassMoments(**{**vars(moments), **change})
    with pytest.raises(BadCapsule, match=words):
        capsule.read(with_classes(spoilt).to_bytes())
