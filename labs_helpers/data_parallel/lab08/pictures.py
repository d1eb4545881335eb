"""The drawings of lab 08: four ways to send gradients as bars on a time axis, and what is in which bucket."""

from __future__ import annotations

from collections.abc import Sequence

import pandas
from matplotlib.patches import Patch

from labs_helpers.data_parallel.charts_measured.looks import what_ranks_are
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on

COMPUTE, SENDING = figures.COLORS["sky"], figures.COLORS["vermillion"]


def draw_ways(layers: int, compute: float, alpha: float, beta: float, bucket: int):
    """Backward and the messages of four ways, worked out for equal layers. compute: ms of a layer's backward; a message
    of n layers' gradients takes alpha + n · beta ms; bucket: layers in a bucket."""
    ready = [compute * (i + 1) for i in range(layers)]
    groups = {
        "naive": [([i], ready[-1]) for i in range(layers)],
        "flat": [(list(range(layers)), ready[-1])],
        "overlapped": [([i], ready[i]) for i in range(layers)],
        "bucketed": [
            (some := list(range(first, min(first + bucket, layers))), ready[some[-1]])
            for first in range(0, layers, bucket)
        ],
    }
    ends = {}
    fig, ax = figures.new(None, 8.2, 3.6)
    for row, (name, messages) in enumerate(groups.items()):
        ax.broken_barh(
            [(compute * i, compute) for i in range(layers)], (row - 0.36, 0.34), color=COMPUTE, edgecolor="white"
        )
        free = 0.0
        for some, earliest in messages:
            start, length = max(free, earliest), alpha + beta * len(some)
            ax.broken_barh([(start, length)], (row + 0.02, 0.34), color=SENDING, edgecolor="white")
            free = start + length
        ends[name] = free
        ax.text(free + 0.1, row + 0.19, f"{free:.3g} ms", va="center")
    first, last = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    told = f"{first} ends first, after {ends[first]:.3g} ms, {last} last, after {ends[last]:.3g}"
    ax.set_title(f"{told}\n{layers} layers, a message of n gradients takes {alpha:g} + {beta:g} n ms")
    ax.set(xlabel="ms", yticks=range(len(groups)), yticklabels=list(groups), ylim=(len(groups) - 0.4, -0.6))
    ax.set_xlim(0, 1.12 * max(ends.values()))
    ax.grid(False, axis="y")
    patches = [Patch(color=COMPUTE, label="backward, layer by layer"), Patch(color=SENDING, label="all-reduce")]
    fig.legend(handles=patches, loc="outside lower left", ncols=2)
    return fig


@beside_yours("data-parallel")
def draw_race(rows: pandas.DataFrame):
    """Of each wrapper its best settings, on the most GPUs: the step without synchronisation, what is exposed on top of
    it, and how much of what the naive step adds is hidden. rows: records of `labs_helpers.data_parallel.race`."""
    race = rows[(rows["kind"] == "race") & (rows["heat"] == "wrappers")].dropna(subset="step_ms")
    race = race[race["world_size"] == race["world_size"].max()]
    kinds = sorted(race["compiled"].unique())
    first, slowest = race.iloc[-1], race["step_ms"].max()
    fig, axes = figures.new(None, 4.4 * len(kinds) + 1.8, 3.6, ncols=len(kinds), sharey=True, squeeze=False)
    told = f"Lab 01's {first['size']} model, {first['batch']:.0f} × {first['length']:.0f} tokens per rank"
    said = []
    for ax, compiled in zip(axes[0], kinds, strict=True):
        last = race[race["compiled"] == compiled].drop_duplicates("candidate", keep="last")
        best = last.groupby("name", sort=False)["step_ms"].min()
        floor, naive = best["no synchronisation"], best["NaiveDDP"]
        fastest = best.drop("no synchronisation").idxmin()
        where = "blocks compiled" if compiled else "eager"
        said.append(f"{fastest} {best[fastest] / best['DistributedDataParallel']:.3f} ({where})")
        for row, (name, step) in enumerate(best.items()):
            ax.barh(row, floor, color="#B9B6AC")
            ax.barh(row, step - floor, left=floor, color=SENDING)
            word = "saved" if name == "FlatDDP" else "hidden"
            hidden = f", {(naive - step) / (naive - floor):.0%} {word}" if step not in (floor, naive) else ""
            ax.text(step, row, f" {step:.1f} ms{hidden}", va="center", fontsize=9)
        ax.set(xlabel="ms", yticks=range(len(best)), yticklabels=list(best.index), xlim=(0, 1.5 * slowest))
        ax.set_title(where)
        ax.invert_yaxis() if ax is axes[0][0] else None
        ax.grid(False, axis="y")
    finding = f"Fastest, over DistributedDataParallel's step: {', '.join(said)}"
    setting = f"{told}, {first['world_size']:.0f} {what_ranks_are(race)}{recorded_on(race)}"
    fig.suptitle(f"{finding}\n{setting}", x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])
    return fig


def draw_buckets(names: dict, buckets: Sequence):
    """A bar per bucket, in the order in which they are sent, of its parameters' bytes. names: id(parameter) → name."""
    fig, ax = figures.new(
        f"{sum(map(len, buckets))} gradients in {len(buckets)} messages", 8.2, 0.5 * len(buckets) + 1.6
    )
    longest = max(sum(p.nbytes for p in bucket) for bucket in buckets)
    shades = (figures.COLORS["sky"], figures.COLORS["orange"])
    for row, bucket in enumerate(buckets):
        left = 0
        for i, p in enumerate(bucket):
            ax.barh(row, p.nbytes, left=left, color=shades[i % 2], edgecolor="white")
            full = names[id(p)]
            short = next((x for x in (full, full.split(".")[-1]) if p.nbytes > 0.012 * len(x) * longest), "")
            ax.text(left + p.nbytes / 2, row, short, ha="center", va="center", fontsize=8)
            left += p.nbytes
    ax.set(xlabel="bytes", yticks=range(len(buckets)), ylim=(len(buckets) - 0.5, -0.5))
    ax.set_yticklabels([f"bucket {i}" for i in range(len(buckets))])
    figures.set_unit(ax.xaxis, "B")
    ax.grid(False, axis="y")
    return fig
