"""What a model learns from compressed gradients, with error feedback and without."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import HOOKS, one_setting, setting_of
from labs_helpers.data_parallel.study.records import select
from labs_helpers.draw import figures
from labs_helpers.draw.words import signed

WINDOW = 10  # steps that a point is the mean of


def draw_loss_curves(rows: pandas.DataFrame, optimizer: str = "AdamW") -> Figure:
    """Loss by step, a panel per compression beside the plain mean's (black): with error feedback (solid) and without
    (dashed); below each the loss on other text at the end. ValueError without records."""
    found = one_setting(select(rows, "loss_curve", optimizer=optimizer), "size", "batch", "length", "steps", "link")
    mean = found[found["hook"] == "mean"].iloc[0]
    names = [name for name in HOOKS if name != "mean" and name in set(found["hook"])]
    after = found.set_index(["hook", "error_feedback"])["validation"]
    told = [f"{name} {signed(after[name, True] / after[name, False] - 1, 1)}" for name in names]
    title = f"What error feedback changes in the loss after {mean['steps']:.0f} steps of {optimizer}: {', '.join(told)}"
    fig, axes = figures.panels(f"{title}\n{setting_of(found)}", names, 1.6 + 2.9 * len(names), sharey=True)
    for ax, name in zip(axes, names, strict=True):
        _curve(ax, mean, "-", "mean")
        said = [f"mean {mean['validation']:.3f}"]
        for feedback, style in ((True, "-"), (False, "--")):
            some = found[(found["hook"] == name) & (found["error_feedback"] == feedback)]
            if len(some):
                _curve(ax, some.iloc[0], style, name)
                said.append(f"{'with' if feedback else 'without'} {some.iloc[0]['validation']:.3f}")
        ax.set_xlabel("step\n" + ", ".join(said))
    axes[0].set_ylabel("loss, nats per byte")
    looks = {"plain mean": ("result", "-"), "with error feedback": ("aside", "-"), "without": ("aside", "--")}
    figures.legend_below(fig, looks)
    return fig


def _curve(ax: Axes, row: pandas.Series, style: str, hook: str) -> None:
    losses = np.asarray(row["losses"], float)
    window = max(1, min(WINDOW, len(losses) // 4))
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    ax.plot(np.arange(len(smooth)) + window / 2, smooth, style, marker="", color=HOOKS.color(hook), linewidth=1.6)
