"""Measure a training step: the time of its phases, its memory, and its kernels."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from labs_helpers.measure.device_memory import reset_peak
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.measure.race import clock, wait
from labs_helpers.measure.timing import Timing
from labs_helpers.transformer.training_step import BEFORE_CAPTURE, Training

LEAST = 5  # timed steps; fewer give no useful 20th and 80th percentiles
# The words of Triton, the CUDA driver, cuBLAS and a processor's allocator.
OUT_OF_MEMORY = ("out of memory", "status_alloc_failed", "can't allocate memory")
PHASES = ("forward", "backward", "step")


def measure_step(training: Training, rounds: int = 10, seconds: float = 2.0) -> dict[str, Any]:
    """Return the measured part of a record: times in ms, bytes, launches, loss. The first steps, which compile, are not
    timed.

    rounds: timed steps; only LEAST of them if they would take longer than `seconds`. Phases are timed in the same
    number of separate steps, with a wait after each phase, and added up over the micro-batches; for a CUDA graph they
    are None. state_bytes: allocated before the step: parameters, moments and batch, and on a GPU the libraries' memory.
    peak_bytes: the most during the step, including these; None for code compiled for a CPU, where nothing counts them.
    loss: after the fifth timed step, BEFORE_CAPTURE + 1 + LEAST steps in all; None if it is not finite.
    """
    for _ in range(1 if training.setup.graph else BEFORE_CAPTURE + 1):
        training.step()
    step, loss = _time_steps(training, rounds, seconds)
    forward, backward = (None, None) if training.setup.graph else _time_phases(training, rounds, seconds)
    record: dict[str, Any] = {}
    for name, timing in zip(PHASES, (forward, backward, step), strict=True):
        record |= timing.record(name) if timing else dict.fromkeys(step.record(name))
    record["runs"] = step.runs
    record |= _memory(training) | _kernels(training, step.median_ms)
    return record | {"loss": loss if math.isfinite(loss) else None}


def measure_memory(training: Training) -> dict[str, int | None]:
    """Return state_bytes and peak_bytes of a step, as in `measure_step`, from two steps; the first creates AdamW's
    moments."""
    training.step()
    return _memory(training)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return True if an error, or one that caused it, is about missing memory."""
    while error is not None:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
            return True
        if isinstance(error, RuntimeError) and any(words in str(error).lower() for words in OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _time_steps(training: Training, rounds: int, seconds: float) -> tuple[Timing, float]:
    samples: list[float] = []
    loss = math.nan
    while _go_on(samples, rounds, seconds):
        value, taken = clock(training.step, training.device)
        samples.append(1e3 * taken)
        if len(samples) == LEAST:
            loss = value.item()
    return Timing.of(samples), loss


def _time_phases(training: Training, rounds: int, seconds: float) -> tuple[Timing, Timing]:
    forwards: list[float] = []
    backwards: list[float] = []
    while _go_on([a + b for a, b in zip(forwards, backwards, strict=True)], rounds, seconds):
        forward = backward = 0.0
        for micro_batch in range(training.setup.accumulate):
            loss, taken = clock(partial(training.forward, micro_batch), training.device)
            forward += 1e3 * taken
            backward += 1e3 * clock(partial(training.backward, loss), training.device)[1]
        training.update()
        forwards.append(forward)
        backwards.append(backward)
    return Timing.of(forwards), Timing.of(backwards)


def _go_on(samples: list[float], rounds: int, seconds: float) -> bool:
    return len(samples) < LEAST or (len(samples) < rounds and sum(samples) < 1e3 * seconds)


def _memory(training: Training) -> dict[str, int | None]:
    moments = [t for state in training.optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)]
    held = [*training.model.parameters(), *moments, *(tensor for pair in training.batches for tensor in pair)]
    peak: int | None
    if training.device.type == "cuda":
        reset_peak(training.device)
        state = torch.cuda.memory_allocated()
        training.step()
        wait(training.device)
        peak = training.captured_bytes or torch.cuda.max_memory_allocated()  # a replay allocates nothing
    else:
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in held}
        state = sum(storage.nbytes() for storage in storages.values())
        counted = not training.setup.compiled
        peak = state + peak_memory(lambda *_: training.step(), *held)[1] if counted else None
    return {"peak_bytes": peak, "state_bytes": state}


def _kernels(training: Training, step_ms: float) -> dict[str, float | int | None]:
    """Return the launches of a step and of its forward passes, and how long the device works in a step; None without
    kernels.

    A trace costs the CPU time, but not its kernels, so a step that waits for launches runs at half its speed under the
    profiler. On a GPU, `busy` therefore divides the kernels' time, gpu_ms, by the time of an untraced step. On a CPU
    the operators cost more than tracing, and `busy` is the share in the trace.
    """
    from labs_helpers.measure import trace

    def forwards() -> None:
        for micro_batch in range(training.setup.accumulate):
            training.forward(micro_batch)

    events = trace.record(training.step).events
    launches, busy = trace.launches(events) or None, trace.busy(events)
    gpu_ms: float | None = None
    if training.device.type == "cuda":
        first, last = min(event["ts"] for event in events), max(event["ts"] + event["dur"] for event in events)
        gpu_ms = busy * (last - first) / 1e3
        busy = min(1.0, gpu_ms / step_ms)
    forward = None if training.setup.graph else trace.launches(trace.record(forwards).events) or None
    counted = {"launches": launches, "forward_launches": forward, "busy": busy, "gpu_ms": gpu_ms}
    return counted if launches else dict.fromkeys(counted)
