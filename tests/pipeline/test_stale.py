"""Test training without a flush: each stage's gradient belongs to weights of the right age."""

import pytest
import torch
from torch import nn

from labs_helpers.pipeline import stale


class Times(nn.Module):
    """A stage that multiplies its input by one weight."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64))

    def forward(self, x):
        return self.weight * x


def loss_of(y, target):
    return (y - target).square().mean()


def batches(steps):
    draw = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(2, 8, 1, generator=draw, dtype=torch.float64)) for _ in range(steps)]


def test_without_delays_it_is_plain_sgd():
    stages = [Times(w) for w in (0.5, 1.5, -1.0)]
    model = nn.Sequential(*[Times(w) for w in (0.5, 1.5, -1.0)])
    optimizer, right = torch.optim.SGD(model.parameters(), lr=0.1), []
    for x, target in batches(5):
        optimizer.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        right.append(loss.item())
    assert stale.train(stages, batches(5), loss_of, 0.1) == pytest.approx(right)
    assert [s.weight.item() for s in stages] == pytest.approx([p.item() for p in model.parameters()])


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_gradient_belongs_to_weights_of_the_stages_age(ranks):
    """Compare with PipeDream's formula: w(t + 1) = w(t) − lr · ∇loss(w₀(t − p + 1), …, w_{p−1}(t))."""
    start, late = [0.5 + rank for rank in range(ranks)], stale.delays(ranks)
    history, steps = [start], batches(6)
    for t, (x, target) in enumerate(steps):
        used = [torch.tensor(history[max(0, t - age)][r], dtype=torch.float64, requires_grad=True)
                for r, age in enumerate(late)]  # fmt: skip
        gradients = torch.autograd.grad(loss_of(x * torch.stack(used).prod(), target), used)
        history.append([w - 0.01 * g.item() for w, g in zip(history[-1], gradients, strict=True)])
    stages = [Times(w) for w in start]
    stale.train(stages, steps, loss_of, 0.01, late)
    assert [s.weight.item() for s in stages] == pytest.approx(history[-1])


def test_the_last_rank_is_never_late_and_each_stage_needs_an_age():
    assert stale.delays(4) == [3, 2, 1, 0]
    with pytest.raises(ValueError, match="2 delays for 1 stages"):
        stale.train([Times(1.0)], batches(1), loss_of, 0.1, [1, 0])
