"""Check exercise 1 of lab 01: a training step timed on a practice GPU, where every time is exact, and once on a CPU."""

import time
from collections import defaultdict
from functools import partial
from math import inf

import numpy as np
import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, likely, one_thread
from labs_helpers.course.verdict.causes import Passed, still_possible
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.benchmark_cases import CASES, RIGHT, Case, median, spread
from labs_helpers.transformer.lab01.checks.benchmark_causes import median_causes, same, spread_causes
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.train import adamw, next_token_loss

ONCE = "a loss can go backward only once: before each backward, run a forward that is not timed"


@exercise("01/1", "benchmark", points=15, minutes=20, reference=exercises.benchmark)
def benchmark(student):
    passed: dict[tuple, list[Passed]] = defaultdict(list)
    for case in CASES:
        gpu = case.gpu()
        answer = _answer(f"{case}", student, gpu, gpu.synchronize, gpu.clock, case.warmup, case.runs)
        if not gpu.queued_us:
            raise Wrong(
                f"{case}",
                "clock() was never called",
                cause="your function read another clock than the one it was given",
            )
        for phase, found in answer.items():
            _expect_pair(case, phase, found, any(gpu.queued_us), passed)
        yield f"{case}: " + ", ".join(f"{phase} {found[0]:.3f} ms" for phase, found in answer.items())
    yield _on_this_cpu(student)


def _answer(case: str, student, *arguments) -> dict:
    """Return phase → array of median and spread, in RIGHT's order."""
    try:
        answer = student(*arguments)
    except Exception as error:
        wrong = describe_error(student, error, case)
        twice = isinstance(error, RuntimeError) and "a second time" in str(error)
        raise Wrong(case, wrong.found, cause=ONCE if twice else wrong.causes) from error
    if not isinstance(answer, dict) or not answer.keys() >= RIGHT.keys():
        raise Wrong(case, f"returned {answer!r:.80}; return a dict with the keys {', '.join(map(repr, RIGHT))}")
    try:
        pairs = {phase: np.asarray(answer[phase], dtype=float) for phase in RIGHT}
    except (TypeError, ValueError):
        pairs = {}
    if any(np.shape(pairs.get(phase)) != (2,) for phase in RIGHT):
        raise Wrong(case, f"returned {answer!r:.200}; give two numbers for each phase, (median, spread)")
    return pairs


def _expect_pair(case: Case, phase: str, found: np.ndarray, busy: bool, passed: dict) -> None:
    """Raise Wrong unless both match the practice GPU's clock; else add the case to those passed. busy: whether the
    GPU was busy at some reading of the clock."""
    parts = (("median", median, median_causes), ("spread", spread, spread_causes))
    rows = case.possible(phase)[:, case.warmup :]
    fitting_rows = rows[same(found[0], median(rows))]
    if same(found[1], spread(fitting_rows)).any():
        for value, (name, _, causes) in zip(found, parts, strict=True):
            passed[phase, name].append((causes(case, phase, found, busy), partial(_is_among, value)))
        return
    middle = np.sort(rows)[:, (case.runs - 1) // 2 : case.runs // 2 + 1]
    like = [*fitting_rows, *rows[same(found[0], middle).any(axis=1)]]
    samples = case.samples(phase) if not like or same(found[0], median(case.samples(phase))) else like[0]
    for value, (name, of, causes) in zip(found, parts, strict=True):
        if not same(value, of(samples)):
            told = f"{phase}'s {name} is {value:.6g}, expected {of(samples):.6g}"
            advice = "follow one round on a PracticeGPU's timeline(): which work is queued when the clock is read?"
            candidates = still_possible(causes(case, phase, found, busy), passed[phase, name])
            fitting = likely(candidates, partial(_is_among, value))
            raise Wrong(f"{case}", told, cause=fitting, advice=advice)


def _is_among(value: float, answers) -> bool:
    return bool(same(value, answers).any())


class TinyModel:
    """A training step of the smallest model, with the interface that exercise 1 expects."""

    def __init__(self):
        with torch.random.fork_rng(devices=[]):
            self.model = Transformer(SIZES["tiny"])
        self.optimizer, self.tokens = adamw(self.model, 1e-3), torch.arange(17)[None]

    def forward(self):
        return next_token_loss(self.model(self.tokens[:, :-1]), self.tokens[:, 1:])

    def backward(self, loss):
        loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def _on_this_cpu(student) -> str:
    case = "SIZES['tiny'] on this CPU, 1 + 3 rounds"
    with one_thread():
        answer = _answer(case, student, TinyModel(), lambda: None, time.perf_counter, 1, 3)
    if not all(0 <= value < inf for found in answer.values() for value in found):
        raise Wrong(case, f"returned {answer}; times and spreads must be finite and not negative")
    return f"{case}: " + ", ".join(f"{phase} {found[0]:.1f} ms" for phase, found in answer.items())
