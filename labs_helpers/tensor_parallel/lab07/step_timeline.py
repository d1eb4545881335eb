"""Measure when each rank is inside a collective during one training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from labs_helpers.transformer import TransformerConfig

if TYPE_CHECKING:
    from labs_helpers.tensor_parallel.variants import Step, Task

CONFIG = TransformerConfig(
    256, layers=2, width=256, heads=8, hidden=768
)  # a vocabulary of bytes, small enough for CPUs
BATCH, LENGTH, WARM_UP, STEPS = 8, 128, 2, 6


class Spans(NamedTuple):
    """One rank's step, in ms from its start. phases: the ends of forward, backward and gradient averaging; tp, dp:
    (start, stop) of the rank's calls to each group's collectives."""

    phases: list[float]
    tp: list[tuple[float, float]]
    dp: list[tuple[float, float]]


def time_steps(comm: Any, dp: int, tp: int) -> tuple[Spans, Spans]:
    """Return the fastest of STEPS steps in a dp × tp layout, with gradients sent after and during the backward pass.

    The fastest step is the least disturbed one. Every rank of comm calls this; a barrier starts each step.
    """
    import torch

    from labs_helpers.tensor_parallel.variants import Task

    torch.set_num_threads(1)  # the ranks themselves share the cores
    task = Task(comm, CONFIG, BATCH, LENGTH)
    return _time_step(task, dp, tp, overlap=False), _time_step(task, dp, tp, overlap=True)


def _time_step(task: Task, dp: int, tp: int, overlap: bool) -> Spans:
    from labs_helpers.tensor_parallel.variants import Step, Variant

    step = Step(task, Variant(dp, tp, overlap=overlap), task.comm.Get_size())
    for _ in range(WARM_UP):
        step.run()
    taken = [_spans(task.comm, step) for _ in range(STEPS)]
    step.free()
    by_rank = task.comm.allgather([spans.phases[-1] for spans in taken])
    longest = [max(times) for times in zip(*by_rank, strict=True)]  # the slowest rank of each step
    return taken[longest.index(min(longest))]


def _spans(comm: Any, step: Step) -> Spans:
    step.reset()
    comm.Barrier()
    _, (begun, *ends) = step.run()

    def from_begin(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(1e3 * (start - begun), 1e3 * (stop - begun)) for start, stop in intervals]

    return Spans([1e3 * (end - begun) for end in ends], from_begin(step.tp.intervals), from_begin(step.dp.intervals))
