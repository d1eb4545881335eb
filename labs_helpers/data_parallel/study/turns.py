"""Candidates' steps in turns, on all ranks at once: times of whole steps and of their phases, of the slowest rank."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from time import perf_counter
from typing import Any, Protocol

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.measure.timing import Timing

__all__ = ["ALONE", "WARM_UP", "Step", "race", "slowest", "take", "timed"]

WARM_UP = 2  # steps, before the one in which losses are compared
SAME = {torch.bfloat16: 0.01, torch.float32: 1e-4}  # relative, of losses


class Step(Protocol):
    """A training step in phases. loss: of its last forward pass, detached."""

    loss: torch.Tensor

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """(name, what to call), in order; a name may come again."""
        ...


def take(step: Step) -> None:
    for _, phase in step.phases():
        phase()


def race(task: Task, steps: Mapping[str, Step], alike: Collection[str] | None = None) -> dict[str, Record]:
    """name → step_ms, step_p20_ms, step_p80_ms, runs, a median for each phase, and the ranks' mean loss; every rank of
    the task's group calls it, and gets the same.

    alike: those whose losses have to agree before anything is timed, RuntimeError otherwise. By default all but ALONE,
    whose ranks have models of their own after the first update.
    """
    losses: dict[str, float] = {}
    for name, step in steps.items():
        for _ in range(WARM_UP + 1):
            take(step)
        losses[name] = sum(gathered(step.loss.float().item(), task.group)) / task.ranks
    if alike is None:
        alike = [name for name in steps if name != ALONE]
    expect_same({name: losses[name] for name in alike}, "loss", SAME[task.dtype])
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in steps}
    for _ in range(task.options.rounds):
        for name, step in steps.items():
            samples[name].append(timed(task, step))
    return {name: {"loss": losses[name]} | slowest(taken, task.group) for name, taken in samples.items()}


def expect_same(values: Mapping[str, float], what: str, bound: float) -> None:
    """RuntimeError unless all are the first one, within a relative bound."""
    first, expected = next(iter(values.items()), ("", 0.0))
    for name, value in values.items():
        if not abs(value - expected) <= bound * abs(expected):
            raise RuntimeError(f"{what} is {expected:.6g} with {first}, but {value:.6g} with {name}")


def timed(task: Task, step: Step) -> dict[str, float]:
    """Seconds of the step and of each of its phases. All ranks begin together, with nothing queued."""
    on_gpu = task.device.type == "cuda"
    dist.barrier(task.process_group)
    _wait(task.device)
    marks: list[tuple[str, Any]] = [("", _now(on_gpu))]
    begin = perf_counter()
    for name, phase in step.phases():
        phase()
        marks.append((name, _now(on_gpu)))
    _wait(task.device)
    taken = {"step": perf_counter() - begin}
    for (_, before), (name, after) in zip(marks, marks[1:], strict=False):
        passed = 1e-3 * before.elapsed_time(after) if on_gpu else after - before
        taken[name] = taken.get(name, 0.0) + passed
    return taken


def slowest(samples: list[dict[str, float]], group: Any = None) -> Record:
    """Medians in ms of the rank whose median step is the longest, and the spread of its steps."""
    mine = {name: Timing.of([1e3 * taken[name] for taken in samples]) for name in samples[0]}
    of_rank = max(gathered(mine, group), key=lambda timings: timings["step"].median_ms)
    step = of_rank["step"]
    spread = {"step_p20_ms": step.p20_ms, "step_p80_ms": step.p80_ms, "runs": step.runs}
    return {f"{name}_ms": timing.median_ms for name, timing in of_rank.items()} | spread


def _now(on_gpu: bool) -> Any:
    """On a GPU a mark in its queue, so that nothing has to wait."""
    if not on_gpu:
        return perf_counter()
    event: Any = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
