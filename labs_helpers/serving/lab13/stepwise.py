"""Runs of lab 13 that are counted in steps, the same on every machine: who generates when, and who holds what."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import torch

from labs_helpers.serving.counting import Lengths, workload
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.model import Transformer

OUTPUTS = (3, 24, 5, 9, 18, 4, 2, 12, 7, 16, 3, 6)  # tokens of each request of the timeline
SLOTS, PROMPT = 4, 6
Used = list[tuple[int, int]]  # per step: positions that are filled, and positions that are held


def tiny_model(context: int = 64) -> Transformer:
    """Return a model of bytes with one small layer and random weights."""
    torch.manual_seed(0)
    return Transformer(TransformerConfig(256, layers=1, width=16, heads=2, hidden=32, context=context)).eval()


def run_engine(static: bool) -> dict[int, tuple[int, int]]:
    """Run the requests of OUTPUTS on the engine with a tiny model. Return request → (its first step, behind its last).

    A prompt is computed in the step in which its first token is generated.
    """
    engine = Engine(tiny_model(), blocks=64, slots=SLOTS, budget=64, static=static, ahead=False)
    for number, output in enumerate(OUTPUTS):
        engine.add([number] * PROMPT, SamplingParameters(max_tokens=output, temperature=0.0))
    spans: dict[int, tuple[int, int]] = {}
    step = 0
    while engine.has_work():
        for output in engine.step():
            spans[output.request] = spans.get(output.request, (step, 0))[0], step + 1
        step += 1
    return spans


def count_steps(next_step: Callable, static: bool) -> int:
    """Return the number of steps in which an answer to exercise 6 generates the same requests' tokens."""
    waiting = [(number, PROMPT + output, output) for number, output in enumerate(OUTPUTS)]
    running: list = []
    steps = 0
    while waiting or any(left for *_, left in running):
        running, waiting = next_step(running, waiting, SLOTS, 10**6, static)
        steps += 1
    return steps


def reserve(work: Sequence[Lengths], positions: int, context: int, slots: int) -> Used:
    """Return the use of a cache in which every request reserves `context` positions while it runs."""
    waiting, running, used = deque(work), [], []
    while waiting or running:
        while waiting and len(running) < min(slots, positions // context):
            running.append([*waiting.popleft(), 0])
        for request in running:
            request[2] += 1
        used.append((sum(prompt + made for prompt, _, made in running), context * len(running)))
        running = [request for request in running if request[2] < request[1]]
    return used


def page(work: Sequence[Lengths], positions: int, size: int, slots: int, block_tables: Callable) -> Used:
    """Return the use of a cache in blocks, which an answer to exercise 4 manages.

    A request that finds no block for its next position makes the youngest one start again later.
    """
    tables, references, extend, _, release = block_tables(positions // size, size)
    waiting, running, used = deque((n, *lengths) for n, lengths in enumerate(work)), [], []
    while waiting or running:
        for request in list(running):
            while request in running and not extend(request[0], request[1] + request[3] + 1):
                youngest = running.pop()
                release(youngest[0])
                waiting.appendleft(youngest[:3])
        while waiting and len(running) < slots and extend(waiting[0][0], waiting[0][1] + 1):
            running.append((*waiting.popleft(), 0))
        running = [(name, prompt, output, made + 1) for name, prompt, output, made in running]
        held = size * sum(count > 0 for count in references)
        used.append((sum(prompt + made for _, prompt, _, made in running), held))
        for name, *_ in [request for request in running if request[3] >= request[2]]:
            release(name)
        running = [request for request in running if request[3] < request[2]]
    return used


def compare_caches(block_tables: Callable, positions: int = 8192, context: int = 1024, size: int = 16, slots: int = 32):
    """Return name → use of a cache of so many positions, for 48 requests that wait together."""
    work = workload(48, (50, 400), (16, 512))
    return {
        f"reserved, {context:,} positions each": reserve(work, positions, context, slots),
        f"in blocks of {size}": page(work, positions, size, slots, block_tables),
    }
