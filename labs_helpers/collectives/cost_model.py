"""Predict the time of a collective from α–β–γ costs fitted to this machine, and find where two algorithms cross.

A message of n bytes takes α + nβ seconds, and adding n bytes to others takes nγ, as in Thakur, Rabenseifner, Gropp,
"Optimization of collective communication operations in MPICH" (2005). Shared memory sends nothing: its costs are
barriers and copies. So the model has a fourth number, the seconds per byte of a local copy. With 0 for it, the model is
the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# busbw / algbw as nccl-tests define it: the share of the bytes that the busiest link has to carry.
BUS_FACTOR: dict[str, Callable[[int], float]] = {
    "allreduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "allgather": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda ranks: 1.0,
    "alltoall": lambda ranks: (ranks - 1) / ranks,
}


class Terms(NamedTuple):
    """The critical path of an algorithm: sequential messages, and the data sent, reduced and copied along it.

    The last three are in units of n, the collective's bytes: the buffer of all-reduce and broadcast, the send buffer of
    reduce-scatter and all-to-all, the receive buffer of all-gather.
    """

    messages: float
    sent: float = 0.0
    reduced: float = 0.0
    copied: float = 0.0

    def __add__(self, other: Terms) -> Terms:  # type: ignore[override]  # adds, where a tuple would get longer
        return Terms(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Costs:
    """A machine in four numbers: α in seconds per message; β, γ and copy in seconds per byte."""

    alpha: float
    beta: float
    gamma: float = 0.0
    copy: float = 0.0

    def seconds(self, terms: Terms, nbytes: float) -> float:
        """Return the time of a critical path at n = nbytes."""
        per_byte = terms.sent * self.beta + terms.reduced * self.gamma + terms.copied * self.copy
        return terms.messages * self.alpha + nbytes * per_byte

    def __str__(self) -> str:
        def rate(seconds_a_byte: float) -> str:
            return f"{1e-9 / seconds_a_byte:.3g} GB/s" if seconds_a_byte else "–"

        return f"α {1e6 * self.alpha:.3g} µs, 1/β {rate(self.beta)}, 1/γ {rate(self.gamma)}, copies {rate(self.copy)}"


def terms(function: str, algorithm: str, ranks: int, nodes: int = 1) -> Terms:
    """Return the critical path of one algorithm on `ranks` ranks; `nodes` only matters to the hierarchical one.

    ValueError for a function or algorithm without a model ('native' and 'auto' have none), and for ranks or nodes < 1.
    """
    if (function, algorithm) not in _MODELS:
        known = ", ".join(f"{f} {a}" for f, a in _MODELS)
        raise ValueError(f"there is no cost model of {function} {algorithm}; there is one of {known}")
    if ranks < 1 or nodes < 1 or ranks % nodes:
        raise ValueError(f"ranks = {ranks} and nodes = {nodes}; both at least 1, and as many ranks on every node")
    if ranks == 1:
        return Terms(0, copied=1)
    model = _MODELS[function, algorithm]
    return model(ranks, nodes) if algorithm == "hierarchical" else model(ranks)


def cost(function: str, algorithm: str, ranks: int, nbytes: float, costs: Costs, nodes: int = 1) -> float:
    """Return the predicted seconds. Raises as `terms` does."""
    return costs.seconds(terms(function, algorithm, ranks, nodes), nbytes)


def crossover(
    function: str, few_messages: str, few_bytes: str, ranks: int, costs: Costs, nodes: int = 1
) -> float | None:
    """Return the bytes from which on `few_bytes` takes less time than `few_messages`; None if there is no such size.

    Both costs are straight lines in n, so they cross at most once. 0 if `few_bytes` starts lower.
    """
    low, high = (terms(function, name, ranks, nodes) for name in (few_messages, few_bytes))
    start = costs.seconds(high, 0) - costs.seconds(low, 0)
    slope = (costs.seconds(low, 1) - costs.seconds(low, 0)) - (costs.seconds(high, 1) - costs.seconds(high, 0))
    if start <= 0:
        return 0.0 if slope >= 0 else None
    return start / slope if slope > 0 else None


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Fit (α, β) of time = α + size·β by least squares of the *relative* errors; neither is negative.

    With absolute errors the largest messages alone would decide, and α would be noise. ValueError for fewer than two
    different sizes, and for times that are not positive.
    """
    n, times = np.asarray(sizes, float), np.asarray(seconds, float)
    if n.shape != times.shape or len(set(n.tolist())) < 2:
        raise ValueError(f"a fit needs a time for each of two sizes or more: {n.size} sizes, {times.size} times")
    if not (times > 0).all():
        raise ValueError("seconds must all be positive")
    columns = np.stack([1 / times, n / times], axis=1)
    # Scaled to length 1: α and β are a million apart, and lstsq drops what looks like rounding.
    lengths = np.linalg.norm(columns, axis=0)
    scaled, ones = columns / lengths, np.ones(n.size)
    found = np.linalg.lstsq(scaled, ones, rcond=None)[0]
    if found.min() < 0:
        alone = np.maximum(0, scaled.T @ ones)  # least squares with the other parameter fixed at 0
        found = np.where(found > 0, alone, 0)
    alpha, beta = (found / lengths).tolist()
    return alpha, beta


