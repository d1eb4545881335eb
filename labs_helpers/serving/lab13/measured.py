"""What lab 13 measures on this machine with the byte model, and the recorded roofs that its predictions meet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from labs_helpers.first_kernels.recorded_roofs import recorded_roofs as recorded_roofs
from labs_helpers.quantization.byte_model import load_byte_model
from labs_helpers.serving.build import build, warm_up
from labs_helpers.serving.counting import workload
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.lab13.stepwise import tiny_model
from labs_helpers.serving.load import Arrival, arrivals, over_engine, summary
from labs_helpers.serving.load_study import IN_FLIGHT, STATIC, STUDY
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.scheduler import Plan
from labs_helpers.serving.speculative import SpeculativeEngine
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.text import validation_sample

if TYPE_CHECKING:
    import pandas

GREEDY = 0.0


def prefill_and_decode(positions: int = 512, new: int = 24) -> tuple[float, float]:
    """Return the ms of one pass over a prompt of so many positions, and of one decoding step behind it: medians."""
    engine = build(slots=1, sharing=False)
    warm_up(engine)
    prompt = validation_sample(1, positions)[0][0].tolist()
    passes, steps = [], []
    for _ in range(3):
        times = _step_times(engine, prompt, new)
        passes.append(times[0])
        steps += times[2:]
    return 1e3 * median(passes), 1e3 * median(steps)


def _step_times(engine: Engine, prompt: Sequence[int], new: int) -> list[float]:
    """Return the seconds of each pass: the prompt's, then the decoding ones."""
    engine.ahead = False  # each step waits for its own tokens
    engine.add(prompt, SamplingParameters(max_tokens=new, temperature=GREEDY))
    times = []
    while engine.has_work():
        began = time.perf_counter()
        engine.step()
        times.append(time.perf_counter() - began)
    return times


def longest_gap(budget: int, prompt: int = 900) -> tuple[float, float]:
    """Return (ms, ms): how long a decoding request waits at most for its next token while a long prompt arrives, and
    how long the prompt's first token takes, if a pass has so many tokens."""
    engine = build(slots=4, budget=budget, sharing=False)
    warm_up(engine)
    engine.ahead = False
    tokens = validation_sample(2, prompt)[0].tolist()
    decoding = engine.add(tokens[0][:32], SamplingParameters(max_tokens=48, temperature=GREEDY))
    for _ in range(8):
        engine.step()
    began = last = time.perf_counter()
    long, first, gaps = engine.add(tokens[1], SamplingParameters(max_tokens=2, temperature=GREEDY)), 0.0, []
    while engine.has_work():
        outputs, now = engine.step(), time.perf_counter()
        if any(output.request == decoding for output in outputs):
            gaps.append(now - last)
            last = now
        if not first and any(output.request == long for output in outputs):
            first = now - began
    return 1e3 * max(gaps), 1e3 * first


def load_rows(pass_ms: float, position_ms: float, rates: Sequence[float] = (0.25, 1.0, 2.0)) -> pandas.DataFrame:
    """Return latencies against the arrival rate: the H200's records, or, if there are none, those of an engine with a
    tiny model and a clock that counts its passes.

    pass_ms: of a pass, and position_ms: more for each position of a prompt in it. rates: of the counted run, as shares
    of the rate at which in-flight batching ends all requests that wait together.
    """
    import pandas

    recorded = STUDY.recorded()
    if STUDY.machine in recorded:
        return recorded[STUDY.machine]
    requests, slots, rows = 40, 8, []
    work = workload(requests, (16, 128), (4, 48))
    about: dict[str, Any] = {"through": "engine", "size": "byte model's pass times", "weights": "counted passes"}
    about |= {"slots": slots, "requests": requests}
    whole = _counted(arrivals(work, 0.0), False, slots, pass_ms, position_ms)
    for share in rates:
        rate = float(f"{share * requests / whole['seconds']:.2g}")
        for policy in (IN_FLIGHT, STATIC):
            found = _counted(arrivals(work, rate), policy == STATIC, slots, pass_ms, position_ms)
            rows.append(about | {"policy": policy, "rate": rate} | found)
    return pandas.DataFrame(rows)


def _counted(work: Sequence[Arrival], static: bool, slots: int, pass_ms: float, position_ms: float) -> dict[str, Any]:
    """Return the summary of a run whose clock advances with the passes alone."""
    model = tiny_model(context=256)
    engine = Engine(model, blocks=slots * 16, slots=slots, budget=128, static=static, ahead=False, sharing=False)
    clock, schedule = 0.0, engine.scheduler.schedule

    def timed() -> Plan:
        nonlocal clock
        plan = schedule()
        clock += 1e-3 * (bool(plan) * pass_ms + position_ms * (plan.tokens - len(plan.decodes)))
        return plan

    def wait(seconds: float) -> None:
        nonlocal clock
        clock += max(seconds, 1e-6)

    engine.scheduler.schedule = timed  # type: ignore[method-assign]
    return summary(over_engine(engine, work, lambda: clock, wait))


def shortened(kept: Sequence[int]) -> tuple[Transformer, Transformer]:
    """Return the byte model, and a draft model of it: these of its layers, with the same weights."""
    target = load_byte_model(dtype=torch.float32).requires_grad_(False)
    with torch.device("meta"):
        draft = Transformer(replace(target.config, layers=len(kept))).eval()
    draft.embedding, draft.norm, draft.output = target.embedding, target.norm, target.output
    draft.blocks = torch.nn.ModuleList(target.blocks[i] for i in kept)
    return target, draft


@torch.no_grad()
def overlap(target: Transformer, draft: Transformer, windows: int = 8) -> float:
    """Return the probability to accept a proposal, Σ min(p, q), on average over positions of the validation text."""
    tokens = validation_sample(windows, 128)[0]
    p, q = (model(tokens).softmax(-1) for model in (target, draft))
    return float(torch.minimum(p, q).sum(-1).mean())


def speculate(target: Transformer, draft: Transformer, ks: Sequence[int], new: int = 32) -> dict[int, tuple]:
    """Return k → (tokens per request and step, ms per token) of four requests on the CPU, at temperature 1.

    k = 0 is the engine without a draft.
    """
    prompts, found = validation_sample(4, 64)[0].tolist(), {}
    for k in ks:
        options: dict[str, Any] = {"blocks": 64, "slots": len(prompts), "sharing": False, "ahead": False}
        engine = SpeculativeEngine(target, draft, k, **options) if k else Engine(target, **options)
        for tokens in (2, new):  # the first round warms up
            for number, prompt in enumerate(prompts):
                engine.add(prompt, SamplingParameters(max_tokens=tokens, temperature=1.0, seed=number))
            engine.step()  # the prompts' pass, with the first tokens
            began, steps = time.perf_counter(), 0
            while engine.has_work():
                steps += len(engine.step())
            seconds = time.perf_counter() - began
        made = len(prompts) * (new - 1)
        found[k] = made / steps, 1e3 * seconds / made
    return found
