"""Draw one recorded step per wrapper: the rank's computation, and its messages at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import WRAPPERS, one_setting, setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color
from labs_helpers.draw.words import three

ROLES = {  # an action's name in the records: its label and role
    "forward": ("forward", "forward"), "backward": ("backward", "backward"), "finish": ("finish (waits)", "waiting"),
    "update": ("update", "update"), "kernels": ("computes", "compute"), "all-reduce": ("all-reduce", "communication"),
}  # fmt: skip
LANES = ("compute", "communication")


def draw_timeline(
    rows: pandas.DataFrame, wrappers: Sequence[str] | None = None, rank: int = 0, link: str | None = None
) -> Figure:
    """Draw two lanes per wrapper on one time axis: compute above, all-reduces below. link: by default the slowest.

    ValueError without records, or if one of `wrappers` has none.
    """
    found = select(rows, "timeline", rank=rank, link=link)
    found = one_setting(found[found["link"] == (link or links(found)[0])], "size", "batch", "length", "ranks")
    names = list(wrappers or [name for name in WRAPPERS if name in set(found["wrapper"])])
    if missing := [name for name in names if name not in set(found["wrapper"])]:
        raise ValueError(f"no records of the kind 'timeline' with wrapper {', '.join(missing)}")
    last = {name: found[found["wrapper"] == name].iloc[-1] for name in names}
    setting = setting_of(found)
    told = [f"{name} {three(last[name]['step_ms'])} ms" for name in ("naive", "bucketed") if name in last]
    title = f"A step over {found['link'].iloc[0]}: {', '.join(told) or 'each way'}"
    if (found["source"] == "profiler").any():  # a traced rank is slower, and a message includes its waits
        sending = [row for row in last.values() if any(i[0] == "communication" for i in row["intervals"])]
        title = f"{sum(map(_overlaps, sending))} of {len(sending)} ways send while they compute"
        setting = f"Compare the order of kernels, not their lengths; {found['link'].iloc[0]}, {setting}"
    fig, (ax,) = figures.panels(title, [""], 9.0, 1.7 + 0.62 * len(names))
    steps = {
        name: [
            [Span(1e-3 * i[2], 1e-3 * i[3], color(ROLES[i[1]][1])) for i in row["intervals"] if i[0] == lane]
            for lane in LANES
        ]
        for name, row in last.items()
    }
    draw_lanes(ax, steps, {name: 1e-3 * row["step_ms"] for name, row in last.items()}, unit="s")
    used = {interval[1] for row in last.values() for interval in row["intervals"]}
    figures.legend_below(fig, dict(words for name, words in ROLES.items() if name in used))
    figures.write_below(fig, setting)
    return fig


def _overlaps(row: pandas.Series) -> bool:
    """Return whether a message and a computation run at the same time."""
    compute, messages = ([i for i in row["intervals"] if i[0] == lane] for lane in LANES)
    return any(a[2] < m[3] and m[2] < a[3] for a in compute for m in messages)
