"""One step of each wrapper as it ran: what the rank computed, and what was on its way meanwhile."""

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

ROLES = {  # of what a rank does, by its name in the records: words, role
    "forward": ("forward", "forward"), "backward": ("backward", "backward"), "finish": ("finish (waits)", "waiting"),
    "update": ("update", "update"), "kernels": ("computes", "compute"), "all-reduce": ("all-reduce", "communication"),
}  # fmt: skip
LANES = ("compute", "communication")


def draw_timeline(
    rows: pandas.DataFrame, wrappers: Sequence[str] | None = None, rank: int = 0, link: str | None = None
) -> Figure:
    """Two lanes per wrapper on one axis of time: compute above, all-reduces below. link: by default the slowest.

    ValueError without records, and without one of a wrapper that is asked for.
    """
    found = select(rows, "timeline", rank=rank, link=link)
    found = one_setting(found[found["link"] == (link or links(found)[0])], "size", "batch", "length", "ranks")
    names = list(wrappers or [name for name in WRAPPERS if name in set(found["wrapper"])])
    if missing := [name for name in names if name not in set(found["wrapper"])]:
        raise ValueError(f"no records of the kind 'timeline' with wrapper {', '.join(missing)}")
    last = {name: found[found["wrapper"] == name].iloc[-1] for name in names}
    told = " and ".join(f"{name} {three(last[name]['step_ms'])} ms" for name in ("naive", "bucketed") if name in last)
    if (found["source"] == "profiler").any():
        told = "order of kernels, not their lengths"  # a traced rank is slower, and a message holds its waits
    title = f"One step over {found['link'].iloc[0]}{': ' * bool(told)}{told}\n{setting_of(found)}"
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
    return fig
