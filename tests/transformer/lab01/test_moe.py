"""Compare both implementations of the block of experts with float64, one token at a time."""

from collections import Counter

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.trace import record
from labs_helpers.transformer.lab01.moe import WAYS, Experts

WIDTH, HIDDEN, EXPERTS = 12, 20, 5


def block(way, dtype=torch.float64, capacity=None):
    torch.manual_seed(1)
    experts = Experts(WIDTH, HIDDEN, EXPERTS, way, capacity).to(this_machine().device, dtype)
    with torch.no_grad():  # larger weights: the gates are to differ from one half
        for parameter in experts.parameters():
            parameter.mul_(25)
    return experts


def tokens(*shape, dtype=torch.float64):
    x = torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(2), dtype=dtype)
    return x.to(this_machine().device).requires_grad_()


def one_by_one(experts, x, capacity=10**9):
    """What the block is, written down: token by token, expert by expert."""
    out, visited = [], Counter()
    for token in x.flatten(0, -2):
        logits = experts.router.weight @ token
        best = sorted(range(EXPERTS), key=lambda e: -logits[e].item())[:2]
        weights = [logits[e].exp() for e in best]
        answer = torch.zeros_like(token)
        for e, weight in zip(best, weights, strict=True):
            if visited[e] < capacity:
                gated = token @ experts.gate[e]
                inner = gated / (1 + (-gated).exp()) * (token @ experts.up[e])
                answer = answer + weight / sum(weights) * (inner @ experts.down[e])
            visited[e] += 1
        out.append(answer)
    return torch.stack(out).view(x.shape)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(40,), (3, 7), (2, 2, 5), (1,)])
def test_values_and_gradients_are_those_of_one_token_at_a_time(way, shape):
    experts, x = block(way), tokens(*shape)
    inputs = [x, *experts.parameters()]
    expected = one_by_one(experts, x)
    weights = torch.linspace(-1, 1, expected.numel(), dtype=x.dtype, device=x.device).view(expected.shape)
    gradients = torch.autograd.grad((expected * weights).sum(), inputs)
    y = experts(x)
    # The gates are made in float32, whatever the tokens are.
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    for gradient, right in zip(torch.autograd.grad((y * weights).sum(), inputs), gradients, strict=True):
        torch.testing.assert_close(gradient, right, rtol=1e-4, atol=1e-5 * right.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_ways_are_equal_but_for_rounding(dtype):
    x = tokens(64, dtype=dtype)
    with torch.no_grad():
        looped, batched = (block(way, dtype)(x) for way in WAYS)
    assert looped.dtype == batched.dtype == dtype
    torch.testing.assert_close(looped, batched, rtol=0.02 if dtype == torch.bfloat16 else 1e-5, atol=0.02)


@pytest.mark.parametrize("capacity", [1, 4, 9])
def test_what_exceeds_the_capacity_is_dropped_in_order(capacity):
    x = tokens(30)
    experts = block("batched", capacity=capacity)
    torch.testing.assert_close(experts(x), one_by_one(experts, x, capacity), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(experts(x), block("looped")(x))


def test_an_expert_that_nobody_chooses():
    for way in WAYS:
        experts, x = block(way), tokens(20)
        with torch.no_grad():
            experts.router.weight[2] = 0
            experts.router.weight[3] = -experts.router.weight[4]
            x.data[:, 0] = 50
            experts.router.weight[:, 0] = torch.tensor([2.0, 1.0, -1.0, -2.0, -3.0])
        torch.testing.assert_close(experts(x), one_by_one(experts, x), rtol=1e-5, atol=1e-4)
        (gradient,) = torch.autograd.grad(experts(x).sum(), [experts.gate])
        assert gradient[2:].abs().max() == 0 and gradient[:2].abs().min(dim=0).values.max() > 0


@pytest.mark.parametrize("way, times", [("looped", EXPERTS), ("batched", 1)])
def test_ranges_follow_one_another_and_hold_all_the_work(way, times):
    experts, x = block(way), tokens(16)
    with torch.no_grad():
        events = record(lambda: experts(x)).events
    parts = [e for e in events if e["cat"] == "user_annotation"]
    assert Counter(part["name"] for part in parts) == {
        "router": 1,
        "dispatch": times,
        "experts": times,
        "combine": times,
    }
    for part, following in zip(parts, parts[1:], strict=False):
        assert part["ts"] + part["dur"] <= following["ts"]
    for call in (e for e in events if e["cat"] == "cuda_runtime" and "DeviceSynchronize" not in e["name"]):
        assert sum(part["ts"] <= call["ts"] < part["ts"] + part["dur"] for part in parts) == 1


def test_only_the_loop_asks_how_many():
    for way, asks in (("looped", True), ("batched", False)):
        experts, x = block(way), tokens(16)
        with torch.no_grad():
            names = {e["name"] for e in record(lambda: experts(x)).events if e["cat"] == "cpu_op"}  # noqa: B023
        waiting = {"aten::nonzero", "aten::nonzero_numpy", "aten::item", "aten::_local_scalar_dense", "aten::bincount"}
        assert bool(names & waiting) == asks


def test_another_way_is_refused():
    with pytest.raises(ValueError, match="way is 'sorted'; it may be 'looped', 'batched'"):
        Experts(8, 8, 4, "sorted")