def _log2(ranks: int) -> int:
    """Return the log₂ of the largest power of two up to `ranks`: the number of steps of algorithms that pair ranks
    up."""
    return ranks.bit_length() - 1


def _fold(ranks: int) -> Terms:
    """Return the terms of the ranks beyond a power of two, which send their data to a neighbor first and receive the
    result last; see fold.py."""
    return Terms(2, 2, 1) if ranks > 2 ** _log2(ranks) else Terms(0)


def _recursive_doubling(ranks: int) -> Terms:
    steps = _log2(ranks)
    return Terms(steps, steps, steps, copied=1) + _fold(ranks)


def _rabenseifner(ranks: int) -> Terms:
    steps = _log2(ranks)
    share = 1 - 2**-steps
    return Terms(2 * steps, 2 * share, share, copied=1) + _fold(ranks)


def _recursive_halving(ranks: int) -> Terms:
    share = (ranks - 1) / ranks
    halving = Terms(_log2(ranks), share, share, copied=1)
    return halving + (Terms(2, 1 + 1 / ranks, 1) if _fold(ranks).messages else Terms(0))


def _tree_depth(ranks: int) -> int:
    return (ranks - 1).bit_length()


# A barrier of flags in shared memory costs one message: written on one rank, seen on another.
def _hierarchical(ranks: int, nodes: int) -> Terms:
    """Return the terms of: copy in, barrier, reduce the own slice, barrier, Rabenseifner's between the leaders,
    barrier, copy out."""
    within = ranks // nodes
    between = _rabenseifner(nodes)._replace(copied=0) if nodes > 1 else Terms(0)
    return Terms(3, reduced=(within - 1) / within, copied=2) + between


_MODELS: dict[tuple[str, str], Callable[..., Terms]] = {
    ("allreduce", "naive"): lambda p: Terms(2 * (p - 1), 2 * (p - 1), p - 1, copied=1),
    ("allreduce", "ring"): lambda p: Terms(2 * (p - 1), 2 * (p - 1) / p, (p - 1) / p, copied=1),
    ("allreduce", "recursive_doubling"): _recursive_doubling,
    ("allreduce", "rabenseifner"): _rabenseifner,
    ("allreduce", "shared_memory"): lambda p: Terms(2, reduced=(p - 1) / p, copied=2),
    ("allreduce", "hierarchical"): _hierarchical,
    ("reduce_scatter", "ring"): lambda p: Terms(p - 1, (p - 1) / p, (p - 1) / p, copied=1),
    ("reduce_scatter", "recursive_halving"): _recursive_halving,
    ("allgather", "ring"): lambda p: Terms(p - 1, (p - 1) / p, copied=1 / p),
    ("broadcast", "binomial"): lambda p: Terms(_tree_depth(p), _tree_depth(p)),
    ("alltoall", "pairwise"): lambda p: Terms(p - 1, (p - 1) / p, copied=1 / p),
    ("alltoall", "shared_memory"): lambda p: Terms(1, copied=2),
}
