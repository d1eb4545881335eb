"""The time and the bytes moved of each of plain attention's three kernels that read or write L × L scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from labs_helpers.attention.baselines import PLAIN, about, operands
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import measure_rounds


def measure_plain_steps(lengths, head_dim: int = 128, rounds: int = 3, repeat_ms: float = 60, **sizes) -> list[dict]:
    """Return one record per length and step ('Q·Kᵀ', 'softmax', 'P·V') of the full forward pass in float16.

    A record has the time in ms, the bytes read and written and, on a GPU, the name of PyTorch's kernel. sizes: tokens
    and width of `operands`, by default those of the speed records.
    """
    records = []
    for length in lengths:
        q, k, v, _ = (t.detach() for t in operands(length, head_dim, torch.float16, this_machine().device, **sizes))
        s = q * head_dim**-0.5 @ k.mT
        p = s.softmax(-1)
        steps = {
            "Q·Kᵀ": (partial(torch.matmul, q, k.mT), q.nbytes + k.nbytes + s.nbytes),
            "softmax": (partial(torch.softmax, s, -1), s.nbytes + p.nbytes),
            "P·V": (partial(torch.matmul, p, v), p.nbytes + v.nbytes + q.nbytes),
        }
        timings = measure_rounds(
            {step: run for step, (run, _) in steps.items()}, rounds=rounds, repeat_ms=repeat_ms, min_runs=rounds
        )
        records += [
            about("plain step", PLAIN, q, False, step=step, direction="forward")
            | {"bytes": steps[step][1], **timing.record(), "rounds": rounds}
            | ({"kernel": longest_kernel(steps[step][0])} if q.is_cuda else {})
            for step, timing in timings.items()
        ]
    return records


def longest_kernel(run: Callable[[], object]) -> str:
    """Return the name, up to 160 characters, of the kernel that takes the longest while `run` runs on a GPU."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as traced:
        run()
        torch.cuda.synchronize()
    return max(traced.key_averages(), key=lambda event: event.device_time_total).key[:160]
