"""Race candidates in turns: each once per round, so that a drift of the machine hits all of them alike.

On ranks every rank calls the same functions, in the same order. What counts is the slowest rank.
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
    """The ranks of a race: those of a process group of torch.distributed, by default all."""

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
    """Return what each clock has measured, a sample per round. between: called before each turn, unmeasured."""
    samples: dict[Name, list[Sample]] = {name: [] for name in clocks}
    for _, name in turns(clocks, rounds):
        if between:
            between()
        samples[name].append(clocks[name]())
    return samples


def clock(function: Callable[[], Value], device: torch.device, ranks: TorchRanks | None = None) -> tuple[Value, float]:
    """Return (what the function returns, seconds), with nothing queued before and nothing left to do after.

    ranks: those that begin together.
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
    """Return the seconds of a step and of each of its phases, a name's all together; as `clock` takes them.

    On a GPU the phases' times are between events in its queue, so that nothing has to wait.
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
    """Wait until a GPU has done what is queued; a CPU has nothing queued."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize()


def timings(samples: Sequence[float] | Sequence[Seconds]) -> Timings:
    """Summarise the samples of one candidate on this rank: seconds, of a step or of its phases too."""
    each = [sample if isinstance(sample, dict) else {"step": sample} for sample in samples]
    return {part: Timing.of([1e3 * taken[part] for taken in each]) for part in each[0]}


def slowest(by_rank: Iterable[Timings]) -> Timings:
    """Return the timings of the rank whose median step is the longest."""
    return max(by_rank, key=lambda of_rank: of_rank["step"].median_ms)


def record_of(found: Timings, name: str = "step") -> dict[str, Any]:
    """Return a record's times in ms: of the step median, spread and runs, of its phases the medians.

    name: what the record calls the step.
    """
    return found["step"].record(name) | {f"{part}_ms": t.median_ms for part, t in found.items() if part != "step"}


def race(
    ranks: TorchRanks,
    clocks: Mapping[Name, Callable[[], Any]],
    rounds: int,
    between: Callable[[], object] | None = None,
) -> dict[Name, dict[str, Any]]:
    """Race candidates on ranks; return the slowest rank's times of each as its record has them, on every rank.

    clocks: name → a function that takes one sample, such as `partial(clock_phases, step.phases, device, ranks)`.
    between: see `in_turns`.
    """
    mine = {name: timings(samples) for name, samples in in_turns(clocks, rounds, between).items()}
    by_rank = ranks.gather(mine)
    return {name: record_of(slowest(of_rank[name] for of_rank in by_rank)) for name in clocks}


def disagreements(values: Mapping[Name, float], bound: float) -> dict[Name, str]:
    """Return name → 'VALUE instead of VALUE, the first one's' where the two differ by more than a bound."""
    expected = next(iter(values.values()), 0.0)
    return {
        name: f"{value:.6g} instead of {expected:.6g}, the first one's"
        for name, value in values.items()
        if not abs(value - expected) < bound * abs(expected)
    }


@contextmanager
def collected_between() -> Iterator[Callable[[], object]]:
    """Let Python collect cycles only where the function that this yields is called.

    By itself it would look through the objects of all candidates in the time of one.
    """
    gc.collect()
    gc.freeze()  # what is there by now stays, and need not be looked at again
    gc.disable()
    try:
        yield gc.collect
    finally:
        gc.enable()
        gc.unfreeze()
