"""The figures of lab 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.curves import tick_each, upright
from labs_helpers.draw.roles import color, marker, rank_color
from labs_helpers.measure.records import label

if TYPE_CHECKING:
    import pandas


def draw_rounding(errors: torch.Tensor, bounds: torch.Tensor):
    """Plot each weight's error over its row's bound. errors, (N, K), and bounds, (N,), in units of w."""
    shares = (errors.abs() / bounds[:, None]).flatten().numpy()
    fig, ax = figures.new("Rounding errors fill the range up to their bound")
    ax.hist(shares, bins=50, color=color("ours"))
    upright(ax, 1.0, "the bound")
    ax.set(xlabel="|error| / bound", ylabel="weights", xlim=(0, 1.15))
    return fig


def draw_packing(columns: int = 8):
    """Draw a row of int4 values above the bytes that hold them."""
    fig, ax = figures.new("Two neighboring columns share a byte", height=2.6)
    for j in range(columns):
        draw_box(ax, (j, 1.3), 1, 0.8, rank_color(j // 2), f"column {j}", edge=color("edge"))
        place = j // 2 * 2 + (1 - j % 2)  # the upper half of a byte stands on the left
        half = "lower" if j % 2 == 0 else "upper"
        draw_box(ax, (place, 0), 1, 0.8, rank_color(j // 2), f"{half}:\ncolumn {j}", edge=color("edge"))
    for byte in range(columns // 2):
        draw_box(ax, (2 * byte, 0), 2, 0.8, "none", "", edge=color("text"))
    ax.set(xlim=(-0.1, columns + 0.1), ylim=(-0.2, 2.2), yticks=[0.4, 1.7], yticklabels=["bytes", "values"], xticks=[])
    ax.grid(False)
    return fig


def draw_bytes(counted: Mapping[str, Mapping[str, int]]):
    """Draw the bytes that each kernel loads, by what they hold. counted: kernel → {part: bytes}, float16's first and
    int4's last."""
    roles = {"weight": "parameters", "scales and zero points": "yours", "activations": "activations"}
    totals = {name: sum(parts.values()) for name, parts in counted.items()}
    first, *_, last = totals.values()
    fig, ax = figures.new(f"int4 weights load {last / first:.0%} of float16's bytes, not 25%", height=2.8)
    draw_bars(ax, counted, roles, {name: f"{total:,} B" for name, total in totals.items()}, unit="B", room=1.2)
    figures.legend_below(fig, roles)
    return fig


def draw_speed_ups(rows: Sequence[int], curves: Mapping[str, Sequence[float]], crossover, prediction, recorded):
    """Plot predicted speed-ups over bfloat16 against the number of rows M, and the measured ones as hollow markers.

    crossover: where the curves end at 1. recorded: of `measured.recorded_speed_ups`.
    """
    measured, note = recorded
    fig, ax = figures.new("The gain ends where FLOPs take over")
    for number, (name, gains) in enumerate(curves.items()):
        look = {"color": color(number), "marker": marker(number)}
        ax.plot(rows, gains, label=name, markersize=3, **look)
        if points := measured.get(name):
            hollow = {"linestyle": "none", "markerfacecolor": "none", "markersize": 8, "label": "_measured"}
            ax.plot(list(points), list(points.values()), **look, **hollow)
    if crossover is not None:
        upright(ax, crossover, f"{crossover:,} rows", top=False)
    tick_each(ax, rows, base=2, xlabel="rows of x, M")
    ax.set(ylabel="times as fast as bfloat16", ylim=(0, None))
    figures.label_lines(ax)
    figures.mark_prediction(ax, prediction, 1.0)
    figures.write_below(fig, note)
    return fig


def draw_channels(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor], alpha: float):
    """Plot the largest absolute value of each input channel, before and after smoothing. Each maps a name to x or w."""
    names = "before", f"after smoothing, alpha {alpha:g}"
    fig, axes = figures.panels("Smoothing moves outliers into the weight", names, 9.6, 3.6, sharey=True)
    for ax, tensors in zip(axes, (before, after), strict=True):
        for number, (name, tensor) in enumerate(tensors.items()):
            ax.plot(
                tensor.abs().amax(dim=0),
                label=name,
                color=color(number),
                marker="",
                linestyle="-" if number == 0 else "--",
            )
        ax.set(yscale="log", xlabel="input channel")
    axes[0].set_ylabel("largest absolute value")
    figures.legend_below(fig, {name: number for number, name in enumerate(before)})
    return fig


def draw_search(ratios: Sequence[float], errors: torch.Tensor, best: float, prediction=None):
    """Plot the error of AWQ's search against the ratio."""
    fig, ax = figures.new(f"Of these ratios, {best:g} loses the least")
    ax.plot(ratios, errors, color=color("ours"), marker="o")
    ax.set(xlabel="ratio (0: round to nearest)", ylabel="mean square error of the outputs", ylim=(0, None))
    figures.mark_prediction(ax, figures.predicted(prediction), float(errors.min()))
    return fig


def draw_losses(losses: Mapping[str, Sequence[float]], floor: str):
    """Draw each way's mean loss with the range over the seeds. losses: of the way `floor`, which is not rounded, of
    rounding after training, and of training with rounding."""
    means = {name: float(np.mean(values)) for name, values in losses.items()}
    spread = {name: (min(values), max(values)) for name, values in losses.items()}
    unrounded, afterwards, aware = means.values()
    won = (afterwards - aware) / (afterwards - unrounded)
    fig, ax = figures.new(f"{won:.0%} of the added loss is won back", height=2.8)
    roles = {name: "floor" if name == floor else "ours" for name in losses}
    texts = {name: f"{mean:.3f}" for name, mean in means.items()}
    draw_bars(ax, means, roles, texts, spread=spread, xlabel="validation loss, nats per byte", room=1.15)
    return fig


def draw_quality(recorded: Mapping[str, pandas.DataFrame]):
    """Draw how much worse each scheme and method makes the byte model; the lines reach one standard error further than
    the seeds.

    recorded: machine → records of the quality study. Without records, the figure says so.
    """
    if not recorded:
        return figures.say(
            "No machine's quality study is recorded yet: python -m labs_helpers.quantization.quality_study"
        )
    rounded = {machine: rows[rows.scheme != "bf16"] for machine, rows in recorded.items()}
    worst = max((rows.loc[rows.difference.idxmax()] for rows in rounded.values()), key=lambda row: row.difference)
    title = f"{worst.scheme} {worst.model} loses the most, {worst.difference:.2f} nats per byte"
    names = [label(str(rows["on.machine"].iloc[0])) for rows in rounded.values()]
    fig, axes = figures.panels(title, names, 9.6, 6.4)
    for ax, rows in zip(axes, rounded.values(), strict=True):
        found = rows.assign(low=rows.difference - rows.difference_error, high=rows.difference + rows.difference_error)
        bars = found.groupby(["model", "scheme", "method"], sort=False).agg(
            {"difference": "mean", "low": "min", "high": "max"}
        )
        names = [", ".join(name) for name in bars.index]
        means = dict(zip(names, bars.difference, strict=True))
        spread = dict(zip(names, zip(bars.low, bars.high, strict=True), strict=True))
        texts = {name: f"{mean:.4f}" for name, mean in means.items()}
        draw_bars(ax, means, "ours", texts, spread=spread, xlabel="nats per byte worse than bfloat16", room=1.2)
        ax.set_xlim(min(0.0, 1.1 * bars.low.min()), None)
    return fig
