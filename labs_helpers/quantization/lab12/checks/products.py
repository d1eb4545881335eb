"""What lab 12's kernels share: operands between NaN, their right product, and mistakes in the K loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from labs_helpers.course.verdict import Candidates, Run, Truth, matmul_bound, numbers
from labs_helpers.measure.machine import this_machine

BOUND = "one rounding of y plus (K+4)·2⁻²⁴·Σ|x||w| for float32 accumulation"
Rounding = tuple[str, torch.Tensor]  # a sentence, and the result with that rounding


def padded(tensor: torch.Tensor, margin: int = 67) -> torch.Tensor:
    """Return the values as a contiguous tensor on this machine's device between NaN, or between 0 for whole numbers."""
    outside = torch.nan if tensor.is_floating_point() else 0
    buffer = torch.full((tensor.numel() + 2 * margin,), outside, dtype=tensor.dtype, device=this_machine().device)
    buffer[margin:-margin] = tensor.flatten().to(buffer.device)
    return buffer[margin:-margin].view(tensor.shape)


def activations(M: int, K: int, dtype: torch.dtype, size: float = 1.0) -> torch.Tensor:
    return padded((size * numbers(M, K)).to(dtype))


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return x · wᵀ in float64, on the CPU."""
    return x.cpu().double() @ w.cpu().double().T


def truth(x: torch.Tensor, w: torch.Tensor) -> Truth:
    """Return the right x · wᵀ in x's dtype, and its bound. w: the dequantized weight, float64."""
    expected, magnitude = product(x, w), product(x.abs(), w.abs())
    return Truth(expected, matmul_bound(expected, magnitude, x.shape[1], x.dtype), BOUND, x.dtype)


def loop_causes(run: Run, x: torch.Tensor, w: torch.Tensor, default: int) -> Candidates:
    """Yield common mistakes in the loop over K. default: the BLOCK_K of the exercise."""
    K, block = x.shape[1], run.launches[-1].constexprs.get("BLOCK_K", default)
    parts = [(x[:, k : k + block], w[:, k : k + block]) for k in range(0, K, block)]
    if len(parts) == 1:
        return
    steps, (first_x, first_w) = [product(*part) for part in parts], parts[0]
    zero = torch.zeros_like(steps[0])
    yield "every step multiplies the same tiles; add the loop's start to k", len(steps) * steps[0]
    yield (
        "every step reads the same tile of x; add the loop's start to k",
        sum((product(first_x[:, : b.shape[1]], b) for _, b in parts), zero),
    )
    yield (
        "every step reads the same tile of the weight; add the loop's start to k",
        sum((product(a, first_w[:, : a.shape[1]]) for a, _ in parts), zero),
    )
    yield "only the last step counts; add each step's product to acc", steps[-1]
    yield "the loop makes only its first step", steps[0]
    yield "the last step along K is missing", sum(steps[:-1], zero)
    yield "the first step along K is missing", sum(steps[1:], zero)
    yield "acc stays 0: the result of tl.dot is not kept", zero


def rounding_causes(run: Run, right: torch.Tensor, roundings: Sequence[Rounding]) -> Candidates:
    """Yield each rounding that reproduces a float16 result much better than the right product does."""
    found = run.value.cpu().double()
    if run.value.dtype != torch.float16 or found.shape != right.shape or not bool(found.isfinite().all()):
        return
    off = (found - right).abs().mean()
    fitting = [said for said, like in roundings if (found - like.half().double()).abs().mean() < 0.25 * off]
    yield from ((said, found) for said in fitting)


def in_steps(x: torch.Tensor, w: torch.Tensor, block: int, rounded: Callable) -> torch.Tensor:
    """Return x · wᵀ with the sum passed through `rounded` after each step of the loop."""
    acc = torch.zeros(len(x), len(w), dtype=torch.float64)
    for k in range(0, x.shape[1], block):
        acc = rounded(acc + product(x[:, k : k + block], w[:, k : k + block])).double()
    return acc


def expect_read_once(run: Run, name: str, weight: torch.Tensor, block: int) -> None:
    """Raise Wrong unless each element of the weight is loaded once. A kernel that takes columns modulo N instead of a
    mask loads some rows again, up to whole tiles; that counts as a mask."""
    if run.meter is None:
        return
    loads, N = run.meter.of(weight).loads, len(weight)
    most = -(-N // block) * block * weight.shape[1]
    if not (loads >= 1).all() or loads.sum() > most:
        run.expect_loads(name, weight, 1, "one program reads all K columns of its rows of the weight")
