"""The drawings of lab 08: four ways to send gradients as bars on a time axis, and what is in which bucket."""

from __future__ import annotations

from collections.abc import Sequence

import pandas

from labs_helpers.data_parallel.charts.settings import what_ranks_are
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, over_floor
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color


def draw_ways(layers: int, compute: float, alpha: float, beta: float, bucket: int):
    """Backward and the messages of four ways, worked out for equal layers. compute: ms of a layer's backward; a message
    of n layers' gradients takes alpha + n · beta ms; bucket: layers in a bucket."""
    ready = [compute * (i + 1) for i in range(layers)]
    firsts = range(0, layers, bucket)
    groups = {  # of each message: its number of layers, and when it is ready
        "naive": [(1, ready[-1])] * layers,
        "flat": [(layers, ready[-1])],
        "overlapped": [(1, end) for end in ready],
        "bucketed": [(len(ready[first : first + bucket]), ready[first : first + bucket][-1]) for first in firsts],
    }
    backward = [Span(end - compute, end, color("forward")) for end in ready]
    ends, rows = {}, {}
    for name, messages in groups.items():
        sending, free = [], 0.0
        for count, earliest in messages:
            start = max(free, earliest)
            free = start + alpha + beta * count
            sending.append(Span(start, free, color("communication")))
        ends[name], rows[name] = free, [backward, sending]
    first, last = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    told = f"{first} ends first, after {ends[first]:.3g} ms, {last} last, after {ends[last]:.3g}"
    setting = f"{layers} layers, a message of n gradients takes {alpha:g} + {beta:g} n ms"
    fig, ax = figures.new(f"{told}\n{setting}", 8.2, 3.6)
    draw_lanes(ax, rows, xlabel="ms")
    for y, end in enumerate(ends.values()):
        ax.text(end + 0.1, y + 0.19, f"{end:.3g} ms", va="center")
    ax.set_xlim(0, 1.12 * max(ends.values()))
    figures.legend_below(fig, {"backward, layer by layer": "forward", "all-reduce": "communication"})
    return fig


@beside_yours("data-parallel")
def draw_race(rows: pandas.DataFrame):
    """Of each wrapper its best settings, on the most GPUs: the step without synchronisation, what is exposed on top of
    it, and how much of what the naive step adds is hidden. rows: records of `labs_helpers.data_parallel.race`."""
    race = rows[(rows["kind"] == "race") & (rows["heat"] == "wrappers")].dropna(subset="step_ms")
    race = race[race["world_size"] == race["world_size"].max()]
    kinds = {"blocks compiled" if compiled else "eager": some for compiled, some in race.groupby("compiled")}
    first, slowest, said = race.iloc[-1], race["step_ms"].max(), []
    fig, axes = figures.panels(None, kinds, 4.4 * len(kinds) + 1.8, 3.6, sharey=True)
    for ax, (where, some) in zip(axes, kinds.items(), strict=True):
        best = some.drop_duplicates("candidate", keep="last").groupby("name", sort=False)["step_ms"].min()
        floor, naive = best["no synchronisation"], best["NaiveDDP"]
        fastest = best.drop("no synchronisation").idxmin()
        said.append(f"{fastest} {best[fastest] / best['DistributedDataParallel']:.3f} ({where})")
        texts = {name: f"{step:.1f} ms" for name, step in best.items()}
        for name in set(best.index) - {"no synchronisation", "NaiveDDP"}:
            word = "saved" if name == "FlatDDP" else "hidden"
            texts[name] += f", {(naive - best[name]) / (naive - floor):.0%} {word}"
        bars = {name: over_floor(floor, step, "exposed") for name, step in best.items()}
        draw_bars(ax, bars, {FLOOR: "floor", "exposed": "communication"}, texts, xlabel="ms")
        ax.set_xlim(0, 1.5 * slowest)
    told = f"Lab 01's {first['size']} model, {first['batch']:.0f} × {first['length']:.0f} tokens per rank"
    setting = f"{told}, {first['world_size']:.0f} {what_ranks_are(race)}{recorded_on(race)}"
    figures.set_title(fig, f"Fastest, over DistributedDataParallel's step: {', '.join(said)}\n{setting}")
    return fig


def draw_buckets(names: dict, buckets: Sequence):
    """A bar per bucket, in the order in which they are sent, of its parameters' bytes. names: id(parameter) → name."""
    title = f"{sum(map(len, buckets))} gradients in {len(buckets)} messages"
    fig, ax = figures.new(title, 8.2, 0.5 * len(buckets) + 1.6)
    rows = {}
    for number, bucket in enumerate(buckets):
        left, spans = 0, []
        for i, p in enumerate(bucket):
            spans.append(Span(left, left + p.nbytes, color("one" if i % 2 else "all"), names[id(p)]))
            left += p.nbytes
        rows[f"bucket {number}"] = [spans]
    draw_lanes(ax, rows, xlabel="bytes", unit="B", letters=8)
    return fig
