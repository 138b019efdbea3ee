"""A training script of your own, and what it takes to hand its network over before the data goes.

python examples/from_pytorch.py [EPOCHS]
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import flashcards

BLOCKS, FILTERS = 2, 16


def conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class Encoder(nn.Module):
    """The names are those of docs/checkpoints.md; other names are matched where shapes and order allow it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.stem = conv(channels, FILTERS)
        self.blocks = nn.ModuleList(conv(FILTERS, FILTERS) for _ in range(BLOCKS))
        self.latent = conv(FILTERS, FILTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.stem(x))
        for block in self.blocks:
            x = F.max_pool2d(torch.tanh(block(x)), 2)
        return torch.tanh(self.latent(x))


class Decoder(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.stem = conv(FILTERS, FILTERS)
        self.blocks = nn.ModuleList(conv(FILTERS, FILTERS) for _ in range(BLOCKS))
        self.head = conv(FILTERS, channels)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        z = torch.tanh(self.stem(z))
        for block in self.blocks:
            z = torch.tanh(block(F.interpolate(z, scale_factor=2, mode="nearest")))
        return self.head(z)


class Autoencoder(nn.Module):
    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(channels), Decoder(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


def train(model: nn.Module, x: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            F.l1_loss(model(x[batch]), x[batch]).backward()
            optimizer.step()


def main(epochs: int = 10) -> None:
    torch.manual_seed(0)
    x = torch.from_numpy(load_digits().images / 16).float().unsqueeze(1)  # N x C x H x W, from 0 to 1
    model = Autoencoder()
    train(model, x, epochs)

    # What stays when the data goes: the weights, what the network says to a few images, and where images lie in it.
    told = {"architecture": f"blk_{BLOCKS}_fil_{FILTERS}", "input": "8x8x1", "range": "0,1"}
    save_file(model.state_dict(), "ae.safetensors", {f"flashcards.{name}": text for name, text in told.items()})
    with torch.no_grad():
        probe = {"x": x[:8], "y": model(x[:8])}
    save_file({name: images.permute(0, 2, 3, 1).contiguous() for name, images in probe.items()}, "probe.safetensors")
    Path("capsule.safetensors").write_bytes(flashcards.measure_capsule(model, x.split(256)).to_bytes())

    with flashcards.Client() as client:
        pushed = client.models.push("ae.safetensors", name="from PyTorch", progress=True)
        client.models.probe(pushed.id, "probe.safetensors")
        client.models.attach_capsule(pushed.id, "capsule.safetensors")
        captured = client.capture(pushed, count=500).wait(progress=True)
        print(f"source {captured.result.recipe.source}, FLSD {captured.result.measures.flsd:.3f}")
        print(f"the network is ours to the probe: {not captured.result.forward_unverified}")
        cards = captured.cards("torch")  # N x C x H x W: ready for the next training
        print(f"{tuple(cards.shape)} of {cards.dtype}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
