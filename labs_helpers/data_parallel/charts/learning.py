"""Draw how a model learns from compressed gradients, with and without error feedback."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import HOOKS, one_setting, setting_of
from labs_helpers.data_parallel.study.records import select
from labs_helpers.draw import figures
from labs_helpers.draw.words import listed

WINDOW = 10  # steps that one point averages
NEAR = 0.01  # relative to the mean's final loss


def draw_loss_curves(rows: pandas.DataFrame, optimizer: str = "AdamW") -> Figure:
    """Draw loss against step, one panel per compression, with error feedback (solid) and without (dashed).

    The plain mean is black. Below each panel are the final losses on held-out text. ValueError without records.
    """
    found = one_setting(select(rows, "loss_curve", optimizer=optimizer), "size", "batch", "length", "steps", "link")
    mean = found[found["hook"] == "mean"].iloc[0]
    names = [name for name in HOOKS if name != "mean" and name in set(found["hook"])]
    with_feedback = found[found["error_feedback"] == True].set_index("hook")["validation"]  # noqa: E712
    near = [name for name in names if with_feedback[name] < (1 + NEAR) * mean["validation"]]
    title = f"{optimizer}: {listed(near) or 'no compression'} stay{'s' * (len(near) < 2)} within {NEAR:.0%} of the mean"
    fig, axes = figures.panels(title, names, 1.6 + 2.4 * len(names), sharey=True)
    for ax, name in zip(axes, names, strict=True):
        _curve(ax, mean, "-", "mean")
        said = [f"mean {mean['validation']:.3f}"]
        for feedback, style in ((True, "-"), (False, "--")):
            some = found[(found["hook"] == name) & (found["error_feedback"] == feedback)]
            if len(some):
                _curve(ax, some.iloc[0], style, name)
                said.append(f"{'with' if feedback else 'without'} {some.iloc[0]['validation']:.3f}")
        ax.set_xlabel("step\n" + "\n".join(said))
    axes[0].set_ylabel("loss, nats per byte")
    looks = {"plain mean": ("result", "-"), "with error feedback": ("aside", "-"), "without": ("aside", "--")}
    figures.legend_below(fig, looks)
    figures.write_below(fig, f"One run each; title: with feedback; {mean['steps']:.0f} steps, {setting_of(found)}")
    return fig


def _curve(ax: Axes, row: pandas.Series, style: str, hook: str) -> None:
    losses = np.asarray(row["losses"], float)
    window = max(1, min(WINDOW, len(losses) // 4))
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    ax.plot(np.arange(len(smooth)) + window / 2, smooth, style, marker="", color=HOOKS.color(hook), linewidth=1.6)
