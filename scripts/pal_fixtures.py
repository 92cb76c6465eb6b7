"""Computes Rax's losses with PyTorch's autograd, for `cargo test`.

The results are written to `crates/policy/tests/fixtures/pal.json`. The script needs PyTorch.
`tests/train` checks that the file equals the results of the current PyTorch.
"""

import math
from pathlib import Path
from typing import Any

import torch

from nn_fixtures import Net, compact, listed, numbers, seeded, tensors

FIXTURES = Path(__file__).parent.parent / "crates/policy/tests/fixtures/pal.json"

STEPS, FEATURES = 12, 8
EARLIER = 7
"""Steps before the segment. The segment gets their hidden state, but no gradient flows back to
them."""
ALPHA, ENTROPY = 4.0, 0.02
INITIAL, LEAST = 0.5, 0.01
"""The standard deviation of an actor whose second output is 0, and the minimum."""
UNITS = [1.0, 1.0, 0.5]
OUTPUTS = [2, 2, 1]
"""The outputs of the actor (mean and standard deviation) and of the critics (packets received and
sent; ms between acknowledgements)."""


def softplus(x: torch.Tensor) -> torch.Tensor:
    """The softplus, shifted so that its value is 1 at 0."""
    return torch.nn.functional.softplus(x + math.log(math.e - 1))


def utility(averages: torch.Tensor) -> torch.Tensor:
    """Eq. 8 for rows of packets received, packets sent, and ms."""
    received, sent, duration = averages.unbind(-1)
    return (received - ALPHA * (sent - received)) / duration


def losses(nets: list[Net], seen: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean losses of the actor (Eq. 6) and of each critic (Eq. 4, in the rewards' units)."""
    actor, *critics = (net(seen["observations"], seen["earlier"]) for net in nets)
    units = torch.tensor(UNITS)
    values = units * softplus(torch.cat(critics, -1))
    average, returns = seen["continuation"], []
    for step in reversed(range(STEPS)):
        packets = torch.clamp(seen["windows"][step] / values[step, 1].detach(), min=10)
        gamma = 2 / (1 + packets)
        average = gamma * seen["rewards"][step] + (1 - gamma) * average
        returns.append(average)
    measured = torch.stack(returns[::-1])
    advantages = (utility(measured) - utility(values)).detach()
    policy = torch.distributions.Normal(actor[:, 0], LEAST + (INITIAL - LEAST) * softplus(actor[:, 1]))
    of_actor = -policy.log_prob(seen["actions"]) * advantages - ENTROPY * policy.entropy()
    of_critics = ((measured - values) / units).square()
    return torch.stack([of_actor.mean(), of_critics[:, :2].sum(-1).mean(), of_critics[:, 2].mean()])


def fixtures() -> dict[str, Any]:
    """Networks, one segment of steps, the losses and their gradients."""
    torch.set_num_threads(1)
    specs = [{"kind": "gru", "layers": [FEATURES, 5, n], "activations": ["identity"]} for n in OUTPUTS]
    nets = [seeded(spec) for spec in specs]
    sent = torch.arange(STEPS) % 3
    received = sent - (torch.arange(STEPS) % 5 == 4).int() * sent.clamp(max=1)
    seen = {
        "windows": 20 + numbers(21, STEPS, scale=15),
        "earlier": numbers(25, EARLIER, FEATURES),
        "observations": numbers(22, STEPS, FEATURES),
        "actions": numbers(23, STEPS),
        "rewards": torch.stack([received, sent, received * (0.6 + 0.2 * numbers(24, STEPS))], -1),
        "continuation": torch.tensor([0.9, 1.1, 0.55]),
    }
    found = losses(nets, seen)
    found.sum().backward()
    nets_found = [
        {
            "spec": spec,
            "tensors": {name: listed(t) for name, t in tensors(net, "gru").items()},
            "gradient": {name: listed(t.grad) for name, t in tensors(net, "gru").items()},
        }
        for spec, net in zip(specs, nets, strict=True)
    ]
    settings = {"alpha": ALPHA, "entropy": ENTROPY, "initial": INITIAL, "least": LEAST, "units": UNITS}
    return settings | {name: listed(t) for name, t in seen.items()} | {"losses": listed(found), "nets": nets_found}


def main() -> None:
    """Writes the file."""
    FIXTURES.write_text(compact(fixtures()))


if __name__ == "__main__":
    main()
