import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from engine.data import load_images
from engine.models import build, chunk_size
from engine.run import run
from engine.work import ModelInput
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

VECTOR = ImageShape(1, 64, 1)
named = architecture_spec.validate_python


@pytest.mark.parametrize("name", ["dense_ae_16_8_4", "dense_ae_4", "dense_ae_8_4_tanh_sigmoid"])
@pytest.mark.parametrize("image", [VECTOR, ImageShape(5, 7, 3)])
def test_shapes_are_those_of_the_contract_and_the_answer_that_of_the_image(name, image):
    architecture = named(name)
    network = build(architecture, image)
    assert [(name, tuple(t.shape)) for name, t in network.state_dict().items()] == architecture.tensors(image)
    x_BCHW = torch.rand(2, image.height, image.width, image.channels).permute(0, 3, 1, 2)
    assert network.encoder(x_BCHW).shape == (2, *architecture.latent_shape(image))
    assert network(x_BCHW).shape == x_BCHW.shape
    assert network(x_BCHW).is_contiguous(memory_format=torch.channels_last)


def test_an_image_is_flattened_channel_by_channel_row_by_row():
    network = build(named("dense_ae_6_3"), ImageShape(2, 4, 3))
    x_BHWC = torch.rand(2, 2, 4, 3)
    layers = [*network.encoder.layers, network.encoder.latent, *network.decoder.layers, network.decoder.head]

    h = x_BHWC.permute(0, 3, 1, 2).reshape(2, 24)
    h = torch.relu(F.linear(h, layers[0].weight, layers[0].bias))
    h = F.linear(h, layers[1].weight, layers[1].bias)
    h = torch.relu(F.linear(h, layers[2].weight, layers[2].bias))
    y = F.linear(h, layers[3].weight, layers[3].bias).view(2, 3, 2, 4)

    torch.testing.assert_close(network(x_BHWC.permute(0, 3, 1, 2)), y)


def test_chunks_are_whole_for_vectors():
    assert chunk_size(named("dense_ae_4096_4096"), ImageShape(1, 4096, 1)) == 64


@pytest.fixture
def vectors(digits, as_dataset):
    """The digits as a table: a row of 64 floats for each."""
    table = (digits["x_train"][:300].reshape(300, 64) / 255).astype(np.float32)
    return as_dataset(x_train=table, x_test=table[:20])


def test_a_table_is_images_of_one_row(vectors):
    assert load_images(vectors.path, "train", (0.0, 1.0)).shape == VECTOR


def test_it_learns_vectors_is_evaluated_and_captured(
    vectors, train_work, evaluate_work, capture_work, new_report, never
):
    work = train_work(dataset=vectors, architecture="dense_ae_48_16", epochs=8)
    result = run(work, new_report(), never).result
    assert result.validation_mae < 0.8 * result.constant_mae
    model = ModelInput(
        path=work.out / "model.safetensors",
        digest="m",
        architecture=work.spec.architecture,
        input=VECTOR,
        range=(0.0, 1.0),
    )

    measured = run(evaluate_work(vectors, model), new_report(), never).result
    assert measured.mae < 0.8 * measured.constant_mae

    captured = capture_work(model=model, count=9, source="maze")
    run(captured, new_report(), never)
    cards = np.load(captured.out / "cards.npy")
    assert cards.shape == (9, 1, 64, 1)
    assert np.isfinite(cards).all()
    with Image.open(captured.out / "sheet.png") as sheet:
        assert sheet.size == (8 * (256 + 2) + 2, 2 * (8 + 2) + 2)


def test_it_takes_images_too(digits, as_dataset, train_work, report, never):
    work = train_work(
        dataset=as_dataset(x=digits["x_train"][:300]), architecture="dense_ae_48_16_tanh_sigmoid", epochs=8
    )
    result = run(work, report, never).result
    assert result.validation_mae < 0.9 * result.constant_mae
