import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from engine.data import hold_out, load_images
from engine.errors import Collapsed, Stopped
from engine.models import Autoencoder, build, chunk_size
from engine.run import run
from engine.weights import load_network
from engine.work import ModelInput
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

CPU = torch.device("cpu")
DIGITS = ImageShape(8, 8, 1)
NAMES = [
    "conv_ae_4_6",
    "conv_ae_4",
    "conv_ae_4_6_latent_5",
    "conv_ae_3_2_4_tanh_plain_pool_sigmoid",
    "conv_ae_4_6_pool",
]
named = architecture_spec.validate_python


def made(name: str, image: ImageShape, seed: int = 0) -> Autoencoder:
    return build(named(name), image, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("image", [DIGITS, ImageShape(16, 8, 3)])
def test_shapes_are_those_of_the_contract_and_the_answer_that_of_the_image(name, image):
    architecture, network = named(name), made(name, image)
    assert [(name, tuple(t.shape)) for name, t in network.state_dict().items()] == architecture.tensors(image)
    assert sum(parameter.numel() for parameter in network.parameters()) == architecture.parameters(image)
    x_BCHW = torch.rand(2, image.height, image.width, image.channels).permute(0, 3, 1, 2)
    z = network.encoder(x_BCHW)
    latent = architecture.latent_shape(image)
    assert (z.permute(0, 2, 3, 1) if len(latent) == 3 else z).shape == (2, *latent)
    y_BCHW = network(x_BCHW)
    assert y_BCHW.shape == x_BCHW.shape
    assert y_BCHW.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("down", ["stride", "pool"])
@pytest.mark.parametrize("latent", [None, 5])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_it_computes_layer_by_layer(down, latent, activation):
    architecture = named(
        {"family": "conv_ae", "widths": [4, 6], "down": down, "latent": latent, "activation": activation}
    )
    network = build(architecture, DIGITS).eval()
    act = getattr(torch, activation)
    for stage in (*network.encoder.stages, *network.decoder.stages):
        torch.nn.init.normal_(stage.norm.weight)  # of both signs: where the pool sits makes a difference
        torch.nn.init.normal_(stage.norm.running_mean)
    x = h = torch.rand(2, 1, 8, 8)

    for stage in network.encoder.stages:
        full = F.conv2d(h, stage.conv.weight, stage.conv.bias, padding=1)
        h = full[..., ::2, ::2] if down == "stride" else full
        norm = stage.norm
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        h = act((h - norm.running_mean.view(-1, 1, 1)) * scale.view(-1, 1, 1) + norm.bias.view(-1, 1, 1))
        h = F.max_pool2d(h, 2) if down == "pool" else h
    if latent:
        z = F.linear(h.reshape(2, -1), network.encoder.latent.weight, network.encoder.latent.bias)
        h = act(F.linear(z, network.decoder.stem.weight, network.decoder.stem.bias)).view(2, 6, 2, 2)
    (stage,) = network.decoder.stages
    h = act(stage.norm(stage.conv(h.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3))))
    y = network.decoder.head(h.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3))

    torch.testing.assert_close(network(x), y)


def test_init_is_xavier_with_zero_bias_and_follows_its_generator():
    conv, latent = (made("conv_ae_8_8_latent_5", DIGITS).encoder for _ in range(2))
    bound = (6 / (9 * 8 + 9 * 8)) ** 0.5
    assert 0.9 * bound < conv.stages[1].conv.weight.abs().max() <= bound
    assert not conv.stages[1].conv.bias.any()
    assert 0.9 * (6 / (32 + 5)) ** 0.5 < latent.latent.weight.abs().max() <= (6 / (32 + 5)) ** 0.5
    assert torch.equal(conv.latent.weight, latent.latent.weight)
    assert not torch.equal(conv.latent.weight, made("conv_ae_8_8_latent_5", DIGITS, seed=1).encoder.latent.weight)


