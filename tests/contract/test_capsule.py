import json

import numpy as np
import pytest

from flashcards.contract import capsule
from flashcards.contract.capsule import BadCapsule, Capsule, CapsuleFacts, pack, read
from flashcards.contract.meter import Meter


def facts(size: int, **said) -> CapsuleFacts:
    told = {
        "count": 100,
        "latent": (size,),
        "eps1": 0.1,
        "eps2": 0.3,
        "mean_error": 0.2,
        "error_quantiles": dict.fromkeys(capsule.QUANTILES, 0.2),
        "channel_mean": [0.5] * 3,
        "channel_deviation": [0.2] * 3,
    }
    return CapsuleFacts(**told | said)


def measured(size: int, count: int = 300, rank: int = 5, batch: int = 64) -> tuple[Capsule, np.ndarray]:
    """A capsule, and the latents that it was measured on: a few strong directions, and a little of everything."""
    rng = np.random.default_rng(0)
    z = 3 + rng.normal(size=(count, rank)) @ rng.normal(size=(rank, size)) + 0.1 * rng.normal(size=(count, size))
    meter = Meter()
    for first in range(0, count, batch):
        some = z[first : first + batch]
        meter.add(some, np.full(len(some), 0.2), np.zeros((len(some), 2, 2, 3)))
    return meter.capsule("a" * 64), z


def test_the_way_to_a_file_and_back():
    written, z = measured(20)
    found = read(written.to_bytes())
    assert found.facts == written.facts
    assert (found.facts.count, found.facts.latent, found.facts.model_digest) == (300, (20,), "a" * 64)
    assert found.mean_D == pytest.approx(z.mean(0), rel=1e-6)
    assert found.covariance() == pytest.approx(np.cov(z.T), rel=1e-5, abs=1e-6)
    assert found.total_variance() == pytest.approx(z.var(0, ddof=1).sum(), rel=1e-6)


@pytest.mark.parametrize("size", [7, 320])
def test_the_same_capsule_is_the_same_bytes(size):
    raw = measured(size)[0].to_bytes()
    assert raw == measured(size)[0].to_bytes()
    assert raw == read(raw).to_bytes()


def test_other_tools_can_read_it(tmp_path):
    from safetensors.numpy import load_file

    written, z = measured(6)
    (tmp_path / "c.safetensors").write_bytes(written.to_bytes())
    tensors = load_file(tmp_path / "c.safetensors")
    assert tensors["mean"] == pytest.approx(z.mean(0), rel=1e-5)
    assert tensors["covariance"].shape == (21,)


@pytest.mark.parametrize(("size", "whole"), [(256, True), (512, False), (3000, False)])
def test_it_stays_below_200_kb(size, whole):
    written, z = measured(size)
    raw = written.to_bytes()
    assert len(raw) <= 200_000
    assert (written.triangle is not None) == whole
    found = read(raw)
    # A few directions carry nearly everything here, and each dimension keeps its variance exactly.
    assert np.diag(found.covariance()) == pytest.approx(z.var(0, ddof=1), rel=2e-2)
    off = np.abs(found.covariance() - np.cov(z.T)).mean() / np.abs(np.cov(z.T)).mean()
    assert off < (1e-5 if whole else 0.02)
    assert found.total_variance() == pytest.approx(z.var(0, ddof=1).sum(), rel=2e-3)


def test_many_channels_make_room_for_themselves():
    channels = np.random.default_rng(0).random(784).tolist()
    long = facts(200, channel_mean=channels, channel_deviation=channels)
    assert len(pack(long, np.zeros(200), np.eye(200)).to_bytes()) <= 200_000
    crowded = facts(290, channel_mean=channels, channel_deviation=channels)
    written = pack(crowded, np.zeros(290), np.eye(290))
    assert written.triangle is None
    assert len(written.to_bytes()) <= 200_000


def test_the_directions_of_long_latents_come_from_first_to_last(monkeypatch):
    """Sorted by class, the first images say nothing of the rest."""
    monkeypatch.setattr("flashcards.contract.meter.KEPT", 128)
    rng = np.random.default_rng(0)
    z = rng.normal(0, 0.01, (600, 2100))
    z[:300, 0] += rng.choice([-1, 1], 300)
    z[300:, 1] += rng.choice([-1, 1], 300)
    written = set()
    for batch in (7, 100, 600):
        meter = Meter()
        for first in range(0, len(z), batch):
            some = z[first : first + batch]
            meter.add(some, np.full(len(some), 0.1), np.zeros((len(some), 4)))
        found = meter.capsule()
        assert (found.factor_KD[:, :2] ** 2).sum(0) == pytest.approx([0.5, 0.5], rel=0.3)
        assert np.diag(found.covariance())[:2] == pytest.approx(z[:, :2].var(0, ddof=1), rel=0.15)
        written.add(np.abs(found.factor_KD[0]).round(5).tobytes())
    assert len(written) == 1, "batches of another size, other images"


