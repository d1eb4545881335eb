"""Compute the numbers in lab 09's text."""

from __future__ import annotations

from functools import cache

import numpy as np

from labs_helpers.data_parallel.charts.race import race_table
from labs_helpers.data_parallel.lab09 import thresholds
from labs_helpers.data_parallel.lab09.exercises import sent_per_step, tokens_to_hide
from labs_helpers.data_parallel.race import profile
from labs_helpers.data_parallel.study.records import load, select
from labs_helpers.data_parallel.study.tables import PARTS
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.planner.accounting import GB, LAYOUTS, bytes_per_parameter, total
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import plan
from labs_helpers.planner.strategies import Training
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.counts import parameters
from tests.claims.table import Claim, Given, Table

COUNT = sum(parameters(SIZES["1b"]).values())
PURE = LAYOUTS["bf16"]
KEPT = "FSDP2(reshard_after_forward=False)"
OVERLAP = "(bucket_mb=100, overlap_gather=True)"


@cache
def race(heat: str = "shards", ranks: int = 4):
    """The recorded steps, blocks compiled, by candidate."""
    table = race_table(load("NVIDIA H200"), heat)
    return table[table["ranks"] == ranks].set_index("candidate")


def fsdp_over_ddp() -> tuple[float, float]:
    """The least and the most over FSDP2's settings, on two GPUs."""
    steps = race(ranks=2)["step ms"]
    found = steps[steps.index.str.startswith("FSDP2")] / steps["DDP(bucket_cap_mb=100, views=True)"]
    return found.min(), found.max()


def traced(candidate: str, column: str) -> float:
    table = profile.table(load("NVIDIA H200"))
    return table[table["candidate"] == candidate][column].iloc[0]


def master_over_bf16(candidate: str) -> float:
    steps = race("master weights", 2)["step ms"]
    return steps[candidate.replace(")", ", master=True)")] / steps[candidate]


def over_ddp(candidate: str) -> float:
    return race().loc[candidate, "step ms"] / race().loc["DDP(bucket_cap_mb=100, views=True)", "step ms"]


def sent(scheme: str) -> float:
    """Bytes over DDP's."""
    rows = sent_per_step(2.0, 2.0, 8)
    return rows[scheme] / rows["DDP"]


def times_the_threshold(ranks: int) -> float:
    achieved, busbw, _, itemsize, tokens, _, _ = next(
        row for row in thresholds.recorded_rates(load("NVIDIA H200")) if row[2] == ranks
    )
    return tokens / tokens_to_hide(achieved, busbw, ranks, itemsize, itemsize)[0]


def below_the_formula() -> float:
    """% by which ZeRO-3's fullest moment stays below states and whole blocks together."""
    row = select(load("NVIDIA H200"), "stage_memory", stage="ZeRO-3", rank=0, layout="bf16", ranks=4).iloc[-1]
    held = np.sum([np.asarray(row[f"{part}_bytes"], float) for part in PARTS], axis=0).max()
    return 100 * (1 - held / sum(row[f"formula_{part}"] for part in (*PARTS, "gathered")))


@cache
def one_billion() -> list:
    """DDP's and ZeRO-1's rows of the plan."""
    found = plan(Training(Model.of(1e9), batch=1, length=2048, checkpoint=True), Cluster.of("H100", 8))
    return found.rows[:2]


def saving(layout: str) -> float:
    return 100 * (1 - bytes_per_parameter("ZeRO-1", 2, layout) / bytes_per_parameter("DDP", 2, layout))


TABLE = Table(
    claims=(
        Claim("the same 8 to 16 bytes", lambda: (PURE.each, LAYOUTS["bf16 with float32 master"].each)),
        Claim("on two GPUs saves 37.5%", lambda: saving("bf16 with float32 master")),
        Claim("that it saves 25%", lambda: saving("autocast over float32")),
        Claim("sends 1.5 times what DDP sends", lambda: sent("ZeRO-1 with all-reduce")),
        Claim("sends 1.5 times as much, so", lambda: sent("ZeRO-3")),
        Claim("and 1.5 times as many", lambda: sent("ZeRO-1 with all-reduce")),
        Claim("sends 1.5 times as many. Each", lambda: sent("ZeRO-3")),
        Claim("from 1.5 times DDP's bytes to 1", lambda: (sent("ZeRO-1 with all-reduce"), sent("ZeRO-1"))),
        Claim("50 GB/s, which is a 400 Gb/s", lambda: (50, 8 * 50)),
        Claim("had 3.8 times", lambda: times_the_threshold(4)),
        Claim("and 5.3 times", lambda: times_the_threshold(2)),
        Claim("comes within 1%", lambda: 1 if below_the_formula() < 1 else below_the_formula()),
        Claim("take 0.98 times", lambda: max(over_ddp("ZeRO-1" + OVERLAP), over_ddp("ZeRO-2" + OVERLAP))),
        Claim(
            "takes 1.04 times DDP's step, against 1.00",
            lambda: (over_ddp("ZeRO-1(reduction=all_reduce)"), over_ddp("ZeRO-1")),
        ),
        Claim("only 0.02 GB", lambda: race().loc["ZeRO-1", "peak GB"] - race().loc["ZeRO-2", "peak GB"]),
        Claim("it holds 1.4 GB", lambda: PURE.gradients * COUNT * 3 / 4 / GB),
        Claim("takes 1.70 to 2.03 times", fsdp_over_ddp),
        Claim("has 8.4 ms", lambda: traced(KEPT, "exposed NCCL ms")),
        Claim("waits for 70 ms", lambda: traced(KEPT, "idle ms")),
        Claim("needs 141 µs", lambda: traced(KEPT, "µs per launch")),
        Claim("takes 1.04 times as long", lambda: master_over_bf16("FSDP2(prefetch=2)")),
        Claim(
            "took 1.11 times",
            lambda: race("master weights").loc["ZeRO-3(master=True)", "step ms"] / race().loc["ZeRO-3", "step ms"],
        ),
        Claim(
            "writes 28 bytes per parameter instead of 14",
            lambda: (LAYOUTS["bf16 with float32 master"].update_bytes, PURE.update_bytes),
        ),
        Claim("at 16 bytes", lambda: LAYOUTS["bf16 with float32 master"].each),
        Claim("both take 16 bytes", lambda: LAYOUTS["autocast over float32"].each),
        Claim("in 17 GB", lambda: total(one_billion()[0].parts) / GB),
        Claim("predicts 8 ms", lambda: 1e3 * one_billion()[0].time.update),
        Claim("and 1 ms", lambda: 1e3 * one_billion()[1].time.update),
        Claim("7 × 2 bytes per parameter, 13 GB", lambda: (7, 2, PURE.update_bytes * COUNT / GB)),
        Claim("some 3 ms", lambda: 1e3 * PURE.update_bytes * COUNT / DATASHEET["H200"].bandwidth),
    ),
    given=(
        Given("bf16 number takes 2 bytes", "the definition of the type"),
        Given("400 TFLOP/s", "assumed in the question"),
        Given("the middle 60%", "which part of the samples a record keeps"),
        Given("8 GPUs of 80 GB", "assumed in the question"),
    ),
)
