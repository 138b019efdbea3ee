import torch

from engine.models.blk import BlkAutoencoder
from engine.passes.torch_passes import TorchPasses
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


def test_any_memory_format_gives_the_same_bits():
    network = BlkAutoencoder(BlkArchitecture(blocks=2, filters=8), ImageShape(8, 8, 3))
    passes, x_BCHW = TorchPasses(network, torch.device("cpu")), torch.rand(4, 3, 8, 8)
    y_BCHW = passes(x_BCHW)
    assert passes.name == f"torch-{torch.__version__}-cpu"
    assert not y_BCHW.requires_grad
    assert torch.equal(y_BCHW, passes(x_BCHW.contiguous(memory_format=torch.channels_last)))
    torch.testing.assert_close(y_BCHW, network(x_BCHW))
