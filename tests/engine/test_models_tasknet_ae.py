import pytest
import torch

from engine.models import build
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape


@pytest.mark.parametrize("image", [(32, 32, 3), (28, 28, 1), (8, 8, 1), (9, 5, 2)])
def test_it_gives_back_images_of_any_sides(image):
    shape = ImageShape(*image)
    architecture = architecture_spec.validate_python("tasknet_ae_width_2_hidden_8_latent_4")
    network = build(architecture, shape, torch.Generator().manual_seed(0)).eval()
    told = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    assert told == dict(architecture.tensors(shape))
    height, width, channels = image
    x = torch.zeros(2, channels, height, width)
    assert network.encoder(x).shape == (2, 4)
    assert network(x).shape == x.shape


def test_its_encoder_is_that_of_the_classifier():
    image = ImageShape(16, 16, 3)
    sizes = "width_2_hidden_8_latent_4"
    classifier, autoencoder = (
        build(architecture_spec.validate_python(name), image, torch.Generator().manual_seed(0)).eval()
        for name in (f"tasknet_3_{sizes}", f"tasknet_ae_{sizes}")
    )
    autoencoder.encoder.load_state_dict(classifier.encoder.state_dict())
    x = torch.rand(2, 3, 16, 16)
    assert torch.equal(classifier.encoder(x), autoencoder.encoder(x))


def test_a_sigmoid_keeps_within_the_range():
    architecture = architecture_spec.validate_python("tasknet_ae_width_2_hidden_8_latent_4_sigmoid")
    network = build(architecture, ImageShape(8, 8, 1), torch.Generator().manual_seed(0)).eval()
    y = network.decoder(100 * torch.randn(4, 4))
    assert 0 <= y.min() <= y.max() <= 1
