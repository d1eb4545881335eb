"""Time and size the passes of each stage outside any pipeline, for the simulator: F, B, I, W and a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn

from labs_helpers.measure.race import TorchRanks, clock
from labs_helpers.pipeline.graphs import CudaGraphs
from labs_helpers.pipeline.race.candidates import Work
from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT, Schedule
from labs_helpers.pipeline.simulate import Times
from labs_helpers.pipeline.split_backward import add_weight_gradients, leave_weights_for_later
from labs_helpers.transformer.train import next_token_loss

REPEATS = 7


@dataclass(frozen=True)
class Passes:
    """One stage's passes: seconds, and bytes.

    stash: kept after F. split: kept after I, with the gradients that W uses. peak: by kind of pass, its largest extra
    memory. held: parameters and gradients.
    """

    seconds: dict[str, float]
    stash: int
    split: int
    peak: dict[str, int]
    held: int


def measure_stage(work: Work, cut: str, stages: int, number: int, graphs: bool = False) -> Passes:
    """Measure one stage on this rank's device, with gradients that exist already, as in all micro-batches but the
    first. graphs: time replayed CUDA graphs."""
    device, holder = work.device, nn.ModuleList([work.stage(cut, stages, number)])
    later = leave_weights_for_later(holder)
    tokens, targets = (part[: work.batch] for part in work.data())
    activation = torch.randn(work.shape, dtype=work.dtype, device=device)
    dy = torch.randn_like(activation)
    state: dict[str, Any] = {}

    def forward() -> None:
        x = tokens if number == 0 else activation.detach().requires_grad_()
        y = holder[0](x)
        state["y"] = next_token_loss(y, targets) / work.micro_batches if number == stages - 1 else y

    def input() -> None:
        torch.autograd.backward(state.pop("y"), None if number == stages - 1 else dy)

    def weight() -> None:
        add_weight_gradients(later.take())

    def backward() -> None:
        input()
        weight()

    def sized(function: Callable[[], None]) -> tuple[int, int]:
        """Return the bytes that a pass leaves allocated, and the most beyond that during the pass."""
        if device.type != "cuda":
            function()
            return 0, 0
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        function()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before

    for _ in range(3):
        forward()
        backward()
    held = sum(2 * p.nbytes for p in holder.parameters())
    peak: dict[str, int] = {}
    stash, peak[FORWARD] = sized(forward)
    _, peak[BACKWARD] = sized(backward)
    forward()
    left, peak[INPUT] = sized(input)
    _, peak[WEIGHT] = sized(weight)
    if graphs:
        capture = CudaGraphs().capture
        forward, input, weight = capture(forward), capture(input), capture(weight)
    times: dict[str, list[float]] = {}
    both = ((FORWARD, forward), (BACKWARD, backward), (FORWARD, forward), (INPUT, input), (WEIGHT, weight))
    for _ in range(REPEATS):
        for kind, function in both:
            times.setdefault(kind, []).append(clock(function, device)[1])
    return Passes({kind: median(taken) for kind, taken in times.items()}, stash, stash + left, peak, held)


def message_seconds(work: Work) -> float:
    """Return the time of one activation from rank 0 to rank 1, half a round trip. Every rank calls this."""
    group = work.group
    group.open_channels([(0, 1), (1, 0)])
    x = torch.zeros(work.shape, dtype=work.dtype, device=work.device)

    def round_trip() -> None:
        if group.rank == 0:
            group.send(x, 1)
            group.receive(x, 1)
        elif group.rank == 1:
            group.receive(x, 0)
            group.send(x, 0)

    round_trip()
    ranks = TorchRanks(group.group)
    found = median(clock(round_trip, work.device, ranks)[1] for _ in range(REPEATS)) / 2
    return max(ranks.gather(found))


def times_of(passes: list[Passes], transfer: float) -> Times:
    """Return the simulator's times from the passes of all stages, in order."""
    forward, backward, input, weight = (
        [one.seconds[kind] for one in passes] for kind in (FORWARD, BACKWARD, INPUT, WEIGHT)
    )
    return Times(forward, input, weight, backward, transfer)


def predicted_peaks(schedule: Schedule, passes: list[Passes]) -> list[int]:
    """Return, by rank, the most bytes that a step holds: parameters, gradients, stashes, and the pass under way."""
    peaks = []
    for rank, order in enumerate(schedule.computations().orders):
        held = peak = sum(passes[stage].held for stage in schedule.held_by(rank))
        for kind, stage, _ in order:
            one = passes[stage]
            peak = max(peak, held + one.peak[kind])
            change = {FORWARD: one.stash, BACKWARD: -one.stash, INPUT: one.split - one.stash, WEIGHT: -one.split}
            held += change[kind]
        peaks.append(peak)
    return peaks


def gather_passes(work: Work, cut: str, stages: int, graphs: bool = False) -> list[Passes]:
    """Return the passes of all stages, each measured on the rank that holds it. Every rank calls this."""
    held = range(work.group.rank, stages, work.group.size)
    mine = {number: measure_stage(work, cut, stages, number, graphs) for number in held}
    found = {number: one for of_rank in TorchRanks(work.group.group).gather(mine) for number, one in of_rank.items()}
    return [found[number] for number in range(stages)]


def own_work(schedule: Schedule, times: Times) -> float:
    """Return the seconds that the busiest rank computes."""
    return max(sum(times.of(action) for action in order) for order in schedule.computations().orders)
