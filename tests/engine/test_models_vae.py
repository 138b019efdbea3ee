import pytest
import torch

from engine.models import build
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

IMAGE = ImageShape(8, 8, 1)


@pytest.fixture
def network():
    return build(architecture_spec.validate_python("vae_2_fil_6"), IMAGE, torch.Generator().manual_seed(0))


def test_its_tensors_are_those_of_the_contract(network):
    architecture = architecture_spec.validate_python("vae_2_fil_6")
    found = [(name, tuple(tensor.shape)) for name, tensor in network.state_dict().items()]
    assert found == architecture.tensors(IMAGE)
    assert architecture.parameters(IMAGE) == sum(parameter.numel() for parameter in network.parameters())
    assert architecture.latent_shape(IMAGE) == (2, 2, 6)


def test_images_that_cannot_be_halved_are_refused_by_its_own_name():
    assert "vae_3_fil_6" in architecture_spec.validate_python("vae_3_fil_6").misfit(ImageShape(12, 12, 1))


def test_outside_of_training_its_latent_is_the_mean(network):
    x = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    mean, _ = network.encoder.distribution(x)
    assert torch.equal(network.encoder(x), mean)
    assert torch.equal(network(x), network.decoder(mean))


def test_in_training_it_draws_latents_and_pays_for_what_is_not_normal(network):
    x, generator = torch.rand(3, 1, 8, 8), torch.Generator().manual_seed(1)
    one, penalty = network.in_training(x, generator)
    other, _ = network.in_training(x, generator)
    assert not torch.equal(one, other)
    assert penalty > 0
    for layer in (network.encoder.latent, network.encoder.log_variance):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    assert network.in_training(x, generator)[1] == 0


@pytest.mark.slow
def test_a_train_job_teaches_it(train_work, report, never, digits, as_dataset):
    from engine.run import run

    data = as_dataset(x_train=digits["x_train"][:200])
    work = train_work(dataset=data, architecture="vae_1_fil_8", epochs=8, learning_rate=0.01)
    result = run(work, report, never).result
    assert result.validation_mae < 0.8 * result.constant_mae
    assert result.capsule.latent == (8, 4, 4)
