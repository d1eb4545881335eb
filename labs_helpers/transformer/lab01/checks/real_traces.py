"""Provide real traces for the checks: one recorded on this machine, and some of results/, if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import torch
from torch.profiler import record_function

from labs_helpers.course.verdict import one_thread
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.results import results_dir
from labs_helpers.measure.trace import Event, load, record
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.train import next_token_loss

SMALLEST = 3  # the number of recorded traces, small enough that even a slow answer does not take minutes


def real_traces() -> Iterator[tuple[str, list[Event]]]:
    """Yield (case, events) for each trace, without nested ranges, such as those that PyTorch draws around an
    optimizer."""
    yield "a step of a tiny model, recorded here", recorded_here()
    files = sorted(results_dir().glob("traces/*.json.gz"), key=lambda path: (path.stat().st_size, path.name))
    for path in files[:SMALLEST]:
        yield f"{path.name}, recorded", _outermost(load(path).events)


@cache
def recorded_here() -> list[Event]:
    """Record a step of two micro-batches: "forward" occurs twice, and the backward passes belong to no part."""
    torch.manual_seed(0)
    device = this_machine().device
    model = Transformer(replace(SIZES["tiny"], layers=1)).to(device)
    tokens = torch.randint(256, (2, 32), device=device)
    weights = list(model.parameters())

    def step() -> None:
        for micro_batch in tokens.split(1):
            with record_function("forward"):
                loss = next_token_loss(model(micro_batch), micro_batch)
            loss.backward()
        with record_function("update"), torch.no_grad():
            for weight in weights:
                weight -= 1e-3 * weight.grad
                weight.grad = None

    with one_thread():
        return _outermost(record(step).events)


def _outermost(events: list[Event]) -> list[Event]:
    """Return `events`, ordered by start, without CPU ranges that are inside another range of their thread."""
    kept, reached = [], {}
    for event in events:
        if event["cat"] == "user_annotation":
            if event["ts"] < reached.get(event["tid"], float("-inf")):
                continue
            reached[event["tid"]] = event["ts"] + event["dur"]
        kept.append(event)
    return kept
