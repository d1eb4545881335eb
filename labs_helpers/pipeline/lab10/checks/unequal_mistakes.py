"""Schedule unequal stages with one mistake each, as answers to exercise 9 of lab 10 do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from labs_helpers.pipeline.schedule import FORWARD, Action
from labs_helpers.pipeline.schedules import gpipe_order, one_f_one_b_order, zero_bubble_order

Times = Sequence[tuple[float, float, float]]  # per rank: of F, I and W
Orders = list[list[tuple[str, int]]]


def by_priority(
    times: Times,
    micro_batches: int,
    stashes: Sequence[int],
    *,
    first: str,
    limit: Callable[[int, Sequence[int]], float] = lambda rank, stashes: stashes[rank],
    clock: Callable[[Times], Times] = lambda times: times,
) -> Orders:
    """Return orders in which each rank starts, of the actions that are ready, the one that comes first in `first`.

    limit: (rank, stashes) → the most stashes that the rank holds. clock: the times that decide what is ready.
    """
    ranks, times = len(times), clock(times)
    orders: Orders = [[] for _ in times]
    free, ended = [0.0] * ranks, dict[tuple[str, int, int], float]()

    def start(rank: int, kind: str) -> float | None:
        i = sum(one == kind for one, _ in orders[rank])
        held = i - sum(one == "W" for one, _ in orders[rank])
        needed = {
            "F": [("F", rank - 1, i)] * (rank > 0),
            "I": [("F", rank, i), *[("I", rank + 1, i)] * (rank + 1 < ranks)],
            "W": [("I", rank, i)],
        }[kind]
        if i == micro_batches or (kind == "F" and held >= limit(rank, stashes)) or not ended.keys() >= set(needed):
            return None
        return max([free[rank], *(ended[one] for one in needed)])

    while len(ended) < 3 * ranks * micro_batches:
        found = [(start(rank, kind), place, rank, kind) for rank in range(ranks) for place, kind in enumerate(first)]
        begin, _, rank, kind = min(one for one in found if one[0] is not None)
        i = sum(one == kind for one, _ in orders[rank])
        orders[rank].append((kind, i))
        free[rank] = ended[kind, rank, i] = begin + times[rank]["FIW".index(kind)]
    return orders


def _published(order: Callable[[int, int, int], list[Action]]) -> Callable[..., Orders]:
    """Return a published order as a function of an answer's arguments, each B as I and W."""

    def orders(times, micro_batches, stashes):
        actions = [order(rank, len(times), micro_batches) for rank in range(len(times))]
        return [[pair for kind, _, i in mine for pair in _split(kind, i)] for mine in actions]

    return orders


def _split(kind: str, i: int) -> list[tuple[str, int]]:
    return [("I", i), ("W", i)] if kind == "B" else [(kind, i)]


def _weights_last(times, micro_batches, stashes) -> Orders:
    orders = _published(one_f_one_b_order)(times, micro_batches, stashes)
    return [
        [action for action in order if action[0] != "W"] + [("W", i) for i in range(micro_batches)] for order in orders
    ]


def _not_split(times, micro_batches, stashes) -> Orders:
    """Return 1F1B's forward passes, with W before I in each backward pass."""
    orders = _published(one_f_one_b_order)(times, micro_batches, stashes)
    return [[({"I": "W", "W": "I"}.get(kind, FORWARD), i) for kind, i in order] for order in orders]


def _without_weights(times, micro_batches, stashes) -> Orders:
    orders = by_priority(times, micro_batches, stashes, first="IFW")
    return [[action for action in order if action[0] != "W"] for order in orders]


def _last_first(times, micro_batches, stashes) -> Orders:
    return by_priority(times, micro_batches, stashes, first="IFW")[::-1]


WEIGHT_FIRST = "a ready W starts before a ready F or I, and another rank waits for their results; none waits for W's"
MISTAKES = [
    ("each W directly follows its I, as in 1F1B: no W fills a wait", _published(one_f_one_b_order)),
    ("this is ZB-H1, which depends neither on the times nor on the stashes", _published(zero_bubble_order)),
    ("this is GPipe's order: no backward pass begins before the last forward pass", _published(gpipe_order)),
    ("all W come last, and a stash lives until its W", _weights_last),
    ("W comes before the I of its micro-batch, whose gradients it uses", _not_split),
    ("the weights' gradients W are missing", _without_weights),
    ("the list begins with the last rank; element r belongs to rank r", _last_first),
    *(
        (sentence, partial(by_priority, first=first))
        for sentence, first in (
            ("a ready F starts before a ready I, and the rank before this one waits for that I", "FIW"),
            (WEIGHT_FIRST, "IWF"),
            (WEIGHT_FIRST, "WIF"),
            (WEIGHT_FIRST, "WFI"),
        )
    ),
    *(
        (sentence, partial(by_priority, first="IFW", limit=limit))
        for sentence, limit in (
            ("`stashes` is not used", lambda rank, stashes: float("inf")),
            ("stashes[0] is used for every rank", lambda rank, stashes: stashes[0]),
            ("a rank holds one stash too many", lambda rank, stashes: stashes[rank] + 1),
        )
    ),
    ("all times count as equal", partial(by_priority, first="IFW", clock=lambda times: [(1.0, 1.0, 1.0)] * len(times))),
]  # fmt: skip
