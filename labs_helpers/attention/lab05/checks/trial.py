"""What the kernel checks of lab 05 share: cases between NaN, and how often a row may be loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from labs_helpers.attention.lab05.checks.bare_loads import loads_without_other
from labs_helpers.attention.lab05.checks.causes import suspects
from labs_helpers.attention.lab05.checks.exact import Exact
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.kernel_trial import Run
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.wrong import Wrong

BOUND = "float32 products and sums, P and dS rounded once for the tensor cores"
NAMES = {"dq": "dQ", "dk": "dK", "dv": "dV"}


@dataclass(frozen=True)
class Case:
    """One set of operands, contiguous and between NaN, on this machine's device. `near`: the scores are around it."""

    name: str
    Lq: int
    Lk: int
    causal: bool = False
    dtype: torch.dtype = torch.float32
    near: float = 0.0
    cap: float | None = None
    blocks: tuple[tuple[str, int], ...] = ()

    def operands(self, H: int = 2, D: int = 16) -> tuple[dict, Exact]:
        """(q, k, v, do, lse, delta, scale by name, the exact gradients)."""
        q, do = numbers(1, H, self.Lq, D), numbers(1, H, self.Lq, D, seed=3)
        k, v = numbers(1, H, self.Lk, D, seed=1), numbers(1, H, self.Lk, D, seed=2)
        scale = D**-0.5
        if self.near:
            scale, q[..., 0], k[..., 0] = 1.0, 10.0, self.near / 10
        q, k, v, do = (_between_nan(x.to(self.dtype)) for x in (q, k, v, do))
        exact = Exact(q, k, v, do, scale, self.causal, self.cap)
        lse, delta = (_between_nan(x.float().to(q.device)) for x in (exact.lse, exact.delta))
        return {"q": q, "k": k, "v": v, "do": do, "lse": lse, "delta": delta, "scale": scale}, exact


def _between_nan(x: torch.Tensor) -> torch.Tensor:
    return surrounded(x.flatten()).view(x.shape)


def expect_gradient(run: Run, name: str, value, exact: Exact, dtype) -> None:
    """Raises Wrong unless `value` is the gradient `name` ('dq', …), each element stored once, by a kernel."""
    if not isinstance(value, torch.Tensor):
        raise Wrong(run.case, f"{NAMES[name]} is {value!r}, not a tensor")
    if run.meter is not None and not run.meter.knows(value):
        raise Wrong(run.case, f"no kernel was given {NAMES[name]}: PyTorch made it")
    replace(run, value=value).expect_written_once(NAMES[name])
    if value.dtype != dtype:
        raise Wrong(run.case, f"{NAMES[name]} is {value.dtype}, the inputs are {dtype}")
    expected, bound = getattr(exact, name), exact.bounds(dtype)[name]
    if value.shape == expected.shape and bool(((value.cpu().double() - expected).abs() <= bound).all()):
        return  # what the suspects would have given is computed for a wrong answer only
    blocks = {edge: run.launches[-1].constexprs.get(edge, 64) for edge in ("BLOCK_M", "BLOCK_N")}
    close(
        value,
        expected,
        bound,
        f"{run.case}: {NAMES[name]}",
        BOUND,
        suspects(exact, name, **blocks, bare=loads_without_other(run.launches[-1].kernel)),
    )


def expect_loads_between(run: Run, name: str, tensor, least: np.ndarray, most: np.ndarray, surplus: str) -> None:
    """Raises Wrong unless row r of `tensor`, (B, H, L, D) or (B, H, L), is loaded least[r] to most[r] times."""
    if run.meter is None:
        return
    loads = run.meter.of(tensor).loads
    rows = loads.reshape(*loads.shape[:3], -1).max(-1)  # (B, H, L)
    few, many = rows.min((0, 1)), rows.max((0, 1))
    if (many > most).any():
        r = int(np.argmax(many - most))
        raise Wrong(
            run.case, f"row {r} of {name} is loaded {many[r]} times, expected {most[r]}.\nLikely cause: {surplus}"
        )
    if (few < least).any():
        r = int(np.argmax(least - few))
        raise Wrong(run.case, f"row {r} of {name} is loaded {few[r]} times, expected {least[r]}")


def loads_of_keys(Lq: int, Lk: int, causal: bool, BLOCK_M: int, BLOCK_N: int) -> tuple[np.ndarray, np.ndarray]:
    """(least, most) loads of each key by the programs of query_gradient: what is seen, and in whole tiles."""
    keys, firsts = np.arange(Lk)[:, None], np.arange(0, Lq, BLOCK_M)[None, :]
    if not causal:
        return (np.full(Lk, firsts.size),) * 2
    last_seen = np.minimum(firsts + BLOCK_M, Lq) - 1 + Lk - Lq
    seen_by_padding = firsts + BLOCK_M - 1 + Lk - Lq
    return (keys <= last_seen).sum(1), (keys // BLOCK_N * BLOCK_N <= seen_by_padding).sum(1)


def loads_of_queries(Lq: int, Lk: int, causal: bool, BLOCK_M: int, BLOCK_N: int) -> tuple[np.ndarray, np.ndarray]:
    """(least, most) loads of each query by the programs of key_value_gradients."""
    queries, firsts = np.arange(Lq)[:, None], np.arange(0, Lk, BLOCK_N)[None, :]
    if not causal:
        return (np.full(Lq, firsts.size),) * 2
    return (
        (firsts <= queries + Lk - Lq).sum(1),
        (firsts <= queries // BLOCK_M * BLOCK_M + BLOCK_M - 1 + Lk - Lq).sum(1),
    )
