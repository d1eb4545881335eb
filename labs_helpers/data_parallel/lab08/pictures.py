"""Draw lab 08's figures: four ways to send gradients on a time axis, the buckets, and the races of the ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas

from labs_helpers.data_parallel.charts.settings import WRAPPERS, setting_of, what_ranks_are
from labs_helpers.data_parallel.lab08.stretch import MEGABYTE, arrivals, equal_groups, exposed_after
from labs_helpers.data_parallel.study.records import ALONE, select
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, mark_bar, over_floor
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color
from labs_helpers.draw.words import bytes_text


def draw_ways(layers: int, compute: float, alpha: float, beta: float, bucket: int):
    """Draw the backward pass and the messages of four ways, calculated for equal layers.

    compute: ms of one layer's backward pass. alpha, beta: a message of n layers' gradients takes alpha + n · beta ms.
    bucket: layers per bucket.
    """
    ready = [compute * (i + 1) for i in range(layers)]
    firsts = range(0, layers, bucket)
    groups = {  # (layers, the time in ms at which they are ready) of each message
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
    title = f"{first.capitalize()} ends first ({ends[first]:.3g} ms), {last} last ({ends[last]:.3g} ms)"
    fig, ax = figures.new(title, 8.2, 3.6)
    draw_lanes(ax, rows, xlabel="time, ms")
    for y, end in enumerate(ends.values()):
        ax.text(end + 0.1, y + 0.19, f"{end:.3g} ms", va="center")
    ax.set_xlim(0, 1.12 * max(ends.values()))
    figures.legend_below(fig, {"backward, layer by layer": "forward", "all-reduce": "communication"})
    figures.write_below(fig, f"{layers} layers; a message of n gradients takes {alpha:g} + {beta:g} n ms")
    return fig


def draw_links(rows: pandas.DataFrame, costs: Mapping[str, tuple[float, float] | None]):
    """Draw a bar per way and a panel per link: the step without communication, and the exposed time on top of it.

    A line spans the middle 60% of the steps. A hollow mark shows the step that α + nβ predicts if messages cost the
    processor nothing. rows: records of `ways.measure_ways`. costs: by link, (α in seconds, β in seconds per byte), or
    None for no marks.
    """
    found = select(rows, "wrapper")
    fig, axes = figures.panels(None, list(costs), 4.4 * len(costs) + 1.0, 3.4, sharey=True)
    said, roles = [], {name: WRAPPERS.role(name) for name in WRAPPERS} | {FLOOR: "floor"}
    for ax, (link, cost) in zip(axes, costs.items(), strict=True):
        here = found[found["link"] == link].set_index("wrapper")
        told = told_steps(here.loc[ALONE], here["bucket_mb"].iloc[0], *cost) if cost else {}
        bars = {name: over_floor(1e-3 * row["alone_ms"], 1e-3 * row["step_ms"], name) for name, row in here.iterrows()}
        spread = {name: (1e-3 * row["step_p20_ms"], 1e-3 * row["step_p80_ms"]) for name, row in here.iterrows()}
        draw_bars(ax, bars, roles, spread=spread, unit="s", xlabel="time of a step", room=1.1)
        for name, seconds in told.items():
            mark_bar(ax, seconds, list(here.index).index(name))
        if here.loc["overlapped", "step_p80_ms"] < here.loc["flat", "step_p20_ms"]:
            said.append(link)
    figures.legend_below(fig, {FLOOR: "floor", "exposed (colored)": "", "by α + nβ": ("formula", "D")})
    told = f"Overlapped beats flat over {' and '.join(said)}" if said else "The spreads of overlapped and flat overlap"
    figures.set_title(fig, told)
    figures.write_below(fig, setting_of(found))
    return fig


def told_steps(alone: pandas.Series, bucket_mb: float, alpha: float, beta: float) -> dict[str, float]:
    """Predict the seconds of a step of each way by α + nβ. alone: the record of a step without communication."""
    nbytes, ready = arrivals(alone)
    groups = {
        "naive": [[number] for number in range(len(nbytes))],
        "flat": [list(range(len(nbytes)))],
        "bucketed": equal_groups(nbytes, bucket_mb * MEGABYTE),
        "overlapped": [[number] for number in range(len(nbytes))],
    }
    late = [ready[-1]] * len(ready)  # naive and flat send after backward
    return {
        name: 1e-3 * alone["step_ms"]
        + exposed_after(some, nbytes, late if name in ("naive", "flat") else ready, alpha, beta)
        for name, some in groups.items()
    }


@beside_yours("data-parallel")
def draw_race(rows: pandas.DataFrame):
    """Draw each wrapper's fastest setting, one panel per number of GPUs and mode (eager or compiled).

    A bar stacks the step without communication and the exposed time; a line spans the middle 60% of the steps. The
    label gives the number of settings tried. rows: records of `labs_helpers.data_parallel.race`.
    """
    race = rows[(rows["kind"] == "race") & (rows["heat"] == "wrappers")].dropna(subset="step_ms")
    race = race.drop_duplicates(["world_size", "compiled", "candidate"], keep="last")
    first, ahead = race.iloc[-1], []
    panels = dict(list(race.groupby(["world_size", "compiled"])))
    fig, axes = figures.panels(None, [_where(race, *key) for key in panels], 3.6 * len(panels) + 1.8, 3.6, sharey=True)
    for ax, (key, some) in zip(axes, panels.items(), strict=True):
        best = some.sort_values("step_ms").drop_duplicates("name").set_index("name")
        best = best.loc[list(dict.fromkeys(some["name"]))]
        tried, floor = some["name"].value_counts(), best.loc[ALONE, "step_ms"]
        texts = {
            name: f"{row['step_ms']:.1f} ms ({tried[name]} setting{'s' * bool(tried[name] > 1)})"
            for name, row in best.iterrows()
        }
        bars = {name: over_floor(floor, row["step_ms"], "exposed") for name, row in best.iterrows()}
        spread = {name: (row["step_p20_ms"], row["step_p80_ms"]) for name, row in best.iterrows()}
        draw_bars(
            ax, bars, {FLOOR: "floor", "exposed": "communication"}, texts, spread=spread, xlabel="time of a step, ms"
        )
        ax.set_xlim(0, 2.1 * race.loc[race["name"] == "NaiveDDP", "step_ms"].max())
        others = best.drop(index=[ALONE, "DistributedDataParallel"])
        if others["step_p80_ms"].min() < best.loc["DistributedDataParallel", "step_p20_ms"]:
            ahead.append(_where(race, *key))
    told = f"Lab 01's {first['size']} model, {first['batch']:.0f} × {first['length']:.0f} tokens per rank"
    figures.set_title(fig, f"Our best wrapper beats PyTorch's in {len(ahead)} of {len(panels)} panels")
    figures.legend_below(fig, {FLOOR: "floor", "exposed": "communication"})
    figures.write_below(fig, f"{told}{recorded_on(race)}")
    return fig


def _where(race: pandas.DataFrame, ranks: int, compiled: bool) -> str:
    return f"{ranks:.0f} {what_ranks_are(race)}, {'blocks compiled' if compiled else 'eager'}"


def draw_buckets(names: dict, buckets: Sequence):
    """Draw one bar per bucket, in the order of sending, with its parameters' bytes. names: id(parameter) → name."""
    title = f"{sum(map(len, buckets))} gradients travel in {len(buckets)} messages"
    fig, ax = figures.new(title, 8.2, 0.5 * len(buckets) + 1.6)
    rows = {}
    for number, bucket in enumerate(buckets):
        left, spans = 0, []
        for i, p in enumerate(bucket):
            spans.append(Span(left, left + p.nbytes, color("one" if i % 2 else "all"), names[id(p)]))
            left += p.nbytes
        rows[f"bucket {number}: {bytes_text(left)}"] = [spans]
    draw_lanes(ax, rows, xlabel="bytes", unit="B", letters=8)
    return fig
