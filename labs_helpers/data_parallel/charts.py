"""The figures of accounting and plans: memory by strategy, predicted steps, and ZeRO-3 against tensor parallelism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from labs_helpers.data_parallel.planner.accounting import DEFAULT, GB, STAGES, Part, states, total
from labs_helpers.data_parallel.planner.model_size import Model
from labs_helpers.data_parallel.planner.plan import Plan
from labs_helpers.data_parallel.planner.zero3_against_tp import compare, crossing
from labs_helpers.data_parallel.stacked_bars import FARTHEST, stacked_bars, titled
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted


def draw_memory(memory: Mapping[str, Sequence[Part]], capacity: float | None = None, title: str = "") -> Figure:
    """A bar per strategy of what one rank holds, stacked part by part, with the sum at its end.

    memory: name → parts, as `states` or `step_memory` give them. capacity: a GPU's bytes, drawn as a line.
    ValueError without a strategy.
    """
    bars = {name: {part.name: part.bytes for part in parts} for name, parts in memory.items()}
    limit = None if capacity is None else FARTHEST * capacity
    fig, ax = stacked_bars(bars, "memory of one GPU", "B", title or "What one GPU holds", limit=limit)
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
    return stacked_bars(bars, f"predicted step{note}", "s", f"{choice}\n{_setting(plan)}", pale)[0]


def draw_crossing(model: Model, ranks: int, prediction: Any = None, layout: str = DEFAULT) -> Figure:
    """Bytes that a rank sends in a step against the tokens of all ranks together, under ZeRO-3 and tensor parallelism.

    prediction: a Prediction of the tokens at which they cross; one without a number draws nothing.
    """
    at = crossing(model, ranks, layout)
    tokens = np.geomspace(at / 64, at * 64, 7).round().astype(int)  # straight lines in the logarithms
    both = [compare(model, ranks, 1, int(number), layout) for number in tokens]
    level = both[0].zero3_bytes
    fig, ax = titled(
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


def _setting(plan: Plan) -> str:
    training, cluster = plan.training, plan.cluster
    return (
        f"{training.model.parameters / 1e9:.3g} billion parameters, {training.batch} × {training.length} tokens per "
        f"GPU{', checkpointed' * training.checkpoint}, {cluster.gpus} {cluster.name}, {training.layout}"
    )
