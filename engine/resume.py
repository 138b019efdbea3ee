"""A training that can be put down at any step and taken up again, to the same bits.

A resume point is one safetensors file: the weights, what the optimizer keeps of each (Adam: two moments and a count),
the best weights so far, the state of the random generator and the running sum of the loss are its tensors; the rest is
JSON in its metadata.
Everything a later step depends on is in it, and nothing is rounded on the way: tensors go as they are, and Python
writes a float with as many digits as bring the same float back. The order of the data needs no state, because it is a
function of (seed, epoch).
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
from safetensors import safe_open

from engine.files import safetensors_bytes, write_whole
from engine.models import Network, build
from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import TeachingSpec

KEPT = 2  # the newest may still be on its way to the store when the worker dies
METADATA = "flashcards.resume"
MOMENTUM = 0.9
KEPT_OF = {"adam": ("step", "exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}  # an optimizer's, of each weight


@dataclass
class Standing:
    """Where a training stands, in plain numbers."""

    epoch: int = 1  # the one under way
    batch: int = 0  # batches of this epoch that were learnt
    step: int = 0  # batches in all
    best_epoch: int = 0  # 0: none is finished yet
    best_train_error: float = 0.0
    best_validation_error: float = 0.0
    seconds: float = 0.0  # over all attempts


@dataclass
class Training:
    network: Network
    optimizer: torch.optim.Optimizer
    generator: torch.Generator  # every random number of the training comes from here, on the CPU
    loss_sum: torch.Tensor  # float64, over the images of this epoch; stays on the device
    now: Standing = field(default_factory=Standing)
    best: dict[str, torch.Tensor] = field(default_factory=dict)  # empty until an epoch is finished

    @classmethod
    def begin(
        cls,
        spec: TeachingSpec,
        architecture: Architecture,
        image: ImageShape,
        device: torch.device,
        weights: dict[str, torch.Tensor] | None = None,
    ) -> "Training":
        """From these weights, or from random ones of the seed."""
        generator = torch.Generator().manual_seed(spec.seed)
        network = build(architecture, image, generator)
        if weights is not None:
            network.load_state_dict(weights)
        network.to(device)
        optimizer = _optimizer(spec, network)
        return cls(network, optimizer, generator, torch.zeros((), dtype=torch.float64, device=device))

    @property
    def _kind(self) -> str:
        return type(self.optimizer).__name__.lower()

    def keep_best(self, train_error: float, validation_error: float) -> None:
        self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.now.best_epoch = self.now.epoch
        self.now.best_train_error = train_error
        self.now.best_validation_error = validation_error

    def set_rate(self, spec: TeachingSpec, batches: int) -> float:
        """The learning rate of the step to come. It depends on where that step stands and on nothing before it."""
        done = (self.now.epoch - 1 + self.now.batch / batches) / spec.epochs
        rate = spec.learning_rate * min(1.0, (1 - done) / spec.decay) if spec.decay else spec.learning_rate
        self.optimizer.param_groups[0]["lr"] = rate
        return rate

    def next_epoch(self) -> None:
        self.now.epoch += 1
        self.now.batch = 0
        self.loss_sum.zero_()

    def write(self, folder: Path, about: dict[str, object], kept: dict[str, torch.Tensor]) -> Path:
        """`about` says what the training is, `kept` stands beside the network: both are given back as they are."""
        tensors = {f"model.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        for name, parameter in self.network.named_parameters():
            tensors |= {f"{self._kind}.{key}.{name}": value for key, value in self.optimizer.state[parameter].items()}
        tensors |= {"generator": self.generator.get_state(), "loss_sum": self.loss_sum}
        tensors |= {f"kept.{name}": tensor for name, tensor in kept.items()}

        folder.mkdir(exist_ok=True)
        path = folder / f"{self.now.step:08d}.safetensors"
        write_whole(path, safetensors_bytes(tensors, {METADATA: json.dumps(asdict(self.now) | about)}))
        for old in sorted(folder.glob("*.safetensors"))[:-KEPT]:
            old.unlink()
        return path

    def take_up(self, path: Path) -> tuple[dict[str, object], dict[str, torch.Tensor]]:
        """Go back to where a resume point was written; returns what was said about it, and what was kept beside."""
        device = self.loss_sum.device
        with safe_open(path, "pt", device=str(device)) as file:
            told = json.loads(file.metadata()[METADATA])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)

        def under(prefix: str) -> dict[str, torch.Tensor]:
            return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

        self.network.load_state_dict(under("model."))
        self.best = under("best.")
        for name, parameter in self.network.named_parameters():
            kept = {key: f"{self._kind}.{key}.{name}" for key in KEPT_OF[self._kind]}
            self.optimizer.state[parameter] = {key: tensors[place] for key, place in kept.items()}
        self.generator.set_state(tensors["generator"].cpu())
        self.loss_sum.copy_(tensors["loss_sum"])
        self.now = Standing(**{part.name: told[part.name] for part in fields(Standing)})
        return told, under("kept.")


def _optimizer(spec: TeachingSpec, network: Network) -> torch.optim.Optimizer:
    # Fused: one pass over memory for all tensors, elementwise, so its result does not depend on its threads.
    if spec.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=spec.learning_rate, momentum=MOMENTUM, fused=True)
    return torch.optim.Adam(network.parameters(), lr=spec.learning_rate, fused=True)


def kept_in(path: Path, prefix: str, device: torch.device) -> dict[str, torch.Tensor]:
    """What a strategy keeps in a resume point under this prefix."""
    with safe_open(path, "pt", device=str(device)) as file:
        names = [name for name in file.keys() if name.startswith(f"kept.{prefix}")]  # noqa: SIM118 (it is no mapping)
        return {name.removeprefix(f"kept.{prefix}"): file.get_tensor(name) for name in names}


def told_of(path: Path) -> dict[str, object]:
    """What a resume point says about itself."""
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()[METADATA])
