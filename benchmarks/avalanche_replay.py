"""The peer of `make bench-continual-speed`: Avalanche's replay on the same network and as many images.

Run by the Python of an environment that has avalanche-lib 0.6; it imports nothing of this tree. One argument, JSON:
side, blocks, filters, images, kept, batch, epochs, threads. Prints the images a second of the second task as JSON.
"""

import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# torchvision from a package index is built for CUDA: beside a CPU torch it misses these two at import.
_library = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _library.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from avalanche.benchmarks import benchmark_from_datasets  # noqa: E402
from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset as labelled  # noqa: E402
from avalanche.training import Naive  # noqa: E402
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin, SupervisedPlugin  # noqa: E402


def autoencoder(blocks: int, filters: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, filters, 3, padding=1), nn.Tanh()]
    for _ in range(blocks):
        layers += [nn.Conv2d(filters, filters, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2)]
    for _ in range(2):
        layers += [nn.Conv2d(filters, filters, 3, padding=1), nn.Tanh()]
    for _ in range(blocks):
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(filters, filters, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*layers, nn.Conv2d(filters, 3, 3, padding=1))


class Reconstruction(Naive):
    def criterion(self) -> torch.Tensor:
        return F.l1_loss(self.mb_output, self.mb_x)


class Clock(SupervisedPlugin):
    """Seconds between two steps of one epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.last: float | None = None

    def before_training_epoch(self, strategy: Naive, **_: object) -> None:
        self.last = None

    def after_training_iteration(self, strategy: Naive, **_: object) -> None:
        now = time.perf_counter()
        if self.last is not None:
            self.seconds.append(now - self.last)
        self.last = now


def main() -> None:
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(asked["threads"])
    torch.manual_seed(0)
    sets = []
    for number in range(2):
        x_NCHW = torch.rand(asked["images"], 3, asked["side"], asked["side"])
        # It knows classes only: the label is the task's number, and nothing looks at it.
        sets.append(labelled(x_NCHW, torch.full((asked["images"],), number), task_labels=0))
    benchmark = benchmark_from_datasets(train=sets, test=sets)
    clock, network = Clock(), autoencoder(asked["blocks"], asked["filters"])
    replay = ReplayPlugin(mem_size=asked["kept"], batch_size=asked["batch"], batch_size_mem=asked["batch"])
    strategy = Reconstruction(
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=1e-3),
        train_mb_size=asked["batch"],
        train_epochs=1,
        plugins=[replay, clock],
        evaluator=EvaluationPlugin(),
    )
    first, second = benchmark.train_stream
    strategy.train(first, num_workers=0)
    clock.seconds.clear()
    strategy.train_epochs = asked["epochs"]
    strategy.train(second, num_workers=0)
    print(json.dumps({"images_per_second": asked["batch"] / statistics.median(clock.seconds)}))


if __name__ == "__main__":
    main()
