"""Choose and check a run's pipeline: the schedule, and the number of micro-batches. Imports no PyTorch."""

from __future__ import annotations

from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.schedules import SCHEDULES, interleaved


def make_schedule(name: str, ranks: int, micro_batches: int, chunks: int) -> Schedule:
    """Return a schedule by name. chunks: stages per rank, in the interleaved schedule."""
    return interleaved(ranks, micro_batches, chunks) if name == "interleaved" else SCHEDULES[name](ranks, micro_batches)


def usual_micro_batches(sequences: int, ranks: int, chunks: int) -> int:
    """Return 1 for one rank, and for several the divisor of `sequences` that is nearest to twice their number.

    sequences: of one copy of the model in a step. With chunks, the result is a multiple of the ranks, which need not
    divide the sequences if no multiple does.
    """
    if ranks == 1:
        return 1
    multiple = ranks if chunks > 1 else 1
    possible = [m for m in range(multiple, sequences + 1, multiple) if sequences % m == 0]
    return min(possible, key=lambda m: (abs(m - 2 * ranks), -m), default=2 * ranks)


def check_pipeline(
    name: str, ranks: int, micro_batches: int, chunks: int, layers: int, batch: int, copies: int
) -> None:
    """Raise ValueError unless the sizes fit one another. batch: sequences per step of all `copies` of the model."""
    if chunks > 1 and name != "interleaved":
        raise ValueError(f"chunks is {chunks}, but only the interleaved schedule has more than 1 per rank, not {name}")
    if name == "interleaved" and chunks == 1:
        raise ValueError("the interleaved schedule needs 2 or more chunks per rank, but chunks is 1")
    if (stages := ranks * chunks) > (parts := layers + 2):
        held = "" if chunks == 1 else f" × {chunks} chunks"
        there = f"{layers} layers, the embedding and the output"
        raise ValueError(f"pp {ranks}{held} makes {stages} stages, but {there} make only {parts}")
    parts = copies * micro_batches
    if batch % parts:
        below, above = batch // parts * parts, -(-batch // parts) * parts
        near = f"{below} or {above}" if below else str(above)
        by = f"dp {copies}" if micro_batches == 1 else f"dp {copies} × {micro_batches} micro-batches = {parts}"
        raise ValueError(f"batch is {batch}, which {by} does not divide: {batch % parts} left over; {near} would do")
    make_schedule(name, ranks, micro_batches, chunks)
