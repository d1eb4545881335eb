"""The published schedules, as functions of the numbers of ranks p, micro-batches m, and chunks per rank v.

    naive        one micro-batch at a time: a stage works while all others wait
    GPipe        all forward passes, then all backward passes (Huang et al., 2019)
    1F1B         a backward pass as early as possible: the same bubble, min(m, p) stashes instead of m (Narayanan et
                 al., PipeDream, 2019)
    interleaved  1F1B with v smaller stages per rank: a bubble v times as small, more messages (Narayanan et al.,
                 Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021)
    ZB-H1        1F1B whose backward passes are split, with the weights' gradients in the bubble (Qi et al., 2024)

Each order is a function of the rank alone, so no rank needs to ask another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT, Action, Schedule


def naive_order(rank: int, ranks: int, micro_batches: int) -> list[Action]:
    """Return one rank's actions: a forward and a backward pass per micro-batch."""
    return [Action(kind, rank, i) for i in range(micro_batches) for kind in (FORWARD, BACKWARD)]


def gpipe_order(rank: int, ranks: int, micro_batches: int) -> list[Action]:
    """Return one rank's actions: all forward passes, then all backward passes."""
    return [Action(kind, rank, i) for kind in (FORWARD, BACKWARD) for i in range(micro_batches)]


def one_f_one_b_order(rank: int, ranks: int, micro_batches: int) -> list[Action]:
    """Return one rank's actions: as many forward passes as stages follow, then one forward and one backward in turns,
    then the backward passes that are left."""
    warm_up = min(ranks - rank - 1, micro_batches)
    forward = [Action(FORWARD, rank, i) for i in range(micro_batches)]
    backward = [Action(BACKWARD, rank, i) for i in range(micro_batches)]
    pairs = zip(forward[warm_up:], backward, strict=False)
    steady = [action for pair in pairs for action in pair]
    return forward[:warm_up] + steady + backward[micro_batches - warm_up :]


def zero_bubble_order(rank: int, ranks: int, micro_batches: int) -> list[Action]:
    """Return one rank's actions in ZB-H1: 1F1B with I in place of B, and each W delayed by as many backward passes as
    ranks precede this one. The delay moves W into the bubble, and no rank stashes more than rank 0 does in 1F1B."""
    order: list[Action] = []
    done = 0
    for kind, _, i in one_f_one_b_order(rank, ranks, micro_batches):
        order.append(Action(FORWARD if kind == FORWARD else INPUT, rank, i))
        if kind == BACKWARD:
            done += 1
            if done > rank:
                order.append(Action(WEIGHT, rank, done - rank - 1))
    return order + [Action(WEIGHT, rank, i) for i in range(max(0, micro_batches - rank), micro_batches)]


def interleaved_order(rank: int, ranks: int, micro_batches: int, chunks: int) -> list[Action]:
    """Return one rank's actions in interleaved 1F1B. Micro-batches pass in groups of p: p through the first chunk, the
    same p through the second, …; backward passes visit the chunks in reverse."""

    def at(kind: str, number: int) -> Action:
        group, place = divmod(number, ranks * chunks)
        chunk, i = divmod(place, ranks)
        chunk = chunk if kind == FORWARD else chunks - 1 - chunk
        return Action(kind, chunk * ranks + rank, group * ranks + i)

    total = micro_batches * chunks
    warm_up = min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, total)
    order = [at(FORWARD, k) for k in range(warm_up)]
    for k in range(total - warm_up):
        order += [at(FORWARD, warm_up + k), at(BACKWARD, k)]
    return order + [at(BACKWARD, k) for k in range(total - warm_up, total)]


def forward_only_order(rank: int, ranks: int, micro_batches: int, chunks: int = 1) -> list[Action]:
    """Return one rank's actions in an evaluation, in the order of interleaved 1F1B's forward passes."""
    if chunks == 1:
        return [Action(FORWARD, rank, i) for i in range(micro_batches)]
    return [action for action in interleaved_order(rank, ranks, micro_batches, chunks) if action.kind == FORWARD]


def _check(ranks: int, micro_batches: int, chunks: int = 1) -> None:
    for name, value in {"ranks": ranks, "micro_batches": micro_batches, "chunks": chunks}.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}, not an integer of 1 or more")


def _make(name: str, order: Callable[..., list[Action]], ranks: int, micro_batches: int) -> Schedule:
    _check(ranks, micro_batches)
    return Schedule.of(name, [order(rank, ranks, micro_batches) for rank in range(ranks)], micro_batches)


naive = partial(_make, "naive", naive_order)
gpipe = partial(_make, "GPipe", gpipe_order)
one_f_one_b = partial(_make, "1F1B", one_f_one_b_order)
zero_bubble = partial(_make, "ZB-H1", zero_bubble_order)


def interleaved(ranks: int, micro_batches: int, chunks: int = 2) -> Schedule:
    """Return interleaved 1F1B. ValueError unless the ranks divide the micro-batches; the message names sizes that do.

    With 1 chunk it is 1F1B.
    """
    _check(ranks, micro_batches, chunks)
    if chunks == 1:
        return one_f_one_b(ranks, micro_batches)
    if micro_batches % ranks:
        below, above = micro_batches // ranks * ranks, -(-micro_batches // ranks) * ranks
        near = f"{below} or {above}" if below else str(above)
        raise ValueError(f"{micro_batches} micro-batches do not form groups of {ranks} ranks; {near} would")
    orders = [interleaved_order(rank, ranks, micro_batches, chunks) for rank in range(ranks)]
    return Schedule.of(f"interleaved ×{chunks}", orders, micro_batches, chunks)


def forward_only(ranks: int, micro_batches: int, chunks: int = 1) -> Schedule:
    """Return the schedule of an evaluation, without backward passes. Raises the errors of `interleaved`."""
    if chunks > 1:
        interleaved(ranks, micro_batches, chunks)
    _check(ranks, micro_batches, chunks)
    orders = [forward_only_order(rank, ranks, micro_batches, chunks) for rank in range(ranks)]
    return Schedule.of("forward only", orders, micro_batches, chunks)


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "naive": naive,
    "GPipe": gpipe,
    "1F1B": one_f_one_b,
    "interleaved": interleaved,
    "ZB-H1": zero_bubble,
}
