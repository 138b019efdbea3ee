import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from flashcards import torch_dataset

CARDS = np.random.default_rng(0).random((7, 4, 5, 3), dtype=np.float32)


def whole(dataset, **options) -> torch.Tensor:
    return torch.cat(list(DataLoader(dataset, batch_size=3, **options)))


@pytest.fixture(params=["array", "npy", "npz"])
def cards(request, tmp_path):
    if request.param == "array":
        return CARDS
    path = tmp_path / f"cards.{request.param}"
    np.save(path, CARDS) if request.param == "npy" else np.savez(path, x=CARDS)
    return path


def test_a_loader_takes_it(cards):
    dataset = torch_dataset(cards)
    assert isinstance(dataset, Dataset)
    assert torch.equal(whole(dataset), torch.from_numpy(CARDS).permute(0, 3, 1, 2))


def test_the_processes_of_a_loader_take_it(tmp_path):
    np.save(tmp_path / "cards.npy", CARDS)
    dataset = torch_dataset(tmp_path / "cards.npy")
    found = whole(dataset, num_workers=1, multiprocessing_context="spawn")
    assert torch.equal(found, torch.from_numpy(CARDS).permute(0, 3, 1, 2))
    assert len(pickle.loads(pickle.dumps(dataset))) == 7


def test_bytes_are_brought_to_the_range():
    dataset = torch_dataset(np.array([0, 51, 255], np.uint8).reshape(3, 1, 1, 1), range=(-1.0, 1.0))
    assert whole(dataset).flatten().tolist() == pytest.approx([-1, -0.6, 1])


def test_a_transform_has_the_last_word():
    assert torch_dataset(CARDS, transform=lambda card: card.shape)[0] == (3, 4, 5)


def test_writing_to_an_item_leaves_the_file_alone(tmp_path):
    np.save(tmp_path / "cards.npy", CARDS)
    torch_dataset(tmp_path / "cards.npy")[0].zero_()
    assert np.array_equal(np.load(tmp_path / "cards.npy"), CARDS)


def test_what_are_no_cards_is_said(tmp_path):
    with pytest.raises(ValueError, match="N x H x W x C"):
        torch_dataset(CARDS[0])


def test_the_client_does_without_torch():
    code = "import sys, flashcards.client, flashcards.client.aio, flashcards.torch_data; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
