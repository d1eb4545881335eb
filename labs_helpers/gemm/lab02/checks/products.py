"""The expected values of lab 02's products, the results of common mistakes, and the expected loads of A and B."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labs_helpers.compile.launches import Launch
from labs_helpers.course.verdict import Candidates, Run, Truth, matmul_bound

BOUND = "one rounding of the result plus (K+4)·2⁻²⁴·Σ|a||b| for float32 accumulation"


def product(a, b):
    """Return A·B in float64, on the CPU."""
    return a.cpu().double() @ b.cpu().double()


def truth(a, b, c=None) -> Truth:
    """Return the expected A·B, or ReLU(A·B + C) if c is given, and its error bound."""
    expected, magnitude = product(a, b), a.cpu().double().abs() @ b.cpu().double().abs()
    if c is not None:
        expected, magnitude = (expected + c.cpu().double()).relu(), magnitude + c.cpu().double().abs()
    return Truth(expected, matmul_bound(expected, magnitude, a.shape[1], a.dtype), BOUND, a.dtype)


def product_causes(run: Run, a, b, finish: Callable = lambda dot: dot) -> Candidates:
    """Yield (cause, result) of common mistakes in the K loop. finish: applies the epilogue to a float64 A·B."""
    K, block = a.shape[1], run.launches[-1].constexprs.get("BLOCK_K", 32)
    steps = [product(a[:, k : k + block], b[k : k + block]) for k in range(0, K, block)]
    zero = torch.zeros_like(steps[0])
    doubled = zero
    for step in steps:
        doubled = 2 * doubled + step
    yield (
        "acc += tl.dot(a, b, acc) adds acc twice; write acc = tl.dot(a, b, acc) or acc += tl.dot(a, b)",
        finish(doubled),
    )
    yield "the result of tl.dot is discarded; write acc = tl.dot(a, b, acc)", finish(zero)
    yield "every step multiplies the same tiles; add the loop's start to k", finish(len(steps) * steps[0])
    yield "only the last step counts; add each step's product to the accumulator", finish(steps[-1])
    yield "the loop makes only its first step", finish(steps[0])
    yield "the last step along K is missing", finish(sum(steps[:-1], zero))
    yield "the first step along K is missing", finish(sum(steps[1:], zero))
    yield "the sum along K is divided by K, but a matrix product is a sum, not a mean", finish(sum(steps) / K)
    if K % block:
        ones = finish(sum(steps) + (block - K % block))
        yield "masked elements count as 1; with other=0.0 on both loads they add nothing to the sum", ones
        yield "masked elements of the last step are not 0; give both loads other=0.0", torch.full_like(zero, torch.nan)
    yield from _roundings(run, a, b, finish)


def _roundings(run: Run, a, b, finish: Callable) -> Candidates:
    """Yield a cause for each wrong rounding that reproduces the result exactly."""
    found = run.value.cpu()
    exact = finish(product(a, b))
    if not bool(((found.double() - exact).abs() <= 0.02 * exact.abs().clamp(min=1)).all()):
        return
    if a.dtype == torch.float32 and found.dtype == torch.float32:
        if torch.equal(found.half().float(), found):
            yield "D is rounded to float16 although it is float32; convert to d_ptr.dtype.element_ty", found
        coarse = finish(product(a.half(), b.half()))
        if bool(((found - coarse).abs() <= 1e-5 * coarse.abs().clamp(min=1)).all()):
            yield "A and B are rounded to float16 before they are multiplied", found
    if a.dtype == torch.float16:
        block = run.launches[-1].constexprs.get("BLOCK_K", 32)
        for rounded in (lambda step, acc: acc + step.half(), lambda step, acc: (acc.double() + step).half()):
            acc = torch.zeros(exact.shape, dtype=torch.float16)
            for k in range(0, a.shape[1], block):
                acc = rounded(product(a[:, k : k + block], b[k : k + block]), acc)
            like = finish(acc.double()).half().double()
            if (found.double() - like).abs().mean() < 0.25 * (found.double() - exact).abs().mean():
                yield "the sum is rounded to float16 in every step; make the accumulator tl.float32", found


def reuse(run: Run, a, b, *_):
    """Expect that each column of tiles loads A once, and each row of tiles B once.

    A kernel may use `rows % M` instead of a mask and load some rows again. Such loads count as masked ones.
    """
    if run.meter is None:
        return ()
    launch = run.launches[-1]
    columns, rows = tiles(launch, "N", b.shape[1]), tiles(launch, "M", a.shape[0])
    padded_m, padded_n = rows * _block(launch, "M"), columns * _block(launch, "N")
    for name, x, times, most, why in (
        (
            "A",
            a,
            columns,
            columns * padded_m * a.shape[1],
            f"once for each of the N/BLOCK_N = {columns} columns of tiles",
        ),
        ("B", b, rows, rows * padded_n * b.shape[0], f"once for each of the M/BLOCK_M = {rows} rows of tiles"),
    ):
        loads = run.meter.of(x).loads
        if not (loads >= times).all() or loads.sum() > most:
            run.expect_loads(name, x, times, why)
    return ()


def tiles(launch: Launch, dimension: str, size: int) -> int:
    """Return how many tiles a launch needs to cover `size` elements along dimension 'M' or 'N'."""
    return -(-size // _block(launch, dimension))


def _block(launch: Launch, dimension: str) -> int:
    return launch.constexprs.get(f"BLOCK_{dimension}", 64)
