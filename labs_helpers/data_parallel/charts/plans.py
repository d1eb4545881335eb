"""Draw the memory of each strategy, and compare ZeRO-3 with tensor parallelism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars, write_at_end
from labs_helpers.draw.curves import upright
from labs_helpers.draw.roles import color
from labs_helpers.planner.accounting import DEFAULT, GB, STAGES, Part, states, total
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import Plan
from labs_helpers.planner.zero3_against_tp import compare, crossing

PARTS = ("parameters", "gradients", "optimizer", "buckets", "gathered", "activations")  # in stacking order
FARTHEST = 4  # times the capacity: longer bars are cut off here


def draw_memory(memory: Mapping[str, Sequence[Part]], capacity: float | None = None, title: str = "") -> Figure:
    """Draw one stacked bar per strategy: the parts of one rank's memory, with the sum at its end.

    memory: name → parts, as `states` or `step_memory` return them. capacity: a GPU's bytes, drawn as a line.
    ValueError if memory is empty.
    """
    if not memory:
        raise ValueError("there is nothing to draw: no strategy is possible")
    fig, (ax,) = figures.panels(title or "What one GPU holds", [""], 8.4, 1.9 + 0.34 * len(memory))
    held = {name: {part.name: part.bytes for part in parts if part.bytes} for name, parts in memory.items()}
    bars = {name: {part: parts[part] for part in PARTS if part in parts} for name, parts in held.items()}
    longest = max(sum(parts.values()) for parts in bars.values())
    draw_bars(ax, bars, {part: part for part in PARTS}, unit="B", xlabel="memory of one GPU", height=0.7)
    shown = min(longest, FARTHEST * capacity) if capacity is not None else longest
    for y, parts in enumerate(bars.values()):
        end = sum(parts.values())
        write_at_end(ax, min(end, shown), y, _gigabytes(end) + " →" * (end > shown))
    ax.set_xlim(0, 1.14 * max(shown, capacity or 0))
    if capacity is not None:
        upright(ax, capacity, f"{capacity / GB:.0f} GB")
    used = {part for parts in bars.values() for part in parts}
    figures.legend_below(fig, {part: part for part in PARTS}, only=used)
    return fig


def draw_states(count: float, ranks: int, layout: str = DEFAULT) -> Figure:
    """Draw only the states, per stage, like the figure of the ZeRO paper (Rajbhandari et al., 2020)."""
    memory = {stage: states(count, stage, ranks, layout) for stage in STAGES if stage != "SHARD_GRAD_OP"}
    first, *_, last = (total(parts) for parts in memory.values())
    fig = draw_memory(
        memory, title=f"Model states take {first / GB:.4g} GB per GPU under DDP, {last / GB:.3g} under ZeRO-3"
    )
    figures.write_below(fig, f"{count / 1e9:.3g} billion parameters, {ranks} GPUs, {layout}")
    return fig


def draw_plan_memory(plan: Plan) -> Figure:
    """Draw the memory of every possible strategy of a plan, and the GPU's capacity."""
    rows = [row for row in plan.rows if row.time]
    training, cluster = plan.training, plan.cluster
    setting = (
        f"{training.model.parameters / 1e9:.3g} billion parameters, {training.batch} × {training.length} tokens per "
        f"GPU{', checkpointed' * training.checkpoint}, {cluster.gpus} {cluster.name}, {training.layout}"
    )
    title = (
        f"{sum(row.fits for row in rows)} of {len(rows)} strategies fit into {cluster.chip.memory_bytes / GB:.0f} GB"
    )
    fig = draw_memory({row.strategy.name: row.parts for row in rows}, float(cluster.chip.memory_bytes), title)
    figures.write_below(fig, setting)
    return fig


def draw_crossing(model: Model, ranks: int, prediction: Any = None, layout: str = DEFAULT) -> Figure:
    """Draw the bytes that a rank sends per step against all ranks' tokens, for ZeRO-3 and tensor parallelism.

    prediction: a Prediction of the tokens at which the lines cross; one without a number is not drawn.
    """
    at = crossing(model, ranks, layout)
    tokens = np.geomspace(at / 64, at * 64, 7).round().astype(int)  # few points: the lines are straight on log axes
    both = [compare(model, ranks, 1, int(number), layout) for number in tokens]
    level = both[0].zero3_bytes
    title = f"Tensor parallelism sends more from {at:,.0f} tokens per step"
    fig, (ax,) = figures.panels(title, [""], 8.4, 4.6)
    size = f"{model.parameters / 1e9:.3g} billion parameters, width {model.shape.width}"
    figures.write_below(fig, f"{size}, on {ranks} GPUs, {layout}")
    ax.plot(tokens, [b.zero3_bytes for b in both], marker="", color=color(0), label="ZeRO-3:\nweights")
    tensor_parallel: dict[str, Any] = {"marker": "", "color": color(1), "label": "tensor parallel:\nactivations"}
    ax.plot(tokens, [b.tp_bytes for b in both], "--", **tensor_parallel)
    ax.plot([at], [level], "o", markersize=11, markerfacecolor="none", color=color("formula"), label="_crossing")
    ax.set(xscale="log", yscale="log", xlabel="tokens per step, all ranks together", ylabel="sent per rank and step")
    figures.set_unit(ax.yaxis, "B")
    figures.set_unit(ax.xaxis, "")
    figures.label_lines(ax, gap=2.6)
    words = f"{at:,.0f} tokens: {at / model.shape.width:.1f} times the width"
    ax.annotate(words, (at, level), xytext=(12, -18), textcoords="offset points", va="center")
    figures.mark_prediction(ax, prediction, level)
    return fig


def _gigabytes(size: float) -> str:
    return f"{size / GB:,.0f} GB" if size >= 100 * GB else f"{size / GB:.3g} GB"
