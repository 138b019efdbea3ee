import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.models import build, chunk_size
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

CIFAR, DIGITS = ImageShape(32, 32, 3), ImageShape(8, 8, 1)
SMALL = {
    "tasknet_10_width_2_hidden_12_latent_5": DIGITS,
    "tasknet_3_4_width_2_hidden_12_latent_5": ImageShape(7, 9, 2),
    "resnet18_10_width_2": DIGITS,
    "resnet18_2_3_4_width_2": ImageShape(13, 9, 3),
    "vgg16_10_width_2": CIFAR,
    "vgg16_5_2_width_2": ImageShape(33, 70, 1),
}


def made(name: str, image: ImageShape):
    architecture = architecture_spec.validate_python(name)
    return architecture, build(architecture, image, torch.Generator().manual_seed(0))


def images(image: ImageShape, count: int = 3) -> torch.Tensor:
    return torch.rand(count, image.channels, image.height, image.width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("name", "image"), SMALL.items())
def test_its_tensors_are_those_of_the_contract(name, image):
    architecture, network = made(name, image)
    assert [(name, tuple(tensor.shape)) for name, tensor in network.state_dict().items()] == architecture.tensors(image)
    assert architecture.parameters(image) == sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(("name", "image"), SMALL.items())
def test_it_answers_with_a_score_for_every_class_of_every_head(name, image):
    architecture, network = made(name, image)
    z_BL = network.eval().encoder(images(image))
    assert z_BL.shape[1:] == architecture.latent_shape(image)
    y_BK = network(images(image))
    assert y_BK.shape == (3, architecture.classes)
    first = 0
    for head, classes in zip(network.heads, architecture.heads, strict=True):
        assert torch.equal(head(z_BL), y_BK[:, first : first + classes])
        first += classes


@pytest.mark.parametrize(("name", "image"), SMALL.items())
def test_no_map_is_larger_than_it_says(name, image):
    architecture, network = made(name, image)
    seen = [images(image, 1).numel()]
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(lambda *hooked: seen.append(hooked[2].numel()))
    network.eval()(images(image, 1))
    assert max(seen) <= architecture.widest(image)
    assert chunk_size(architecture, image) == 64


def test_the_same_seed_gives_the_same_network():
    one, other = (made("resnet18_10_width_2", DIGITS)[1].state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_batch_of_one_small_image_can_be_learnt_from():
    _, network = made("resnet18_10_width_2", ImageShape(2, 2, 1))
    network.train()(images(ImageShape(2, 2, 1), 1)).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


def test_a_tasknet_layer_by_layer():
    _, network = made("tasknet_10_width_2_hidden_12_latent_5", DIGITS)
    network.eval()
    x, e = images(DIGITS), network.encoder
    h = x
    for place, stage in enumerate(e.stages):
        h = F.conv2d(h, stage.conv.weight, stage.conv.bias, stride=1 if place == 0 else 2, padding=1)
        h = F.relu(h / (1 + 1e-5) ** 0.5)  # a new norm has mean 0, variance 1
    flat = h.reshape(3, -1)
    expected = F.relu(flat @ e.hidden.weight.T + e.hidden.bias) @ e.latent.weight.T + e.latent.bias
    torch.testing.assert_close(e(x), expected)


def test_a_resnet_as_it_is_usually_written():
    """torch's own layers, in the order of the usual builders: our weights, by place, give the same answers."""
    architecture, network = made("resnet18_10_width_2", DIGITS)

    class Basic(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
                )

        def forward(self, x):
            around = self.downsample(x) if hasattr(self, "downsample") else x
            return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + around)

    blocks = [
        Basic(2 * i, 2 * o, s)
        for i, o, s in [(1, 1, 1)] * 2 + [(1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 4, 1), (4, 8, 2), (8, 8, 1)]
    ]
    stem = [nn.Conv2d(1, 2, 3, 1, 1, bias=False), nn.BatchNorm2d(2), nn.ReLU()]
    theirs = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    shapes = [tuple(tensor.shape) for tensor in theirs.state_dict().values()]
    assert shapes == [shape for _, shape in architecture.tensors(DIGITS)]
    theirs.load_state_dict(dict(zip(theirs.state_dict(), network.state_dict().values(), strict=True)))
    for each in (network, theirs):
        each.train()(images(DIGITS))  # so that the norms have something to say
        each.eval()
    torch.testing.assert_close(network(images(DIGITS)), theirs(images(DIGITS)))


def test_a_vgg_as_it_is_usually_written():
    architecture, network = made("vgg16_10_width_2", CIFAR)
    layers, channels = [], 3
    for width in (2, 2, 0, 4, 4, 0, 8, 8, 8, 0, 16, 16, 16, 0, 16, 16, 16, 0):
        layers += (
            [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()] if width else [nn.MaxPool2d(2)]
        )
        channels = width or channels
    theirs = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 10))
    assert [tuple(t.shape) for t in theirs.state_dict().values()] == [shape for _, shape in architecture.tensors(CIFAR)]
    theirs.load_state_dict(dict(zip(theirs.state_dict(), network.state_dict().values(), strict=True)))
    torch.testing.assert_close(network.train()(images(CIFAR)), theirs.train()(images(CIFAR)))
