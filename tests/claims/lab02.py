"""Compute the numbers in lab 02's text."""

from __future__ import annotations

from functools import cache

import pandas
import torch

from labs_helpers.gemm import charts, study
from labs_helpers.gemm.lab02 import order_study
from labs_helpers.gemm.lab02.tile_cache import in_groups, tile_misses
from labs_helpers.gemm.tuning import recorded
from labs_helpers.measure.datasheet import DATASHEET, MIB
from tests.claims.table import Claim, Given, Table

H200 = DATASHEET["H200"]
FLOAT16 = torch.float16.itemsize
FLOPS_PER_CYCLE = 4 * 512 * 2  # an SM has four tensor cores, each with 512 multiply-adds in float16


@cache
def more_than_the_best(n: int) -> dict[int, float]:
    """Return GROUP_M → the percentage by which its median exceeds the least."""
    rows = study.load("nvidia-h200").query("GROUP_M == GROUP_M and M == @n")
    ms = rows.groupby("GROUP_M")["median_ms"].last()
    return (100 * (ms / ms.min() - 1)).to_dict()


@cache
def orders(n: int, kind: str) -> pandas.DataFrame:
    """Return the last records, by name, of the 64×64 tiles at n whose bytes were counted."""
    rows = order_study.load("nvidia-h200").query("M == @n and N == @n and K == @n")
    latest = rows.drop_duplicates(["kind", "name"], keep="last").set_index("name")
    counted = latest[latest["kind"] == "counters"].index
    return latest[latest["kind"] == kind].loc[counted]


def slowest_order() -> float:
    """Return the percentage by which the slowest of these orders exceeds the fastest at n = 2048."""
    ms = orders(2048, "time")["median_ms"]
    return 100 * (ms.max() / ms.min() - 1)


def alone_of_the_roof() -> float:
    """Return the rate of cuBLAS's product in the ladder at n = 2048, in percent of the datasheet's roof."""
    ms = charts.squares(study.load("nvidia-h200")).query("M == 2048").set_index("name")["median_ms"]["A·B alone"]
    return 100 * 2 * 2048**3 / ms * 1e3 / H200.fp16_flops


def in_the_race() -> list[float]:
    """Return the MHz, the roof at that clock in TFLOP/s, and the percentage that cuBLAS reaches at n = 4096."""
    row = recorded.long_runs().query("kernel == 'A·B alone' and how == 'rounds'").iloc[-1]
    roof = H200.multiprocessors * FLOPS_PER_CYCLE * row["sm_mhz"] * 1e6
    return [row["sm_mhz"], roof / 1e12, 100 * 2 * 4096**3 / row["median_ms"] * 1e3 / roof]


TABLE = Table(
    claims=(
        Claim("matrices has 65,536 bytes", lambda: 128 * 128 * torch.float32.itemsize),
        Claim("Six matrices of 2048² in float16 are 48 MiB", lambda: 6 * 2048**2 * FLOAT16 / MIB),
        Claim("L2 holds 60 MiB", lambda: H200.l2_bytes / MIB),
        Claim("misses 272 times", lambda: tile_misses(in_groups(16, 16, 1), capacity=8, wave=16)),
        Claim("Groups of 4 take 2% more", lambda: (4, more_than_the_best(16384)[4])),
        Claim("take 17 and 14% more", lambda: [more_than_the_best(16384)[group] for group in (1, 2)]),
        Claim("all of A, 128 MiB", lambda: 8192**2 * FLOAT16 / MIB),
        Claim("takes 8% more time than the fastest", slowest_order),
        Claim("elements, 34 GB)", lambda: 2 * 8192**2 * 8192 / 64 * FLOAT16 / 1e9),
        Claim("stop at 61% of the", alone_of_the_roof),
        Claim(
            "132 SMs × 4,096 FLOPs per cycle × 1.83 GHz",
            lambda: (
                H200.multiprocessors,
                FLOPS_PER_CYCLE,
                H200.fp16_flops / H200.multiprocessors / FLOPS_PER_CYCLE / 1e9,
            ),
        ),
        Claim("At 1,485 MHz the roof is 803 TFLOP/s, and cuBLAS reaches 79%", in_the_race),
    ),
    given=(
        Given("1 kB is 1,000 bytes", "a definition"),
        Given("takes 25 ms after a rest", "what the recorded measurement does"),
        Given("may draw 700 W", "the limit of power in NVIDIA's datasheet of the H200"),
    ),
)
