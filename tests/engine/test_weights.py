import json

import pytest
import torch
from safetensors import safe_open

from engine.models import build
from engine.weights import load_network, save_weights
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


def test_a_network_comes_back_as_it_was_and_frozen(new_model):
    model = new_model(blocks=2, filters=3, image=(8, 8, 3))
    network = load_network(model, torch.device("cpu"))
    wanted = build(model.architecture, model.input, torch.Generator().manual_seed(0)).state_dict()
    assert list(network.state_dict()) == list(wanted)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in network.state_dict().items())
    assert not any(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize(
    ("ends", "text"), [((0.0, 1.0), "0,1"), ((-1.0, 1.0), "-1,1"), ((0.1234567, 1e6), "0.1234567,1e+06")]
)
def test_the_file_says_how_to_build_the_network(tmp_path, ends, text):
    architecture, image = BlkArchitecture(blocks=1, filters=2, activation="relu", head="sigmoid"), ImageShape(32, 16, 3)
    weights = build(architecture, image).state_dict()
    save_weights(tmp_path / "w", weights, architecture, image, ends)
    with safe_open(tmp_path / "w", "pt") as file:
        metadata = file.metadata()
    assert BlkArchitecture(**json.loads(metadata["flashcards.architecture"])) == architecture
    assert metadata["flashcards.input"] == "32x16x3"
    assert metadata["flashcards.range"] == text
    assert tuple(float(end) for end in text.split(",")) == ends
