"""The figures of accounting and plans: memory by strategy, predicted steps, and ZeRO-3 against tensor parallelism."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labs_helpers.data_parallel.accounting import DEFAULT, GB, STAGES, Part, states, total
from labs_helpers.data_parallel.model_size import Model
from labs_helpers.data_parallel.planner import Plan
from labs_helpers.data_parallel.zero3_against_tp import compare, crossing
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted

COLORS = {  # in the order in which they are stacked
    "parameters": "blue", "gradients": "orange", "optimizer": "green", "buckets": "vermillion", "gathered": "sky",
    "activations": "purple",
    "compute": "blue", "update": "green", "exposed communication": "vermillion",
    "what the hidden communication costs": "orange",
}  # fmt: skip
FARTHEST = 4  # times the capacity: bars end there, with their numbers


def draw_memory(memory: Mapping[str, Sequence[Part]], capacity: float | None = None, title: str = "") -> Figure:
    """A bar per strategy of what one rank holds, stacked part by part, with the sum at its end.

    memory: name → parts, as `states` or `step_memory` give them. capacity: a GPU's bytes, drawn as a line.
    ValueError without a strategy.
    """
    bars = {name: {part.name: part.bytes for part in parts} for name, parts in memory.items()}
    limit = None if capacity is None else FARTHEST * capacity
    fig, ax = _stacked(bars, "memory of one GPU", "B", title or "What one GPU holds", limit=limit)
    if capacity is not None:
        ax.axvline(capacity, linestyle="--", linewidth=1.4, color=figures.COLORS["black"], zorder=1.5)
        where: dict[str, Any] = {
            "xycoords": ax.get_xaxis_transform(),
            "ha": "center",
            "va": "bottom",
            "style": "italic",
        }
        ax.annotate(f"{capacity / GB:.0f} GB", (capacity, 1.01), **where)
    return fig


def draw_states(count: float, ranks: int, layout: str = DEFAULT) -> Figure:
    """The states alone, by stage: the figure of the ZeRO paper."""
    memory = {stage: states(count, stage, ranks, layout) for stage in STAGES if stage != "SHARD_GRAD_OP"}
    first, *_, last = (total(parts) for parts in memory.values())
    return draw_memory(
        memory,
        title=f"{count / 1e9:.3g} billion parameters on {ranks} GPUs: from {first / GB:.4g} to {last / GB:.3g} GB of "
        f"states\n{layout}",
    )


def draw_plan_memory(plan: Plan) -> Figure:
    """Memory of every strategy of a plan that is possible, and what the GPU has."""
    rows = [row for row in plan.rows if row.time]
    fitting = sum(row.fits for row in rows)
    return draw_memory(
        {row.strategy.name: row.parts for row in rows},
        float(plan.cluster.chip.memory_bytes),
        f"{fitting} of {len(rows)} strategies fit\n{_setting(plan)}",
    )


def draw_plan_steps(plan: Plan) -> Figure:
    """Predicted step of every strategy of a plan: compute, update, exposed communication, what the hidden one costs.
    Strategies that do not fit are pale."""
    rows = [row for row in plan.rows if row.time]
    bars = {
        row.strategy.name: {
            "compute": row.time.compute,
            "update": row.time.update,
            "exposed communication": row.time.exposed,
            "what the hidden communication costs": row.time.contention * row.time.hidden,
        }
        for row in rows
        if row.time
    }
    choice = f"{plan.choice.strategy.name} is the choice" if plan.choice else "None fits"
    pale = {row.strategy.name for row in rows if not row.fits}
    note = " (pale: does not fit)" if pale else ""
    return _stacked(bars, f"predicted step{note}", "s", f"{choice}\n{_setting(plan)}", pale)[0]


def draw_crossing(model: Model, ranks: int, prediction: Any = None, layout: str = DEFAULT) -> Figure:
    """Bytes that a rank sends in a step against the tokens of all ranks together, under ZeRO-3 and tensor parallelism.

    prediction: a Prediction of the tokens at which they cross; one without a number draws nothing.
    """
    at = crossing(model, ranks, layout)
    tokens = np.geomspace(at / 64, at * 64, 25).round().astype(int)
    both = [compare(model, ranks, 1, int(number), layout) for number in tokens]
    level = both[0].zero3_bytes
    fig, ax = _titled(
        f"From {at:,.0f} tokens per step on, tensor parallelism sends more than ZeRO-3\n"
        f"{model.parameters / 1e9:.3g} billion parameters, width {model.shape.width}, on {ranks} GPUs, {layout}",
        height=4.6,
    )
    ax.plot(tokens, [b.zero3_bytes for b in both], marker="", color=figures.COLORS["blue"], label="ZeRO-3:\nweights")
    ax.plot(
        tokens,
        [b.tp_bytes for b in both],
        "--",
        marker="",
        color=figures.COLORS["vermillion"],
        label="tensor parallel:\nactivations",
    )
    ax.plot([at], [level], "o", markersize=11, markerfacecolor="none", color=figures.COLORS["black"], label="_crossing")
    ax.set(xscale="log", yscale="log", xlabel="tokens per step, all ranks together", ylabel="sent per rank and step")
    figures.set_unit(ax.yaxis, "B")
    figures.set_unit(ax.xaxis, "")
    figures.label_lines(ax, gap=2.6)
    words = f"{at:,.0f} tokens: {at / model.shape.width:.1f} times the width"
    ax.annotate(words, (at, level), xytext=(12, -18), textcoords="offset points", va="center")
    figures.mark_prediction(ax, predicted(prediction), level)
    return fig


def _stacked(
    bars: Mapping[str, Mapping[str, float]],
    xlabel: str,
    unit: str,
    title: str,
    pale: Collection[str] = (),
    limit: float | None = None,
) -> tuple[Figure, Axes]:
    """Horizontal bars, the first on top, each with its sum at its end; a legend of the parts below."""
    if not bars:
        raise ValueError("there is nothing to draw: no strategy is possible")
    fig, ax = _titled(title, height=1.9 + 0.34 * len(bars))
    names, ends = list(bars), np.zeros(len(bars))
    legend = []
    for part in (part for part in COLORS if any(sizes.get(part) for sizes in bars.values())):
        sizes = np.array([bars[name].get(part, 0.0) for name in names])
        color = figures.COLORS[COLORS[part]]
        drawn = ax.barh(names, sizes, left=ends, color=color, height=0.7)
        for bar, name in zip(drawn, names, strict=True):
            bar.set_alpha(0.35 if name in pale else 1.0)
        ends += sizes
        legend.append(Patch(color=color, label=part))
    longest = ends.max() if limit is None else min(ends.max(), limit)
    ground = {"facecolor": figures.PAPER, "edgecolor": "none", "pad": 1}
    for y, end in enumerate(ends):
        inside = min(end, longest)
        text = _short(end, unit) + (" →" if end > longest else "")
        look: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small", "bbox": ground}
        ax.annotate(text, (inside, y), xytext=(5, 0), annotation_clip=False, **look)
    ax.set(xlabel=xlabel, xlim=(0, 1.14 * longest))
    if limit is not None:
        ax.set_xlim(0, max(1.14 * longest, 1.14 * limit / FARTHEST))
    figures.set_unit(ax.xaxis, unit)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    fig.legend(handles=legend, ncols=min(len(legend), 6), loc="outside lower left", fontsize="small")
    return fig, ax


def _titled(title: str, height: float) -> tuple[Figure, Axes]:
    """A figure whose title begins at its left edge, and is broken where it ends."""
    width = 8.4
    lines = "\n".join(textwrap.fill(line, int(10.5 * width)) for line in title.splitlines())
    fig, ax = figures.new(width=width, height=height)
    fig.suptitle(lines, x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])
    return fig, ax


def _short(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / GB:,.0f} GB" if value >= 100 * GB else f"{value / GB:.3g} GB"
    return f"{1e3 * value:,.0f} ms" if value >= 0.1 else f"{1e3 * value:.3g} ms"


def _setting(plan: Plan) -> str:
    training, cluster = plan.training, plan.cluster
    return (
        f"{training.model.parameters / 1e9:.3g} billion parameters, {training.batch} × {training.length} tokens per "
        f"GPU{', checkpointed' * training.checkpoint}, {cluster.gpus} {cluster.name}, {training.layout}"
    )
