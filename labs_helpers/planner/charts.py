"""Draw the planner's predictions beside the times of published training runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.lanes import finish_rows
from labs_helpers.draw.roles import PAPER, color

if TYPE_CHECKING:
    import pandas

CLOSE = 0.2  # difference from the published time that counts as a good prediction


def draw_published(rows: pandas.DataFrame) -> Figure:
    """Draw the predicted time over the published one, a row per run. rows: from `published.predictions`."""
    off = (rows["ratio"] - 1).abs()
    others = int((~rows["fitted"]).sum())
    title = f"{int((off[~rows['fitted']] <= CLOSE).sum())} of {others} predictions come within {CLOSE:.0%}"
    fig, ax = figures.new(title, 8.2, 1.4 + 0.27 * len(rows))
    figures.write_below(fig, "one constant of the model is fitted to the two runs with open circles")
    ax.axvspan(1 - CLOSE, 1 + CLOSE, color=color("aside"), alpha=0.15)
    ax.axvline(1, color=color("aside"), linewidth=1)
    for y, (ratio, fitted) in enumerate(zip(rows["ratio"], rows["fitted"], strict=True)):
        ax.plot([ratio], [y], "o", color=color("ours"), markerfacecolor=PAPER if fitted else color("ours"))
    times = zip(rows.index, rows["GPUs"], rows["published s"], strict=True)
    names = [f"{name}: {gpus:,} GPUs, {seconds:.3g} s" for name, gpus, seconds in times]
    finish_rows(ax, names)
    ax.set(xlim=(0.7, 1.3), xlabel="predicted time of a step / published time")
    return fig
