"""Time the candidates' steps and phases in turns on all ranks; the slowest rank counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import torch

from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.measure.race import TorchRanks, clock_phases, disagreements
from labs_helpers.measure.race import race as race_on_ranks

__all__ = ["ALONE", "WARM_UP", "Step", "race", "take"]

WARM_UP = 2  # steps before the one whose losses are compared
SAME = {torch.bfloat16: 0.01, torch.float32: 1e-4}  # relative difference of losses


class Step(Protocol):
    """A training step in phases. loss: the detached loss of its last forward pass."""

    loss: torch.Tensor

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield (name, function to call) of each phase, in order; names may repeat."""
        ...


def take(step: Step) -> None:
    for _, phase in step.phases():
        phase()


def race(task: Task, steps: Mapping[str, Step], alike: Collection[str] | None = None) -> dict[str, Record]:
    """Time the steps in turns. Every rank of the task's group calls this, and gets the same records.

    Returns name → step_ms, step_p20_ms, step_p80_ms, runs, a median for each phase, and the ranks' mean loss. alike:
    the steps whose losses must agree before the timing starts; RuntimeError if they don't. By default, these are all
    but ALONE, whose models differ between ranks after the first update.
    """
    losses: dict[str, float] = {}
    for name, step in steps.items():
        for _ in range(WARM_UP + 1):
            take(step)
        losses[name] = sum(gathered(step.loss.float().item(), task.group)) / task.ranks
    if alike is None:
        alike = [name for name in steps if name != ALONE]
    for name, said in disagreements({name: losses[name] for name in alike}, SAME[task.dtype]).items():
        raise RuntimeError(f"the loss with {name} is {said}")
    ranks = TorchRanks(task.group)
    clocks = {name: partial(clock_phases, step.phases, task.device, ranks) for name, step in steps.items()}
    found = race_on_ranks(ranks, clocks, task.options.rounds)
    return {name: {"loss": losses[name]} | times for name, times in found.items()}
