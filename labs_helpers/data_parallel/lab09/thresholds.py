"""Tokens that hide ZeRO-3's gathers on measured machines, with the results of the recorded races."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.lab09.training import BATCH, CONFIG, LENGTH, loss_of, make_model
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.measure.race import TorchRanks, clock
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.counts import parameters

if TYPE_CHECKING:
    import pandas

GATHERED = 2**24  # bytes
TIMES = 7


def measure(group: Any, device: torch.device) -> tuple[float, float]:
    """Return (FLOP/s, bytes/s) of the slowest rank, measured on lab 09's model and on an all-gather.

    Forward and backward count 6 FLOPs per parameter and token; bytes are those that one rank sends."""
    model, ranks = make_model(device), TorchRanks(group)
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    whole = torch.zeros(GATHERED // 4 // size * size, device=device)
    gather = partial(dist.all_gather_into_tensor, whole, whole.chunk(size)[rank].clone(), group=group)
    compute, send = (
        median(clock(call, device, ranks)[1] for _ in range(TIMES))
        for call in (lambda: loss_of(model, 0, rank).backward(), gather)
    )
    flops = 6 * sum(parameters(CONFIG).values()) * BATCH * LENGTH
    return flops / compute, whole.nbytes * (size - 1) / size / send


def table(tokens_to_hide: Callable, measured: Mapping[str, tuple], recorded: Mapping[str, Any]) -> pandas.DataFrame:
    """Tabulate the tokens that hide a gather, one row per machine, with achieved FLOP/s and bus bandwidth.

    Where a race is recorded, a row also gives its tokens per rank and the exposed time of ZeRO-3. measured: name →
    (FLOP/s, bytes/s, ranks, bytes per parameter). recorded: name → records of the race or of steps in every stage.
    """
    import pandas

    every = {name: (*one, None, None, None) for name, one in measured.items()}
    for name, rows in recorded.items():
        every |= {f"{name}, {found[2]} ranks": found for found in recorded_rates(rows)}
    columns = ("GFLOP/s", "GB/s", "tokens to hide", "tokens had", "exposed ms", "step ms")
    found = []
    for achieved, busbw, ranks, itemsize, tokens, exposed, step in every.values():
        forward, _ = tokens_to_hide(achieved, busbw, ranks, itemsize, itemsize)
        found.append((achieved / 1e9, busbw / 1e9, forward, tokens, exposed, step))
    return pandas.DataFrame(found, index=list(every), columns=columns).map(_four)


def _four(value: float | None) -> str:
    """Format a number with four digits, or a dash if it was not recorded."""
    return "–" if value is None or value != value else f"{float(f'{value:.4g}'):,g}"


def recorded_rates(rows: pandas.DataFrame) -> list[tuple]:
    """Return (FLOP/s, bytes/s, ranks, bytes per parameter, tokens per rank, exposed ms, step ms) by number of ranks."""
    race = rows[rows["kind"] == "race"] if "heat" in rows else rows[:0]
    raced = race[(race["heat"] == "shards") & (race["compiled"] == True)] if len(race) else race  # noqa: E712
    raced = raced.dropna(axis="columns", how="all")
    if raced.empty:
        steps = rows[rows["kind"] == "stage_step"]
        raced = steps.assign(world_size=steps["ranks"], candidate=steps["way"]).dropna(axis="columns", how="all")
    found = []
    for ranks, some in raced.groupby("world_size"):
        steps = some.drop_duplicates("candidate", keep="last").set_index("candidate")["step_ms"]
        calls = rows[rows["kind"] == "all_reduce"]
        calls = calls[calls["ranks"] == ranks] if len(calls) else calls
        if "link" in some and "link" in calls:
            calls = calls[calls["link"].isna() | (calls["link"] == some["link"].iloc[-1])]
        if ALONE not in steps or "ZeRO-3" not in steps or calls.empty:
            continue
        largest, about = calls.loc[calls["bytes"].idxmax()], some.iloc[-1]
        busbw = 2 * (ranks - 1) / ranks * largest["bytes"] / (1e-3 * largest["call_ms"])
        tokens = about["batch"] * about["length"]
        count = about["parameters"] if "parameters" in some else sum(parameters(SIZES[about["size"]]).values())
        flops = 6 * count * tokens
        itemsize = 2 if about["dtype"] == "bfloat16" else 4
        exposed = steps["ZeRO-3"] - steps[ALONE]
        found.append((flops / (1e-3 * steps[ALONE]), busbw, int(ranks), itemsize, tokens, exposed, steps["ZeRO-3"]))
    return found
