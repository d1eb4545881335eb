"""The medians and spreads that common mistakes in exercise 1 produce."""

from __future__ import annotations

from functools import partial

import numpy as np

from labs_helpers.course.verdict import Candidates
from labs_helpers.transformer.lab01.checks.benchmark_cases import RIGHT, Case, median, spread

STOPPED = "the clock stops while the GPU is still working: call synchronize() before the second reading"
STARTED = "the time includes work that was queued earlier: call synchronize() before the first reading"
WAITS = "your round waits between its phases, and after each wait the GPU is idle until the next launch"
FEWER = "fewer than `runs` rounds count"
EARLIER = "the rounds of earlier phases count too: use a separate list for each phase"
ROUNDED = "it is rounded: return the exact number"
MISTAKES = {  # phase → cause → possible scripts of a round
    "forward": {
        STOPPED: "wait [ forward ]",
        STARTED: "[ forward wait ] backward | [ forward wait ] backward update | [ forward wait ] backward wait update",
        "it includes backward": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "a whole step was timed": RIGHT["step"],
    },
    "backward": {
        STOPPED: "forward wait [ backward ]",
        STARTED: "forward [ backward wait ]",
        "it includes forward": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "it includes update": "forward wait [ backward update wait ]",
        "a whole step was timed": RIGHT["step"],
    },
    "step": {
        STOPPED: "wait [ forward backward update ]",
        WAITS: "wait [ forward wait backward wait update wait ] | wait [ forward wait backward update wait ] | "
        "wait [ forward backward wait update wait ]",
        "it runs forward twice": "wait [ forward forward backward update wait ]",
        "forward is not timed": "forward wait [ backward update wait ] | forward [ backward update wait ]",
        "it leaves out update": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "update comes before backward": "wait [ forward update backward wait ]",
        "it leaves out backward, and update does nothing without gradients": "wait [ forward update wait ]",
    },
}


def same(found: float, answers) -> np.ndarray:
    """Return which of `answers` equal `found`, up to the rounding errors of float32."""
    return np.isclose(found, answers, rtol=2e-5, atol=0)


