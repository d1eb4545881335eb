"""Orders with one mistake each, for exercises 3 and 4 of lab 10: functions of (rank, ranks, micro-batches)."""

from __future__ import annotations

from collections.abc import Callable

Order = list[tuple[str, int]]


def passes(kind: str, numbers: range | list[int]) -> Order:
    return [(kind, i) for i in numbers]


def naive(rank: int, ranks: int, m: int) -> Order:
    return [(kind, i) for i in range(m) for kind in "FB"]


def gpipe(rank: int, ranks: int, m: int) -> Order:
    return passes("F", range(m)) + passes("B", range(m))


def alternating(warm_up: int, m: int, backward_first: bool = False, cut: bool = True) -> Order:
    """Return `warm_up` forward passes, pairs, and the backward passes that are left.

    cut: there are at most m forward passes.
    """
    warm_up = max(0, min(warm_up, m) if cut else warm_up)
    order = passes("F", range(warm_up))
    for k in range(m - warm_up):
        pair = [("F", warm_up + k), ("B", k)]
        order += pair[::-1] if backward_first else pair
    return order + passes("B", range(max(0, m - warm_up), m))


def one_f_one_b(rank: int, ranks: int, m: int) -> Order:
    return alternating(ranks - rank - 1, m)


def _renumbered(order: Callable[..., Order], number: Callable[[str, int, int], int]) -> Callable[..., Order]:
    """Return `order` with other micro-batches: number(kind, i, m) in place of i."""
    return lambda rank, ranks, m: [(kind, number(kind, i, m)) for kind, i in order(rank, ranks, m)]


FROM_1 = "micro-batches are counted from 1; the first one is 0"
NAIVE = "this is the naive order, one micro-batch at a time: the other ranks wait during each of them"
FIRST_IN = "the backward passes start with the last micro-batch; they start with micro-batch 0 here"
RANKS = "the micro-batches are counted with `ranks`, not with `micro_batches`"
LAST = "the last micro-batch is missing: range(n) ends with n − 1"

OF_GPIPE = [
    (NAIVE, naive),
    ("this is 1F1B, which starts backward passes early; GPipe runs all forward passes first", one_f_one_b),
    (FIRST_IN, _renumbered(gpipe, lambda kind, i, m: m - 1 - i if kind == "B" else i)),
    (FROM_1, _renumbered(gpipe, lambda kind, i, m: i + 1)),
    (RANKS, lambda rank, ranks, m: gpipe(rank, ranks, ranks)),
    (LAST, lambda rank, ranks, m: gpipe(rank, ranks, m - 1)),
    ("the backward passes are missing", lambda rank, ranks, m: passes("F", range(m))),
    ("the backward passes come before the forward passes", lambda rank, ranks, m: gpipe(rank, ranks, m)[::-1]),
    (
        "the backward passes come before the forward passes",
        lambda rank, ranks, m: passes("B", range(m)) + passes("F", range(m)),
    ),
    (
        "a rank leaves out micro-batches: every rank works on all of them",
        lambda rank, ranks, m: passes("F", range(rank, m)) + passes("B", range(rank, m)),
    ),
    (
        "a rank runs only the micro-batch of its own number: every rank works on all of them",
        lambda rank, ranks, m: [("F", rank), ("B", rank)],
    ),
]
ONE_MORE = "the warm-up is one forward pass too long: rank r has ranks − r − 1 ranks after it"
ONE_LESS = "the warm-up is one forward pass too short: rank r has ranks − r − 1 ranks after it"
FEWER = "there may be fewer micro-batches than forward passes in the warm-up: min(…, micro_batches)"
NO_END = "the backward passes at the end are missing: each warm-up forward pass leaves one"
OF_1F1B = [
    ("this is GPipe's order, which keeps a stash of every micro-batch: start backward passes earlier", gpipe),
    (NAIVE, naive),
    (ONE_MORE, lambda rank, ranks, m: alternating(ranks - rank, m)),
    (ONE_LESS, lambda rank, ranks, m: alternating(ranks - rank - 2, m)),
    (
        "every rank has the warm-up of rank 0; a later rank has fewer ranks after it",
        lambda rank, ranks, m: alternating(ranks - 1, m),
    ),
    (
        "the warm-up counts the ranks before this one; count those after it",
        lambda rank, ranks, m: alternating(rank, m),
    ),
    (FEWER, lambda rank, ranks, m: alternating(ranks - rank - 1, m, cut=False)),
    (FEWER, lambda rank, ranks, m: _below_0(ranks - rank - 1, m)),
    (NO_END, lambda rank, ranks, m: _without_end(ranks - rank - 1, m)),
    (
        "in a pair the forward pass comes first; here the backward pass does",
        lambda rank, ranks, m: alternating(ranks - rank - 1, m, backward_first=True),
    ),
    (
        "the k-th pair's backward pass is of micro-batch k, the oldest one; here it is of the newest",
        lambda rank, ranks, m: _newest_first(ranks - rank - 1, m),
    ),
    (FROM_1, _renumbered(one_f_one_b, lambda kind, i, m: i + 1)),
    (RANKS, lambda rank, ranks, m: one_f_one_b(rank, ranks, ranks)),
    (LAST, lambda rank, ranks, m: one_f_one_b(rank, ranks, m - 1)),
    (
        "the warm-up is as long as in interleaved 1F1B, 2 (ranks − rank − 1); here it is half of that",
        lambda rank, ranks, m: alternating(2 * (ranks - rank - 1), m),
    ),
]


def _below_0(warm_up: int, m: int) -> Order:
    """Return 1F1B for m ≥ warm_up; else its last backward passes start below 0."""
    order = alternating(warm_up, m, cut=False)
    return order[:warm_up] + passes("B", range(min(0, m - warm_up), 0)) + order[warm_up:]


def _without_end(warm_up: int, m: int) -> Order:
    order = alternating(warm_up, m)
    return order[: len(order) - min(warm_up, m)]


def _newest_first(warm_up: int, m: int) -> Order:
    """Return 1F1B in which each backward pass takes the newest stash."""
    order: Order = []
    stashes: list[int] = []
    for kind, i in alternating(warm_up, m):
        if kind == "F":
            stashes.append(i)
        order.append((kind, i if kind == "F" else stashes.pop()))
    return order
