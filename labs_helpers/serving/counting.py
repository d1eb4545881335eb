"""A workload of many requests, and the passes that the scheduler makes for it, counted without a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.request import FinishReason, Request, SamplingParameters
from labs_helpers.serving.scheduler import Scheduler

Lengths = tuple[int, int]  # of a prompt and of its output, in tokens


def workload(
    requests: int, prompts: tuple[int, int] = (100, 1000), outputs: tuple[int, int] = (16, 1024), seed: int = 0
) -> list[Lengths]:
    """Return the lengths of requests: prompts uniform and outputs log-uniform between their limits, both included.
    ValueError for limits below 1, or in the wrong order."""
    for low, high in (prompts, outputs):
        if not 1 <= low <= high:
            raise ValueError(f"no length lies between {low} and {high}; the lower limit comes first, and is at least 1")
    generator = np.random.default_rng(seed)
    of_prompts = generator.integers(prompts[0], prompts[1] + 1, requests)
    of_outputs = np.exp(generator.uniform(np.log(outputs[0]), np.log(outputs[1] + 1), requests)).astype(int)
    return list(zip(of_prompts.tolist(), of_outputs.tolist(), strict=True))


@dataclass(frozen=True)
class Counts:
    """passes: of all kinds; decoding: those that decode. rows: that the decoding passes compute, padding included.
    positions: of the cache, that they attend to. waste: the share of the positions in requests' blocks that holds
    nothing, on average over the passes."""

    passes: int
    decoding: int
    rows: int
    positions: int
    waste: float
    preemptions: int


def count(work: list[Lengths], blocks: Blocks, slots: int, budget: int, static: bool = False) -> Counts:
    """Run the scheduler on a workload whose requests all wait from the start, and count."""
    scheduler = Scheduler(blocks, slots, budget, static)
    for number, (prompt, output) in enumerate(work):
        scheduler.add(Request(number, prompt, SamplingParameters(max_tokens=output), [0] * prompt))
    passes = decoding = rows = positions = preemptions = held = filled = 0
    while plan := scheduler.schedule():
        passes, decoding, rows = passes + 1, decoding + bool(plan.decodes), rows + plan.width
        positions += sum(request.computed for request in plan.decodes)
        preemptions += len(plan.preempted)
        held += sum(len(request.table.blocks) for request in scheduler.running.values()) * blocks.size
        filled += sum(request.computed for request in scheduler.running.values())
        for request in [*plan.decodes, *(chunk.request for chunk in plan.chunks if chunk.samples)]:
            request.tokens.append(0)
            if request.remaining == 0:
                request.finished = FinishReason.LENGTH
    return Counts(passes, decoding, rows, positions, 1 - filled / held, preemptions)
