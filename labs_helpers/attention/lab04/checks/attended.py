"""The trial of a kernel that computes attention: what O, log-sum-exp and the loads are held to."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import torch

from labs_helpers.attention.lab04.checks.causes import loop_causes
from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.attention.lab04.checks.mask_causes import mask_causes
from labs_helpers.attention.lab04.checks.operands import SCALE
from labs_helpers.attention.lab04.checks.visited import expect_visits
from labs_helpers.attention.tile_map import SKIPPED, tile_states, visible
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import (
    Run,
    Wrong,
    check_tensor_cores,
    expect_close,
    expect_fused,
    expect_tuple,
    run_watched,
)
from labs_helpers.course.visits import row_loads

WHY = "float32 sums, P and O rounded once"


def masked_cases(student, cases) -> Iterator[str]:
    """The whole check of a kernel with a causal mask. A case: name, (q, k, v), BLOCK_M, BLOCK_N, and the window of
    keys that a query sees, if there is one."""
    tiles = visited = 0
    for case, tensors, BLOCK_M, BLOCK_N, *window in cases:
        run = attend(case, student, tensors, BLOCK_M, BLOCK_N, *window)
        states = tile_states(visible(tensors[0].shape[2], tensors[1].shape[2], True, *window), BLOCK_M, BLOCK_N)
        tiles, visited = tiles + states.size, visited + int((states != SKIPPED).sum())
        yield case
    yield f"visited are {visited} of {tiles} tiles, those that a query sees, each once"
    yield check_tensor_cores(run.launches[-1])


def attend(case: str, student, tensors, BLOCK_M: int, BLOCK_N: int, *window: int, causal: bool = True) -> Run:
    """`student(q, k, v, *window, scale, …)` against float64, with its loads, stores and visits; raises Wrong."""
    q, k, v = tensors
    seen = visible(q.shape[2], k.shape[2], causal, *window)
    with TorchTraffic() as outside, row_loads(k) as loaded:
        run = run_watched(case, student, q, k, v, *window, SCALE, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    expect_fused(run, outside)
    o, lse = _outputs(run, q)
    for name, tensor, rows in (("O", o, "(head * Lq + rows) * D"), ("lse", lse, "head * Lq + rows")):
        overlapping = f"each head has its own rows of {name}: {rows}, with rows from program_id(0) * BLOCK_M"
        replace(run, value=tensor.flatten(0, -2)).expect_written_once(name, overlapping)
    if run.meter:
        run.expect_loads("Q", q, 1, "each program loads its own rows, once, before the loop")
        expect_visits(run, loaded, seen, k, v, BLOCK_M, BLOCK_N)
    exact = Exact(q, k, v, SCALE, torch.from_numpy(seen))
    bounds = exact.bounds(q.dtype)
    for name, found, title in (("lse", lse, "log-sum-exp"), ("o", o, "O")):
        causes = loop_causes(name, exact, run.value, BLOCK_N)
        if causal:
            causes = chain(mask_causes(name, exact, run.value, BLOCK_M, BLOCK_N, *window or [torch.inf]), causes)
        expect_close(case, found, getattr(exact, name), bounds[name], WHY, causes, title)
    return run


def _outputs(run: Run, q) -> tuple[torch.Tensor, torch.Tensor]:
    o, lse = expect_tuple(run.case, run.value, "o", "lse")
    for name, tensor, shape, dtype in (("o", o, q.shape, q.dtype), ("lse", lse, q.shape[:3], torch.float32)):
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
            raise Wrong(run.case, f"{name} is {tuple(tensor.shape)} {tensor.dtype}, expected {tuple(shape)} {dtype}")
    return o, lse
