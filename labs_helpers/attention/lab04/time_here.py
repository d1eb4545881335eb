"""Time plain attention, PyTorch's attention and a student's kernel on this machine in a few seconds."""

from __future__ import annotations

from functools import partial

import torch

from labs_helpers.attention.baselines import plain_attention
from labs_helpers.course.exercise import whose
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.measure.timing import measure_rounds


def time_here(tile_attention) -> None:
    """Print the time and the extra bytes at the peak of full attention at two lengths, with 8 heads of 64.

    Without a GPU, only PyTorch is timed: the interpreter's time says nothing about a kernel.
    """
    here = this_machine()
    on_gpu = here.device == "cuda"
    ways = {
        "plain, three kernels": partial(plain_attention, scale=1),
        "PyTorch's scaled_dot_product_attention": partial(torch.nn.functional.scaled_dot_product_attention, scale=1.0),
    }
    if on_gpu:
        ways[f"{whose(tile_attention)}, 64×64 tiles"] = lambda q, k, v: tile_attention(q, k, v, 1.0)[0]
    print(f"{here.label}, {'float16' if on_gpu else 'float32, PyTorch only'}")
    for L in (2048, 8192) if on_gpu else (256, 1024):
        q, k, v = (torch.randn(1, 8, L, 64, dtype=here.dtype, device=here.device) / 8 for _ in range(3))
        calls = {name: partial(way, q, k, v) for name, way in ways.items()}
        extra = {name: peak_memory(way, q, k, v)[1] - q.nbytes for name, way in ways.items()}
        for name, timing in measure_rounds(calls, rounds=2, repeat_ms=100 if on_gpu else 40).items():
            print(f"  L = {L:>5}  {name:<40} {timing.median_ms:>8.3f} ms  {extra[name] / 1e6:>9.3f} MB extra")


def rates_here(ways: dict, L: int = 8192, head_dim: int = 64) -> None:
    """Print the TFLOP/s of causal attention on this machine's GPU, for 16 heads and one sequence.

    ways: name → function of (q, k, v, scale). flash_attention is added. Without a GPU, print that there is none.
    """
    from labs_helpers.attention.flash import flash_attention
    from labs_helpers.attention.study import flops

    here = this_machine()
    if here.device != "cuda":
        print("no GPU here: the interpreter's time says nothing about a kernel")
        return
    q, k, v = (torch.randn(1, 16, L, head_dim, dtype=here.dtype, device=here.device) for _ in range(3))
    calls = {name: partial(way, q, k, v, head_dim**-0.5) for name, way in ways.items()}
    calls["flash_attention"] = partial(flash_attention, q, k, v, causal=True)
    for name, timing in measure_rounds(calls, rounds=3).items():
        print(f"  {name:<24} {flops('forward', 1, 16, L, head_dim, True) / timing.median_ms / 1e9:6.0f} TFLOP/s")
