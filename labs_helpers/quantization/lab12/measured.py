"""What lab 12 measures on this machine, and the recorded roofs and products that its predictions meet."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import torch

from labs_helpers.course.exercise import whose
from labs_helpers.first_kernels.recorded_roofs import recorded_roofs as recorded_roofs_on
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import label
from labs_helpers.measure.roofs import Roofs
from labs_helpers.measure.study import Study
from labs_helpers.measure.timing import measure_rounds

PRODUCTS = (
    Study("quantization-few-rows", "python -m labs_helpers.quantization.few_rows_study"),
    Study("quantization-many-rows", "python -m labs_helpers.quantization.many_rows_study"),
)
FORMATS = {"int8": "int8", "int4": "int4, groups of 128"}  # in the records → in the lab's figure
OURS = ("few_rows", "fused", "buffer")  # the course's products with x in bfloat16
DECODING = Study("quantization-decoding", "python -m labs_helpers.quantization.decoding_study")
LOOP = "few_rows, CUDA graph"


def recorded_roofs() -> Roofs:
    """Return the copy bandwidth and the half-precision matmul rate that lab 00 recorded on an H200."""
    return recorded_roofs_on()[0]


def recorded_speed_ups(N: int, K: int) -> tuple[dict[str, dict[int, float]], str]:
    """Return ({format: {M: times as fast}}, what to say about them) for products with an (N, K) weight on an H200.

    The course's fastest product in a format is compared with the fastest one in bfloat16. Without a record, there are
    no formats.
    """
    import pandas

    frames = []
    for study in PRODUCTS:
        with suppress(FileNotFoundError):
            frames.append(study.load())
    found = pandas.concat(frames) if frames else pandas.DataFrame(columns=["K", "N", "us"])
    found = found[(found["K"] == K) & (found["N"] == N)].dropna(subset=["us"])
    if found.empty:
        return {}, f"Not recorded on an H200 yet. On a GPU: {PRODUCTS[0].command}"
    plain = found[found["format"] == "bf16"].groupby("M")["us"].min()
    ours = found[found["name"].isin(OURS) & (found["format"] != "bf16")].groupby(["format", "M"])["us"].min()
    gains = {name: (plain / ours[key]).dropna().to_dict() for key, name in FORMATS.items() if key in ours}
    return gains, f"Lines: predicted. Hollow markers: measured, {label(found['on.machine'].iloc[0])}"


def recorded_loops(batch: int = 1) -> dict[str, tuple[float, float]]:
    """Return {weights: (ms per token, bytes of all weights)} of the course's decode loop, as recorded on an H200."""
    rows = DECODING.load()
    rows = rows[(rows["name"] == LOOP) & (rows["batch"] == batch)].dropna(subset=["token_ms"])
    return {row.weights: (float(row.token_ms), float(row.weight_bytes)) for row in rows.itertuples()}


def print_loops(bandwidth: float) -> None:
    """Print the recorded times per token, beside those that the saved bytes predict at `bandwidth` bytes/s."""
    loops = recorded_loops()
    plain_ms, plain_bytes = loops["bf16"]
    print("The 1B model, one sequence with 1,000 tokens, NVIDIA H200, recorded:")
    for weights, (ms, stored) in loops.items():
        predicted = plain_ms - (plain_bytes - stored) / bandwidth * 1e3
        against = (
            "" if weights == "bf16" else f" {plain_ms / ms:.2f}×, predicted from bytes {plain_ms / predicted:.2f}×"
        )
        print(f"  {weights:<16} {stored / 1e9:.2f} GB of weights  {ms:.3f} ms per token {against}")


def time_here(quantize_int8, int8_linear=None) -> float:
    """Print the time of one row's product with the weight as it is, and with its int8 copy.

    Return how many times as fast it is if PyTorch dequantizes the int8 weight first. A kernel, if given, is timed on a
    GPU only: the interpreter's time says nothing about a kernel.
    """
    here = this_machine()
    on_gpu = here.device == "cuda"
    N, K = (8192, 8192) if on_gpu else (2048, 2048)
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(*shape, generator=generator).to(here.device, here.dtype) for shape in ((1, K), (N, K)))
    q, scale, _ = quantize_int8(w.cpu())
    q, scale = q.to(here.device), scale.to(here.device)
    ways = {
        f"{str(here.dtype)[6:]} weight, PyTorch": (w.nbytes, lambda: x @ w.T),
        "int8 weight, dequantized first, PyTorch": (q.nbytes, lambda: x @ (q * scale[:, None]).to(x.dtype).T),
    }
    if on_gpu and int8_linear is not None:
        ways[f"int8 weight, in the kernel ({whose(int8_linear)})"] = q.nbytes, partial(int8_linear, x, q, scale)
    print(f"{here.label}: one row, a weight of {N} × {K}")
    timings = measure_rounds({name: way for name, (_, way) in ways.items()}, rounds=5, repeat_ms=60)
    for name, timing in timings.items():
        spread = f"[{timing.p20_ms:.3f}–{timing.p80_ms:.3f}]"
        print(f"  {name:<42} {ways[name][0] / 1e6:6.1f} MB  {timing.median_ms:8.3f} ms {spread}")
    plain, dequantized = (timing.median_ms for timing in list(timings.values())[:2])
    return plain / dequantized
