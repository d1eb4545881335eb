"""Compute the numbers in lab 05's text."""

from __future__ import annotations

import torch

from labs_helpers.attention.baselines import FLEX
from labs_helpers.measure.datasheet import DATASHEET
from tests.claims.lab04 import overlap, records, timed, times_as_long
from tests.claims.table import Claim, Given, Table

H100 = DATASHEET["H100"]
FLOPS_PER_CLOCK = 4 * 512 * 2  # of an SM: four tensor cores, each of which multiplies and adds 512 float16 at a time


def one_kernel_over_two() -> float:
    rows = records()[records()["kind"] == "two or one"].drop_duplicates("name", keep="last").set_index("name")
    one, two = rows.loc["one kernel"], rows.loc["two kernels (reference)"]
    assert not overlap(one, two)
    return one["median_ms"] / two["median_ms"]


def flex() -> list[float]:
    """flex_attention's time over ours, forward and backward, and its backward over its forward."""
    passes = "forward", "backward"
    forward, backward = (timed(FLEX, each)["median_ms"] for each in passes)
    return [*(times_as_long(FLEX, direction=each) for each in passes), backward / forward]


TABLE = Table(
    claims=(
        Claim("than the 232,448 bytes", lambda: H100.shared_bytes_per_block),
        Claim("numbers of 4 bytes to dQ", lambda: torch.float32.itemsize),
        Claim("An H200 reads 4.8 TB/s", lambda: DATASHEET["H200"].bandwidth / 1e12),
        Claim("it takes 2.7 times as long", one_kernel_over_two),
        Claim(
            "forward pass takes 1.7 times as long as ours and its backward pass 1.5 times, and its ratio is 2.5", flex
        ),
        Claim(
            "132 · 1.83 GHz",
            lambda: [H100.multiprocessors, H100.fp16_flops / H100.multiprocessors / FLOPS_PER_CLOCK / 1e9],
        ),
    ),
    given=(Given("that reaches 500 TFLOP/s", "assumed in the question"),),
)