@pytest.mark.parametrize("size", [4, 2100])
def test_latents_that_are_all_one(size):
    meter = Meter()
    meter.add(np.ones((10, size)), np.full(10, 0.1), np.zeros((10, 3)))
    found = read(meter.capsule().to_bytes())
    assert found.total_variance() == 0
    assert found.mean_D.tolist() == [1.0] * size


def test_what_a_meter_refuses():
    meter = Meter()
    meter.add(np.ones((0, 4)), np.ones(0), np.ones((0, 3)))
    meter.add(np.ones((1, 4)), np.ones(1), np.ones((1, 3)))
    with pytest.raises(ValueError, match="at least 2 images; there were 1"):
        meter.capsule()
    with pytest.raises(ValueError, match=r"among images 1 to 2 .* not a finite number"):
        meter.add(np.array([[1.0] * 4, [np.nan] * 4]), np.ones(2), np.ones((2, 3)))
    with pytest.raises(ValueError, match="not a finite number"):
        meter.add(np.ones((2, 4)), np.array([1.0, np.inf]), np.ones((2, 3)))


class TestRefused:
    def bad(self, raw: bytes, words: str) -> None:
        with pytest.raises(BadCapsule, match=words):
            read(raw)

    def test_numbers_that_are_not_finite(self):
        self.bad(Capsule(facts(2), np.array([1, np.nan]), triangle=np.array([1, 0, 1])).to_bytes(), "not finite")

    @pytest.mark.parametrize("triangle", [[1, 2, 1], [-1, 0, -1]])
    def test_a_covariance_that_is_none(self, triangle):
        self.bad(Capsule(facts(2), np.zeros(2), triangle=np.array(triangle)).to_bytes(), "not positive semi-definite")

    def test_a_negative_variance(self):
        written = Capsule(facts(2), np.zeros(2), factor_KD=np.ones((1, 2)), diagonal_D=np.array([1, -0.1]))
        self.bad(written.to_bytes(), "diagonal is negative")

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            (Capsule(facts(3), np.zeros(2), triangle=np.ones(3)), "mean has the shape"),
            (Capsule(facts(2), np.zeros(2), triangle=np.ones(4)), "covariance has the shape"),
            (Capsule(facts(2), np.zeros(2), factor_KD=np.ones((1, 3)), diagonal_D=np.ones(2)), "factor has the shape"),
            (Capsule(facts(2), np.zeros(2), factor_KD=np.ones(2), diagonal_D=np.ones(2)), "factor has the shape"),
            (Capsule(facts(2), np.zeros(2), factor_KD=np.ones((1, 2))), "needs the tensors"),
            (Capsule(facts(2), np.zeros(2)), "needs the tensors"),
        ],
    )
    def test_wrong_dimensions(self, written, words):
        self.bad(written.to_bytes(), words)

    def test_a_smallest_error_above_the_largest(self):
        self.bad(pack(facts(2, eps1=0.4), np.zeros(2), np.eye(2)).to_bytes(), "smallest error is larger")

    @pytest.mark.parametrize("kept", [0, 4, 8, 100, -1, -20])
    def test_a_file_that_is_cut_off(self, kept):
        self.bad(measured(6)[0].to_bytes()[:kept], "not a capsule that can be read")

    def test_a_file_with_something_behind_it(self):
        self.bad(measured(6)[0].to_bytes() + b"more", "do not fill the file")

    @pytest.mark.parametrize(
        "text",
        [
            b"[]",
            b'"text"',
            b"{}",
            b"[" * 100_000,
            b'{"__metadata__":{}}',
            b'{"__metadata__":{"flashcards.capsule":1}}',
            b'{"__metadata__":{"flashcards.capsule":"{}"}}',
            b"\xff\xfe",
        ],
    )
    def test_a_header_that_says_nothing(self, text):
        self.bad(len(text).to_bytes(8, "little") + text, "not a capsule that can be read")

    @pytest.mark.parametrize(
        "said",
        [{"latent": [0]}, {"latent": [-1, -6]}, {"latent": []}, {"count": 1}, {"model_digest": "../x"}, {"eps1": -1}],
    )
    def test_facts_that_cannot_be(self, said):
        self.bad(self.with_header(lambda header: self.say(header, said)), "not a capsule that can be read")

    @pytest.mark.parametrize("places", [[-4, 20], [0, 10**9], [24, 0], [0, "x"], [0]])
    def test_tensors_in_places_that_are_not(self, places):
        raw = self.with_header(lambda header: header["mean"].update(data_offsets=places))
        self.bad(raw, "not a capsule that can be read")

    def say(self, header: dict, said: dict) -> None:
        told = json.loads(header["__metadata__"]["flashcards.capsule"]) | said
        header["__metadata__"]["flashcards.capsule"] = json.dumps(told)

    def with_header(self, change) -> bytes:
        raw = measured(6)[0].to_bytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:end])
        change(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + raw[end:]
