"""Compute the numbers in lab 04's text."""

from __future__ import annotations

from functools import cache

import pandas
import torch

from labs_helpers.attention import charts, study
from labs_helpers.attention.baselines import CUDNN, OURS, PORTABLE
from labs_helpers.attention.lab04.exercises import attention_costs, tile_attention
from labs_helpers.compile.ahead_of_time import compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.first_kernels.lab00.study import STUDY as FIRST_KERNELS
from labs_helpers.measure.datasheet import DATASHEET, MIB
from tests.claims.table import Claim, Given, Table

HALF = 2  # bytes of a float16
LONG = 16_384


@cache
def records() -> pandas.DataFrame:
    return study.load("nvidia-h200")


def timed(name: str, direction: str = "forward", D: int = 128, L: int = LONG, causal: bool = True) -> pandas.Series:
    rows = charts.chosen(records(), "speed", direction=direction, D=D, causal=causal, name=name)
    (row,) = rows[rows["L"] == L].to_dict("records")
    return pandas.Series(row)


def overlap(one: pandas.Series, other: pandas.Series) -> bool:
    """Whether the stretches from the 20th to the 80th percentile meet, so that neither is the faster."""
    return one["p20_ms"] <= other["p80_ms"] and other["p20_ms"] <= one["p80_ms"]


def times_as_long(name: str, **wanted) -> float:
    """A candidate's time over ours."""
    theirs, ours = timed(name, **wanted), timed(OURS, **wanted)
    assert not overlap(theirs, ours)
    return theirs["median_ms"] / ours["median_ms"]


def short_rates() -> list[float]:
    """TFLOP/s at 1k of ours and of cuDNN, with a mask and heads of 64."""
    both = [timed(name, D=64, L=1024) for name in (OURS, CUDNN)]
    assert overlap(*both)
    return [study.flops("forward", *(row[size] for size in "BHLD"), True) / row["median_ms"] / 1e9 for row in both]


def gains_by_masking() -> list[float]:
    """How far down, and how far up, the bars of both cuDNN and ours reach at 16k."""
    pairs = [[timed(name, causal=causal) for causal in (False, True)] for name in (CUDNN, OURS)]
    lows, highs = ([full[a] / half[b] for full, half in pairs] for a, b in (("p20_ms", "p80_ms"), ("p80_ms", "p20_ms")))
    return [max(lows), min(highs)]


def softmax_rate(L: int) -> float:
    return charts.plain_steps(records()).loc[L, "softmax, TB/s"]


def copy_rate() -> float:
    """TB/s."""
    rows = FIRST_KERNELS.load("nvidia-h200")
    copy = rows[rows["name"] == "plain copy"].iloc[-1]
    return copy["bytes"] / copy["median_ms"] / 1e9


def weights_off() -> list[float]:
    """By how many percent exp(200.3 − 200) is off with scores in float16 and in bfloat16."""
    exact, *found = (
        torch.exp(torch.tensor(200.3, dtype=dtype) - torch.tensor(200.0, dtype=dtype)).item()
        for dtype in (torch.float64, torch.float16, torch.bfloat16)
    )
    return [100 * (1 - one / exact) for one in found]


def shared_bytes() -> int:
    tensors = [torch.zeros(1, 1, 64, 64, dtype=torch.float16) for _ in "qkv"]
    with record_launches(run=False) as launches:
        tile_attention(*tensors, 0.125)
    (compiled,) = compile_all([job(launches[-1], "sm_90")])
    return compiled.shared


TABLE = Table(
    claims=(
        Claim("log-sum-exp: 4 bytes per row", lambda: attention_costs(1, 1, 64, 64, HALF, 64)[3] / 64),
        Claim("An H200 has 141 GB", lambda: DATASHEET["H200"].memory_bytes / 1e9),
        Claim("take 8 MiB, which", lambda: 2 * LONG * 128 * HALF / MIB),
        Claim("cache (60 MiB)", lambda: DATASHEET["H200"].l2_bytes / MIB),
        Claim("of a head take 1 GiB", lambda: attention_costs(1, 1, LONG, 128, HALF, 128)[1] / 2**30),
        Claim("off by 5% and by 26%", weights_off),
        Claim(
            "at most 0.05% in float16 and 0.4% in bfloat16",
            lambda: [100 * torch.finfo(dtype).eps / 2 for dtype in (torch.float16, torch.bfloat16)],
        ),
        Claim("1.1 TB/s at 8k, of the 4.1 that a copy", lambda: [softmax_rate(8192), copy_rate()]),
        Claim("moves 2.3 TB/s", lambda: softmax_rate(LONG)),
        Claim("read them: 8,192 bytes", lambda: 64 * 64 * HALF),
        Claim("makes the 57,344 bytes", shared_bytes),
        Claim("from below 1.8 to above 2.2", gains_by_masking),
        Claim("they take 1.4 times as long", lambda: times_as_long(PORTABLE)),
        Claim("reaches 336 TFLOP/s and cuDNN 332", short_rates),
    ),
    given=(Given("up to 740 TFLOP/s", "what the paper on FlashAttention-3 reports"),),
)
