"""Weights held where they were: a penalty weight * sum_k s_k (theta_k - anchor_k)^2, by its gradient.

The gradient is added after the backward pass, for all tensors at once, and is exact: no graph is built for it.
"""

import torch

ANCHOR, STIFFNESS = "anchor.", "stiffness."


def under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class Springs:
    def __init__(self, network: torch.nn.Module, state: dict[str, torch.Tensor], weight: float) -> None:
        stiffness, anchor = under(STIFFNESS, state), under(ANCHOR, state)
        named = [(name, parameter) for name, parameter in network.named_parameters() if name in stiffness]
        self.parameters = [parameter for _, parameter in named]
        self.anchors = [anchor[name] for name, _ in named]
        self.twice = [2 * weight * stiffness[name] for name, _ in named]

    def pull(self) -> None:
        if not self.parameters:
            return
        with torch.no_grad():
            gone = torch._foreach_sub(self.parameters, self.anchors)
            torch._foreach_mul_(gone, self.twice)
            torch._foreach_add_([parameter.grad for parameter in self.parameters], gone)


def spring_state(
    network: torch.nn.Module, stiffness: dict[str, torch.Tensor], earlier: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Springs of earlier tasks and of this one become one spring, around the weights of now."""
    before = under(STIFFNESS, earlier)
    state = {}
    for name, parameter in network.named_parameters():
        total = stiffness[name] + before[name] if name in before else stiffness[name]
        state |= {ANCHOR + name: parameter.detach().clone(), STIFFNESS + name: total}
    return state
