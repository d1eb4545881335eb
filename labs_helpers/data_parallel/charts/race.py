"""Compare our wrappers and ZeRO stages with PyTorch's, all timed in turns in one run; see data_parallel/race."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import what_ranks_are
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, over_floor
from labs_helpers.draw.curves import recorded_on

OURS, THEIRS = "ours", "PyTorch"
ROLES = {OURS: "ours", THEIRS: "theirs", ALONE: "result", FLOOR: "floor"}
OVER = "× PyTorch's best"
FREED = "FSDP2, root freed"  # parameters outside the blocks are gathered twice, against PyTorch's advice
SHORTER = {
    "fully_shard(": "FSDP2(", "gradient_as_bucket_view": "views", "reshard_after_forward": "reshard",
    "DistributedDataParallel": "DDP", "ZeroRedundancyOptimizer": "DDP + ZeroRedundancyOptimizer",
}  # fmt: skip


def race_table(rows: pandas.DataFrame, heat: str, compiled: bool = True) -> pandas.DataFrame:
    """Return one row per number of ranks and candidate.

    Columns: the step and its middle 60% in ms, the exposed time, the share of NaiveDDP's exposed time that is hidden
    (if it took part), the step relative to PyTorch's fastest, and the peak memory in GB. rows: records of the race.
    heat: 'wrappers', 'shards' or 'master weights'. compiled: compiled blocks, or all eager. ValueError without records.
    """
    found = rows[rows["kind"] == "race"] if "kind" in rows else rows[:0]
    found = found[found["compiled"] == compiled] if len(found) else found
    floors = (
        found[found["library"] == ALONE] if len(found) else found
    )  # a heat without its own floor uses that of the same run
    found = found[found["heat"] == heat] if len(found) else found
    if found.empty:
        raise ValueError(f"no records of the race's heat {heat!r}: see python -m labs_helpers.data_parallel.race")
    found = found[found["step_ms"].notna()].drop_duplicates(["world_size", "candidate"], keep="last")
    found = found.reindex(columns=list(dict.fromkeys([*found, "peak_bytes"])))  # a CPU's records have no peak_bytes
    tables = []
    for ranks, one in found.groupby("world_size"):
        theirs = one.loc[one["library"] == THEIRS, "step_ms"].min()
        here = floors[floors["world_size"] == ranks]
        own = here[here["heat"] == heat]
        floor = (here if own.empty else own)["step_ms"].tolist()[-1:] or [float("nan")]
        naive = one.loc[one["name"] == "NaiveDDP", "step_ms"].min()
        tables.append(
            pandas.DataFrame(
                {
                    "ranks": int(ranks),
                    "candidate": one["candidate"].map(_shorter),
                    "library": one["library"],
                    "step ms": one["step_ms"],
                    "p20 ms": one["step_p20_ms"],
                    "p80 ms": one["step_p80_ms"],
                    "exposed ms": one["step_ms"] - floor[0],
                    "hidden": (naive - one["step_ms"]) / (naive - floor[0]),
                    OVER: one["step_ms"] / theirs,
                    "peak GB": one["peak_bytes"] / 1e9,
                }
            )  # fmt: skip
        )
    return pandas.concat(tables, ignore_index=True)


def draw_race(rows: pandas.DataFrame, heat: str, compiled: bool | None = None) -> Figure:
    """Draw a bar per candidate and a panel per number of ranks: the step without communication, and the exposed time.

    A line spans the middle 60% of the steps. The label at a bar's end gives the step relative to PyTorch's fastest. The
    note below names candidates that could not be timed. Arguments as for `race_table`; compiled: by default True if
    compiled blocks were raced.
    """
    if compiled is None:
        compiled = bool(rows["compiled"].eq(True).any()) if "compiled" in rows else True
    table = race_table(rows, heat, compiled)
    raced = rows[(rows["kind"] == "race") & (rows["heat"] == heat) & (rows["compiled"] == compiled)]
    last = table[table["ranks"] == raced.iloc[-1]["world_size"]]  # of the last recorded run
    panels = {f"{ranks} {what_ranks_are(raced)}": some for ranks, some in table.groupby("ranks")}
    names = list(dict.fromkeys(table["candidate"]))
    title = f"{finding(last)} on {last['ranks'].iloc[0]} {what_ranks_are(raced)}"
    fig, axes = figures.panels(title, panels, 6 + 2.8 * len(panels), 2.2 + 0.3 * len(names), sharey=True)
    for ax, some in zip(axes, panels.values(), strict=True):
        bars, texts, spread = {}, {}, {}
        for _, row in some.iterrows():
            name, step = row["candidate"], row["step ms"]
            bars[name] = over_floor(step - row["exposed ms"], step, row["library"])
            spread[name] = row["p20 ms"], row["p80 ms"]
            texts[name] = f"{row[OVER]:.2f}×" * (row["library"] != ALONE)
        draw_bars(ax, bars, ROLES, texts, spread=spread, names=names, xlabel="ms of a step", room=1.25)
        ax.locator_params(axis="x", nbins=3)
    about = raced.iloc[-1]
    step = f"{about['batch']:.0f} × {about['length']:.0f} tokens per rank, {about['dtype']}"
    untimed = sorted(set(raced["candidate"]) - set(raced.loc[raced["step_ms"].notna(), "candidate"]))
    missing = f"; not timed: {', '.join(map(_shorter, untimed))}" if untimed else ""
    how = "blocks compiled" if compiled else "eager"
    figures.legend_below(fig, {FLOOR: "floor", "exposed, ours": "ours", "exposed, PyTorch": "theirs"})
    figures.write_below(fig, f"{about['size'].upper()}, {step}, {how}{recorded_on(raced)}{missing}")
    return fig


def finding(table: pandas.DataFrame) -> str:
    """Compare our best step with PyTorch's best; they differ only if the middle 60% of both do not overlap."""
    settled = table[~table["candidate"].str.startswith(FREED)]
    best = {library: some.loc[some["step ms"].idxmin()] for library, some in settled.groupby("library")}
    if OURS not in best or THEIRS not in best:
        mine = table[table["library"] == OURS]
        over = mine["step ms"] / (mine["step ms"] - mine["exposed ms"])
        return f"Ours take {over.min():.2f} to {over.max():.2f} times the floor"
    ours, theirs = best[OURS], best[THEIRS]
    if ours["p20 ms"] <= theirs["p80 ms"] and theirs["p20 ms"] <= ours["p80 ms"]:
        return "Our best step and PyTorch's best overlap"
    return f"Our best step takes {ours[OVER]:.2f} times PyTorch's best"


def _shorter(candidate: str) -> str:
    if (
        candidate.startswith("fully_shard") and "reshard" not in candidate
    ):  # records from before it raced as PyTorch advises
        candidate = candidate.replace("fully_shard", FREED)
    for long, short in SHORTER.items():
        candidate = candidate.replace(long, short)
    return candidate
