"""Compute tables from the study's records: costs, bounds, efficiencies, and the errors of formulas."""

from __future__ import annotations

from collections.abc import Sequence

import pandas
import torch

from labs_helpers.collectives.cost_model import BUS_FACTOR, fit
from labs_helpers.communication.buckets import MEGABYTE
from labs_helpers.data_parallel.study.records import ALONE, SETTING, select
from labs_helpers.data_parallel.study.task import MODELS
from labs_helpers.planner.step_time import amdahl, overlap_bound
from labs_helpers.planner.threshold import tokens_to_hide
from labs_helpers.transformer import Transformer

OVERLAPPING = ("overlapped", "bucketed", "DistributedDataParallel")
SHARE, FASTER = 1 / 3, 1.3  # the usual headline: communication takes over a third, and overlapping is 1.3× faster
PARTS = ("parameters", "gradients", "optimizer")


def fits(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Fit α + nβ to the all-reduces of each link and number of ranks.

    Columns: α in µs, β in ns per byte, the bus bandwidth of the largest call in GB/s, and off, the largest relative
    error of the fit.
    """
    lines = []
    for (link, ranks), calls in select(rows, "all_reduce").groupby(["link", "ranks"], sort=False):
        alpha, beta = fit(calls["bytes"].tolist(), (1e-3 * calls["call_ms"]).tolist())
        told = alpha + beta * calls["bytes"]
        last = calls.loc[calls["bytes"].idxmax()]
        rate = BUS_FACTOR["allreduce"](int(ranks)) * last["bytes"] / (1e-3 * last["call_ms"])
        lines.append({
            "link": link, "ranks": int(ranks), "alpha_us": 1e6 * alpha, "beta_ns_per_byte": 1e9 * beta,
            "busbw_GBps": 1e-9 * rate, "off": float((told / (1e-3 * calls["call_ms"]) - 1).abs().max()),
        })  # fmt: skip
    return pandas.DataFrame(lines)


def messages(row: pandas.Series) -> int:
    """Return the number of messages per step, for a record of the kind 'bucket'.

    DistributedDataParallel closes a bucket after it has reached bucket_mb, and ours before it would exceed it.
    Therefore, DistributedDataParallel sends fewer messages at the same bucket_mb.
    """
    if not pandas.isna(row["buckets"]):
        return int(row["buckets"])
    held, closed = 0, 0
    for nbytes in gradient_bytes(row):
        held += nbytes
        if held >= row["bucket_mb"] * MEGABYTE:
            held, closed = 0, closed + 1
    return closed + (held > 0)


def gradient_bytes(row: pandas.Series) -> list[int]:
    """Return the bytes of each gradient of a record's model, in the order of the backward pass."""
    with torch.device("meta"):
        parameters = list(Transformer(MODELS[row["size"]]).parameters())
    return [round(row["gradient_bytes"] / row["parameters"]) * p.numel() for p in reversed(parameters)]


def threshold_table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Compare `tokens_to_hide` with measured steps, one row per setting.

    Columns: the tokens per rank and pass; hide from, which is `tokens_to_hide` at the FLOP/s of the backward pass
    without communication and the bus bandwidth of the largest all-reduce; and hidden, the share of the flat step's
    added time that the fastest overlapping wrapper hides.
    """
    busbw = {(row["link"], row["ranks"]): 1e9 * row["busbw_GBps"] for _, row in fits(rows).iterrows()}
    lines = []
    for keys, steps in select(rows, "wrapper").groupby(["link", "ranks", "batch", "length"], sort=False):
        link, ranks, batch, length = keys
        by_name = steps.set_index("wrapper")
        alone, flat = by_name.loc[ALONE], by_name.loc["flat", "step_ms"]
        achieved = 4 * alone["parameters"] * batch * length / (1e-3 * alone["backward_ms"])
        nbytes = alone["gradient_bytes"] / alone["parameters"]
        best = by_name.loc[by_name.index.isin(OVERLAPPING), "step_ms"].min()
        lines.append({
            "link": link, "ranks": int(ranks), "tokens": int(batch * length), "TFLOP/s": 1e-12 * achieved,
            "busbw GB/s": 1e-9 * busbw[link, ranks],
            "hide from": tokens_to_hide(nbytes, 4, achieved, busbw[link, ranks], int(ranks), all_reduce=True),
            "flat adds ms": flat - alone["step_ms"], "hidden": (flat - best) / (flat - alone["step_ms"]),
        })  # fmt: skip
    return pandas.DataFrame(lines)


def wrapper_table(rows: pandas.DataFrame, link: str | None = None, batch: int | None = None) -> pandas.DataFrame:
    """Return one row per wrapper and setting.

    exposed: the step minus the same step without communication, in ms and as a share of the step. hidden: the share of
    the naive step's added time. Amdahl's bound: an upper bound of × naive, if all communication disappeared. overlap's
    bound: an upper bound of × flat, if one backward pass hid as much of flat's communication as fits behind it.
    """
    found = select(rows, "wrapper", link=link, batch=batch)
    by_name = {name: some.set_index(SETTING) for name, some in found.groupby("wrapper")}
    lines = []
    for _, row in found.iterrows():
        step, alone, naive, setting = row["step_ms"], row["alone_ms"], row["naive_ms"], tuple(row[SETTING])
        spoken = max(0.0, naive - alone)
        line = {name: row[name] for name in ("link", "ranks", "batch", "length", "wrapper")}
        line |= {"step ms": step, "alone ms": alone, "exposed ms": step - alone, "exposed": (step - alone) / step}
        line |= {"hidden": (naive - step) / spoken if spoken else float("nan")}
        line |= {"× naive": naive / step, "Amdahl's bound": amdahl(spoken / naive)}
        if "flat" in by_name and setting in by_name["flat"].index:
            flat, window = by_name["flat"]["step_ms"][setting], by_name[ALONE]["backward_ms"][setting]
            line |= {"× flat": flat / step, "overlap's bound": overlap_bound(alone, max(0.0, flat - alone), window)}
        lines.append(line)
    return pandas.DataFrame(lines)


def regime_table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per link, batch and length.

    Columns: the share of communication in the naive step, the fastest overlapping wrapper, its speedup over naive and
    flat, Amdahl's bound, and whether the usual headline (SHARE and FASTER) holds.
    """
    found, lines = wrapper_table(rows), []
    for keys, steps in found.groupby(["link", "ranks", "batch", "length"], sort=False):
        best = steps[steps["wrapper"].isin(OVERLAPPING)].sort_values("step ms").iloc[0]
        share = 1 - 1 / best["Amdahl's bound"]
        line = dict(zip(("link", "ranks", "batch", "length"), keys, strict=True))
        line |= {"communication": share, "best": best["wrapper"]}
        line |= {
            name: best[name] for name in ("× naive", "Amdahl's bound", "× flat", "overlap's bound") if name in best
        }
        lines.append(line | {"headline": bool(share > SHARE and best["× naive"] >= FASTER)})
    return pandas.DataFrame(lines)


def scaling_table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per mode, link and number of ranks.

    efficiency: t₁ / tₙ (weak) or t₁ / (n tₙ) (strong). alone: the efficiency of the same ranks running together without
    communication. If runs differ in their sequences, the one with the most ranks counts.
    """
    lines = []
    for mode, steps in select(rows, "scaling").groupby("mode", sort=False):
        steps = steps.sort_values("ranks")
        kept = {"weak": "batch", "strong": "sequences"}[str(mode)]
        steps = steps[steps[kept] == steps[kept].iloc[-1]]
        first = steps.iloc[0]
        for _, row in steps.iterrows():
            work = row["sequences"] / first["sequences"] / (row["ranks"] / first["ranks"])
            lines.append({
                "mode": mode, "link": row["link"], "ranks": int(row["ranks"]), "batch": int(row["batch"]),
                "step ms": row["step_ms"], "efficiency": work * first["step_ms"] / row["step_ms"],
                "alone": work * first["alone_ms"] / row["alone_ms"],
            })  # fmt: skip
    return pandas.DataFrame(lines)


def memory_table(
    rows: pandas.DataFrame, parts: Sequence[str] = ("parameters", "gradients", "optimizer")
) -> pandas.DataFrame:
    """Return one row per layout, stage, rank and part: the counted bytes, the formula, and their relative difference.

    Gradients are counted after backward; parameters and optimizer states, between two steps.
    """
    lines = []
    for _, row in select(rows, "stage_memory").iterrows():
        after = row["moments"].index("after backward")
        for part in parts:
            counted = row[f"{part}_bytes"][after if part == "gradients" else -1]
            told = row[f"formula_{part}"]
            lines.append(
                {name: row[name] for name in ("layout", "stage", "rank")}
                | {"part": part, "counted": counted, "formula": told, "off": counted / told - 1}
            )
    return pandas.DataFrame(lines)


def stage_table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per link and way: the step, its exposed part, the bytes sent and held.

    The column × DDP gives the step relative to that of DistributedDataParallel.
    """
    lines = []
    for _, steps in select(rows, "stage_step").groupby(["link", "ranks", "batch", "length"], sort=False):
        theirs = steps.loc[steps["way"] == "DistributedDataParallel", "step_ms"]
        for _, row in steps.iterrows():
            lines.append(
                {name: row[name] for name in ("link", "ranks", "way", "stage", "library")}
                | {"step ms": row["step_ms"], "exposed ms": row["step_ms"] - row["alone_ms"]}
                | {"sent bytes": row.get("sent_bytes"), "state bytes": row["state_bytes"]}
                | {"× DDP": row["step_ms"] / theirs.iloc[0] if len(theirs) else float("nan")}
            )
    return pandas.DataFrame(lines)