def test_one_number_a_channel_is_no_batch_to_average_over():
    network = made("conv_ae_2_2_2", DIGITS)
    before = network.encoder.stages[2].norm.running_var.clone()
    network(torch.rand(1, 1, 8, 8)).sum().backward()
    assert torch.equal(network.encoder.stages[2].norm.running_var, before)
    assert not torch.equal(network.encoder.stages[0].norm.running_var, before)


def test_chunks_go_by_the_widest_map():
    assert chunk_size(named("conv_ae_32_64_128"), ImageShape(32, 32, 3)) == 64
    assert chunk_size(named("conv_ae_512"), ImageShape(1024, 1024, 3)) == 1
    assert chunk_size(named("conv_ae_1_512"), ImageShape(512, 512, 3)) == 4


@pytest.mark.parametrize("name", ["conv_ae_16_32", "conv_ae_16_32_latent_24_tanh_plain_pool"])
def test_it_learns_digits(name, train_work, report, never, digits, as_dataset):
    work = train_work(dataset=as_dataset(x_train=digits["x_train"][:300]), architecture=name, epochs=6)
    result = run(work, report, never).result
    assert result.validation_mae < 0.9 * result.constant_mae
    assert result.parameters == named(name).parameters(DIGITS)


def as_model(work) -> ModelInput:
    path = work.out / "model.safetensors"
    return ModelInput(path=path, digest="m", architecture=work.spec.architecture, input=DIGITS, range=(0.0, 1.0))


class TestBatchNorm:
    """It is another network while it learns. Everything that is told of a model is told of the one that is kept."""

    FIELDS = {"architecture": "conv_ae_4_6_8", "epochs": 3, "batch_size": 11}  # the last batch is one image

    @pytest.fixture
    def learn(self, train_work, new_report, never):
        """So little teaching is no success, but the weights are there all the same."""

        def run_it(resume=None):
            work, report = train_work(resume=resume, **self.FIELDS), new_report()
            with pytest.raises(Collapsed):
                run(work, report, never)
            return work, report.metrics

        return run_it

    def test_the_averages_of_the_best_epoch_are_in_the_file(self, learn):
        work, metrics = learn()
        best_step = min(metrics, key=lambda metric: metric[1]["validation_mae"])[0]
        kept = load_file(work.out / "model.safetensors")
        counted = kept["encoder.stages.0.norm.num_batches_tracked"]
        assert (counted.dtype, counted.item()) == (torch.int64, best_step)
        assert kept["encoder.stages.0.norm.running_mean"].any()

    def test_the_error_told_is_that_of_the_model_kept(self, learn):
        work, metrics = learn()
        _, held = hold_out(50, 0.1, 0)
        x_BCHW = load_images(work.dataset.path, "train", (0.0, 1.0)).batch(held, CPU)
        network = load_network(as_model(work), CPU)
        assert not network.training
        told = min(values["validation_mae"] for _, values in metrics)
        assert (network(x_BCHW) - x_BCHW).abs().mean().item() == pytest.approx(told, rel=1e-5)

    def test_interrupted_anywhere_it_ends_with_the_same_bits(self, learn, train_work, new_report):
        unbroken, metrics = learn()
        one = load_file(unbroken.out / "model.safetensors")
        for nth in (1, 3, 5, 6, 7, 11, 12, 17, 18):  # six times an epoch: five batches, and the held-out images
            left, report = iter(range(nth - 1)), new_report()
            with pytest.raises(Stopped):
                run(train_work(**self.FIELDS), report, lambda left=left: next(left, None) is None)
            work, resumed = learn(resume=report.points[-1])
            other = load_file(work.out / "model.safetensors")
            assert one.keys() == other.keys()
            assert all(torch.equal(one[name], other[name]) for name in one), f"stopped at the {nth}th time"
            assert report.metrics + resumed == metrics

    def test_a_card_does_not_depend_on_its_company(self, learn, capture_work, new_report, never):
        work, _ = learn()
        cards = []
        for count in (70, 3):
            asked = capture_work(model=as_model(work), count=count, source="maze")
            run(asked, new_report(), never)
            cards.append(np.load(asked.out / "cards.npy"))
        assert cards[0].shape == (70, 8, 8, 1)
        assert np.array_equal(cards[0][:3], cards[1])
