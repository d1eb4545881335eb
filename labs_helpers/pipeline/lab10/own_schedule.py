"""Turn the lists that the exercises return into a schedule of the library, to simulate, run and draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labs_helpers.pipeline.schedule import Action, Schedule


def as_schedule(
    orders: Sequence[Sequence[tuple]], ranks: int, micro_batches: int, chunks: int = 1, name: str = "your order"
) -> Schedule:
    """Return the lists of all ranks as a schedule: rank r's chunk c is stage c · ranks + r.

    orders: by rank, tuples (kind, micro-batch), or (kind, chunk, micro-batch) if a rank holds several stages.
    """
    named = [
        [Action(kind, sum(chunk) * ranks + rank, micro) for kind, *chunk, micro in order]
        for rank, order in enumerate(orders)
    ]
    return Schedule.of(name, named, micro_batches, chunks)


def schedule_of(name: str, order: Callable, ranks: int, micro_batches: int, *chunks: int) -> Schedule:
    """Return the schedule of an exercise's function, which lists one rank's passes."""
    orders = [order(rank, ranks, micro_batches, *chunks) for rank in range(ranks)]
    return as_schedule(orders, ranks, micro_batches, *chunks, name=name)
