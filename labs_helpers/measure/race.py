"""Time candidates in turns, once each per round, so that a drift of the machine affects all of them equally.

All ranks call the same functions in the same order, and the slowest rank's times count.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from labs_helpers.measure.timing import Timing, turns

if TYPE_CHECKING:
    import torch

Name = TypeVar("Name")
Sample = TypeVar("Sample")
Value = TypeVar("Value")
Seconds = dict[str, float]  # of a step, under "step", and of its phases
Timings = dict[str, Timing]


class TorchRanks:
    """The ranks of a race: those of a torch.distributed process group, by default all ranks."""

    def __init__(self, group: Any = None) -> None:
        self.group = group

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value, on every rank."""
        import torch.distributed as dist

        values: list[Any] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(values, value, group=self.group)
        return values

    def barrier(self) -> None:
        """Wait for all ranks."""
        import torch.distributed as dist

        dist.barrier(self.group)


def in_turns(
    clocks: Mapping[Name, Callable[[], Sample]], rounds: int, between: Callable[[], object] | None = None
) -> dict[Name, list[Sample]]:
    """Return each clock's samples, one per round. between: called before each turn and not measured."""
    samples: dict[Name, list[Sample]] = {name: [] for name in clocks}
    for _, name in turns(clocks, rounds):
        if between:
            between()
        samples[name].append(clocks[name]())
    return samples


def clock(function: Callable[[], Value], device: torch.device, ranks: TorchRanks | None = None) -> tuple[Value, float]:
    """Return (the function's result, seconds). The clock starts with empty queues and stops when all work is done.

    ranks: those that start together.
    """
    if ranks:
        ranks.barrier()
    wait(device)
    start = perf_counter()
    value = function()
    wait(device)
    return value, perf_counter() - start


def clock_phases(
    phases: Callable[[], Iterable[tuple[str, Callable[[], object]]]],
    device: torch.device,
    ranks: TorchRanks | None = None,
) -> Seconds:
    """Return the seconds of a step and of each of its phases, added up by name; arguments as for `clock`.

    On a GPU, events in its queue time the phases, so that nothing has to wait.
    """
    marks: list[tuple[str, Any]] = []

    def run() -> None:
        marks.append(("", _now(device)))
        for name, phase in phases():
            phase()
            marks.append((name, _now(device)))

    taken = {"step": clock(run, device, ranks)[1]}
    for (_, before), (name, after) in zip(marks, marks[1:], strict=False):
        passed = 1e-3 * before.elapsed_time(after) if device.type == "cuda" else after - before
        taken[name] = taken.get(name, 0.0) + passed
    return taken


def _now(device: torch.device) -> Any:
    if device.type != "cuda":
        return perf_counter()
    import torch

    event: Any = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def wait(device: torch.device) -> None:
    """Wait until a GPU has finished its queued work; a CPU has no queue."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize()


def timings(samples: Sequence[float] | Sequence[Seconds]) -> Timings:
    """Summarize one candidate's samples on this rank: seconds of a step, with or without phases."""
    each = [sample if isinstance(sample, dict) else {"step": sample} for sample in samples]
    return {part: Timing.of([1e3 * taken[part] for taken in each]) for part in each[0]}


def slowest(by_rank: Iterable[Timings]) -> Timings:
    """Return the timings of the rank whose median step is the longest."""
    return max(by_rank, key=lambda of_rank: of_rank["step"].median_ms)


def record_of(found: Timings, name: str = "step") -> dict[str, Any]:
    """Return a record's times in ms: median, spread and runs of the step, and the median of each phase.

    name: the record's name for the step.
    """
    return found["step"].record(name) | {f"{part}_ms": t.median_ms for part, t in found.items() if part != "step"}


def race(
    ranks: TorchRanks,
    clocks: Mapping[Name, Callable[[], Any]],
    rounds: int,
    between: Callable[[], object] | None = None,
) -> dict[Name, dict[str, Any]]:
    """Race candidates on ranks and return each one's times on its slowest rank, in the form of a record, on every rank.

    clocks: name → a function that takes one sample, such as `partial(clock_phases, step.phases, device, ranks)`.
    between: see `in_turns`.
    """
    mine = {name: timings(samples) for name, samples in in_turns(clocks, rounds, between).items()}
    by_rank = ranks.gather(mine)
    return {name: record_of(slowest(of_rank[name] for of_rank in by_rank)) for name in clocks}


def disagreements(values: Mapping[Name, float], bound: float) -> dict[Name, str]:
    """Return name → 'VALUE instead of VALUE, the first one's' for values that differ by more than a bound."""
    expected = next(iter(values.values()), 0.0)
    return {
        name: f"{value:.6g} instead of {expected:.6g}, the first one's"
        for name, value in values.items()
        if not abs(value - expected) < bound * abs(expected)
    }


@contextmanager
def collected_between() -> Iterator[Callable[[], object]]:
    """Let Python collect garbage only when the yielded function is called.

    Otherwise a collection would walk through the objects of all candidates while one of them is timed.
    """
    gc.collect()
    gc.freeze()  # objects that exist by now stay alive, so later collections can skip them
    gc.disable()
    try:
        yield gc.collect
    finally:
        gc.enable()
        gc.unfreeze()
