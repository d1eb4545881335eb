"""Candidates side by side in turns, once their losses agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.race.candidates import Candidate
from labs_helpers.data_parallel.race.profile import summary
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.setting import Setting
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import gathered
from labs_helpers.measure import trace
from labs_helpers.measure.device_memory import allocated, release, reset_peak
from labs_helpers.measure.race import TorchRanks, clock, collected_between, disagreements
from labs_helpers.measure.race import race as race_on_ranks

Record = dict[str, Any]
SAME = {torch.bfloat16: 0.01, torch.float32: 1e-4}  # relative, of the losses after WARM_UP steps
WARM_UP = 4  # steps, of which the last one's memory is measured


@dataclass
class Contestant:
    """candidate: as it was made on this rank. record: what has been found out so far."""

    candidate: Candidate
    step: TrainingStep | None
    record: Record


def race(
    setting: Setting,
    candidates: Sequence[Candidate],
    rounds: int,
    steps: int,
    say: Callable[[str], None] = lambda text: None,
    at: Callable[[str], None] = lambda text: None,
    profiled: bool = False,
) -> list[Record]:
    """A record per candidate, the same on every rank; all ranks call it. A turn is `steps` training steps without a
    pause, as in training: the next step may begin beside the last one's communication. A time is that of one step of
    the slowest rank. A candidate that fails, or whose loss is not the first one's, has its error and no times.
    profiled: one more step of each is traced, and its record has rank 0's `profile.summary`.
    """
    contestants = []
    for candidate in candidates:
        say(str(candidate))
        at(str(candidate))
        contestants.append(enter(setting, candidate, at))
    running = [one for one in contestants if one.step is not None]
    rounded = torch.bfloat16 if any("master" in one.candidate.options for one in running) else setting.dtype
    losses = {n: one.record["loss"] for n, one in enumerate(running) if one.candidate.library != ALONE}
    for number, said in disagreements(losses, SAME[rounded]).items():
        running[number].record["error"] = f"the loss is {said}"
    running = [one for one in running if "error" not in one.record]
    at("turns")
    ranks = TorchRanks()
    clocks = {number: partial(_turn, one.step, steps, setting.device, ranks) for number, one in enumerate(running)}
    with collected_between() as collect:
        found = race_on_ranks(ranks, clocks, rounds, collect)
    for number, contestant in enumerate(running):
        contestant.record |= found[number]
        if profiled and contestant.step is not None:
            at(f"a trace of {contestant.candidate}")
            contestant.record |= gathered(summary(trace.record(contestant.step).events))[0]
    return [one.record for one in contestants]


def enter(setting: Setting, candidate: Candidate, at: Callable[[str], None] = lambda text: None) -> Contestant:
    """Makes the candidate, and takes its first steps, which compile and fill buffers.

    Its record has the mean loss of the ranks after WARM_UP steps, and, on GPUs, bytes of the fullest rank: `held_bytes`
    between steps, `peak_bytes` within a step, the model's and all else that came with the candidate.
    """
    record: Record = {
        "name": candidate.name,
        "library": candidate.library,
        "candidate": str(candidate),
        "options": {key: value for key, value in candidate.options.items() if key != "name"},
    }
    before = allocated(setting.device)
    step, error = None, ""
    try:
        step = candidate.build(setting)
        for _ in range(WARM_UP - 1):
            step()
        reset_peak(setting.device)
        loss = step()
        record["loss"] = torch.stack(gathered(loss.float().cpu())).mean().item()
    except Exception as failure:  # a rank that fails alone leaves the others waiting, until their time limit
        error = f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0]}"
        at(f"{candidate}, which failed with {error}")
    if errors := [said for said in gathered(error) if said]:
        record["error"] = errors[0]
        return Contestant(candidate, None, record)
    if setting.device.type == "cuda":
        record["peak_bytes"] = max(gathered(torch.cuda.max_memory_allocated() - before))
        record["held_bytes"] = max(gathered(allocated(setting.device) - before))
    return Contestant(candidate, step, record)


def _turn(step: TrainingStep | None, steps: int, device: torch.device, ranks: TorchRanks) -> float:
    """Seconds of one of `steps` steps that follow each other."""

    def run() -> None:
        assert step is not None
        for _ in range(steps):
            step()

    return clock(run, device, ranks)[1] / steps


def release_all() -> None:
    """Frees what a heat has left, on all ranks."""
    release()
    torch._dynamo.config.recompile_limit = 64  # several models, compiled from the same code, stay there side by side
    dist.barrier()
