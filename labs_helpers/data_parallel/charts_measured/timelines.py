"""One step of each wrapper as it ran: what the rank computed, and what was on its way meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pandas
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labs_helpers.data_parallel.charts_measured.looks import WRAPPERS, new_figure, one_setting, setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.draw import figures

COLORS = {
    "forward": "sky", "backward": "blue", "finish": "yellow", "update": "green", "kernels": "blue",
    "all-reduce": "vermillion",
}  # fmt: skip
WORDS = {"finish": "finish (waits)", "kernels": "computes"}
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
    told = " and ".join(f"{name} {last[name]['step_ms']:.3g} ms" for name in ("naive", "bucketed") if name in last)
    title = f"One step over {found['link'].iloc[0]}{': ' * bool(told)}{told}\n{setting_of(found)}"
    fig, ax = new_figure(title, 9.0, height=1.7 + 0.62 * len(names))
    used: dict[str, str] = {}
    for number, row in enumerate(last.values()):
        for lane, name, start, stop, _ in row["intervals"]:
            y = number - 0.18 if lane == LANES[0] else number + 0.18
            color = figures.COLORS[COLORS[name]]
            used[name] = color
            ax.barh(
                y, 1e-3 * (stop - start), left=1e-3 * start, height=0.34, color=color,
                edgecolor=figures.PAPER, linewidth=0.6 if lane == LANES[1] else 0,
            )  # fmt: skip
        ax.vlines(1e-3 * row["step_ms"], number - 0.42, number + 0.42, color=figures.INK, linewidth=1.2)
    ax.set(xlabel="time", yticks=range(len(names)), yticklabels=names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, None)
    ax.grid(False, axis="y")
    figures.set_unit(ax.xaxis, "s")
    patches = [Patch(color=used[name], label=WORDS.get(name, name)) for name in COLORS if name in used]
    fig.legend(handles=patches, loc="outside lower left", ncols=len(patches), fontsize="small", handlelength=1.2)
    return fig
