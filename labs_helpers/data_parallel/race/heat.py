"""Time candidates in turns, after checking that their losses agree."""

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
SAME = {torch.bfloat16: 0.01, torch.float32: 1e-4}  # relative difference of the losses after WARM_UP steps
WARM_UP = 4  # steps; memory is measured in the last one


@dataclass
class Contestant:
    """A candidate in a race. step: the one built on this rank, or None after an error. record: the results so far."""

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
    """Time the candidates; return one record per candidate, the same on every rank. Every rank calls this.

    A turn consists of `steps` training steps without a pause, as in training: a step may begin while the previous one
    still communicates. A time is that of one step on the slowest rank. The record of a candidate that fails, or whose
    loss differs from the first one's, has an error and no times. profiled: trace one more step of each candidate, and
    add rank 0's `profile.summary` to its record.
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
    """Build the candidate, and run its first steps, which compile code and fill buffers.

    Its record has the ranks' mean loss after WARM_UP steps. On GPUs it also has the memory of the fullest rank, with
    the model and everything else that the candidate allocates: `held_bytes` between steps, `peak_bytes` during a step.
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
    except Exception as failure:  # if only one rank fails, the others wait until their time limit
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
    """Run `steps` consecutive steps; return the seconds per step."""

    def run() -> None:
        assert step is not None
        for _ in range(steps):
            step()

    return clock(run, device, ranks)[1] / steps


def release_all() -> None:
    """Free the memory that a heat leaves behind, on all ranks."""
    release()
    torch._dynamo.config.recompile_limit = 64  # several models compiled from the same code coexist
    dist.barrier()