def median_causes(case: Case, phase: str, found: np.ndarray, busy: bool) -> Candidates:
    samples = case.samples(phase)
    yield "this is the mean: one slow round moves it, but not the median", samples.mean()
    yield "this is the fastest round, not the median", samples.min()
    yield "this is the slowest round, not the median", samples.max()
    yield "it is the sum of all rounds", samples.sum()
    if case.runs % 2 == 0:
        ordered = np.sort(case.possible(phase)[:, case.warmup :])
        between = "the median of an even number of rounds lies between two of them, as numpy.quantile computes it"
        yield between, ordered[:, case.runs // 2 - 1 : case.runs // 2 + 1]
    yield ROUNDED, [round(median(samples), digits) for digits in (0, 1, 2, 3)]
    for begin in (case.warmup, 0) if phase != "forward" else ():
        own = [case.rounds(one)[begin:] for one in list(RIGHT)[: list(RIGHT).index(phase) + 1]]
        yield EARLIER, median(np.concatenate(own)[case.warmup - begin :])
    yield "it is in seconds, not in ms", median(samples) / 1e3
    yield "clock() returns seconds: multiply by 1,000, do not divide", median(samples) / 1e6
    yield "it is in µs, not in ms", median(samples) * 1e3
    yield "it is the spread, which belongs in second place", spread(samples)
    for cause, scripts in MISTAKES[phase].items():
        yield cause, [median(case.samples(phase, script)) for script in scripts.split("|")]
    for cause, choices in chosen_rounds(case, phase, busy):
        medians, spreads = joined(median, choices), joined(spread, choices)
        yield cause, medians[same(found[1], spreads)]
        yield f"{cause}; and this is the mean", joined(partial(np.mean, axis=-1), choices)
    ends = [np.cumsum(case.possible(phase)[:, k:], axis=-1)[:, -case.runs :] for k in (0, case.warmup)]
    yield "start the clock in each round, not once", joined(median, ends)
    alone = {part: median(case.samples(part)) for part in ("forward", "backward")}
    both = median(case.samples("backward", "wait [ forward backward wait ]"))
    if phase == "forward":
        yield "it is backward's", alone["backward"]
        at_once = "wait [ " + case.runs * "forward " + "wait ]"
        yield "all rounds were timed together: without waits they overlap", case.samples(phase, at_once) / case.runs
    elif phase == "backward":
        yield "it is forward's", alone["forward"]
        yield (
            "it is a difference: the time of both passes minus that of forward; time backward by itself",
            both - alone["forward"],
        )
    else:
        update = median(case.samples(phase, "forward backward wait [ update wait ]"))
        apart = "it is the sum of phases timed separately; in a step, one phase is launched while another runs"
        yield apart, [sum(alone.values()) + update, both + update]
        yield "it is the sum of forward and backward, without update", sum(alone.values())


def spread_causes(case: Case, phase: str, found: np.ndarray, busy: bool) -> Candidates:
    samples = case.samples(phase)
    p20, p50, p80 = np.quantile(samples, (0.2, 0.5, 0.8))
    others = [np.quantile(samples, 1 - low) - np.quantile(samples, low) for low in (0.05, 0.1, 0.25)]
    low, high = np.percentile(samples, (0.2, 0.8))
    yield "it is not divided by the median", (p80 - p20) * np.array([1e-3, 1, 1e3])
    yield "it is a share, not a percentage", 100 * (p80 - p20) / p50
    yield ROUNDED, [round((p80 - p20) / p50, digits) for digits in (1, 2, 3)]
    yield "it is the 80th percentile minus the 20th, not the other way round", (p20 - p80) / p50
    yield "it is slowest minus fastest, which a single outlier changes", np.ptp(samples) / np.array([1, p50])
    widths = [width / by for width in others for by in (1, p50)]
    yield "it is the difference between other percentiles than the 20th and the 80th", widths
    yield "numpy.quantile takes 0.2 and 0.8, numpy.percentile 20 and 80", (high - low) / p50
    yield "it is the standard deviation", [samples.std(ddof=k) / by for k in (0, 1) for by in (1, p50, samples.mean())]
    if case.runs % 2 == 0:
        ordered = np.sort(case.possible(phase)[:, case.warmup :])
        indices = [[int(n * share) for share in (0.2, 0.8)] for n in (case.runs, case.runs - 1)]
        one = "a percentile may lie between two rounds: use numpy.quantile, not an index"
        for middle in (median(ordered), ordered[:, case.runs // 2]):
            yield one, [(ordered[:, high] - ordered[:, low]) / middle for low, high in indices]
    yield "it is divided by the mean, not the median", (p80 - p20) / samples.mean()
    for cause, choices in chosen_rounds(case, phase, busy):
        medians, spreads = joined(median, choices), joined(spread, choices)
        yield cause, (spreads * medians / p50)[same(p50, medians) | (cause != FEWER)]


def chosen_rounds(case: Case, phase: str, busy: bool):
    """Return (cause, matrices of rounds); the rows of a matrix are the rounds that may count under that cause."""
    every, warmup, runs = case.possible(phase), case.warmup, case.runs
    if busy:  # the first round may have waited for the warm-up's
        yield STARTED, [every[:, warmup - 1 :][:, :runs]]
    else:
        warm = [every[:, k:stop] for k in range(warmup) for stop in (k + runs, None)]
        yield "warm-up rounds count, in which functions are still compiled: each phase needs its own warm-up", warm
    parts = (slice(warmup, warmup + 9), slice(warmup, -1), slice(2 * warmup, None), slice(warmup, runs))
    yield FEWER, [every[:, part] for part in parts]


def joined(summary, choices: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([summary(rounds) for rounds in choices])
