"""Compare a student's backward pass with lab 05's versions: the bytes that they move, and reproducible bits."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.inputs import backward_inputs
from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients
from labs_helpers.attention.lab05.pictures import draw_traffic
from labs_helpers.attention.lab05.split_kernel import split_gradients
from labs_helpers.compile.interpreter_process import interpreted
from labs_helpers.course.meter import metered

BLOCKS = {"causal": True, "BLOCK_M": 32, "BLOCK_N": 32}


def two_kernels(q, k, v, do, lse, delta, scale, backwards=False, **blocks) -> tuple:
    """Return (dQ, dK, dV) of exercises 2 and 3, for which the order of the programs has no effect."""
    operands = q, k, v, do, lse, delta, scale
    return exercises.query_gradient(*operands, **blocks), *exercises.key_value_gradients(*operands, **blocks)


def beside_ours(mine, L: int = 128):
    """Draw the counted bytes that two kernels, the one kernel, ours and `mine` load and store.

    Attention is causal, with one head of 32 and tiles of 32×32. Prints for each version whether dQ keeps its bits when
    the programs run from the last to the first, and its relative distance from the two kernels' dQ. mine: like
    one_kernel_gradients, or a function that returns None.
    """
    ways = {"two kernels": two_kernels, "one kernel": one_kernel_gradients, "ours": split_gradients, "yours": mine}
    moved, exact = {}, None
    for name, way in ways.items():
        if (counted := interpreted(_count, way, L)) is None:
            continue
        moved[name], dq, same = counted
        exact = dq if exact is None else exact
        error = float((dq - exact).norm() / exact.norm())
        print(f"{name:<12} same bits of dQ in another order: {same!s:<5}  difference from two kernels: {error:.0e}")
    return draw_traffic(moved)


def _count(way, L: int) -> tuple[int, torch.Tensor, bool] | None:
    given = backward_inputs(L, L)
    with metered() as meter:
        gradients = way(**given, **BLOCKS)
    if gradients is None:
        return None
    dq, *_ = gradients
    other, *_ = way(**given, **BLOCKS, backwards=True)
    return meter.bytes_moved, dq.float(), torch.equal(dq, other)
