"""Draw the bytes that a step sends and the memory that a rank holds, by layout."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars, mark_bar
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.roles import color
from labs_helpers.tensor_parallel.records import select, variant_of

GROUPS = {"tensor-parallel group, by formula": "ours", "data-parallel group, by formula": "gradients"}
HELD = {"parameter": "parameters", "gradient": "gradients", "optimizer": "AdamW's moments",
        "activation": "peak added by a step"}  # fmt: skip
ROLES = {"parameters": "parameters", "gradients": "gradients", "AdamW's moments": "optimizer",
         "peak added by a step": "activations"}  # fmt: skip


@beside_yours("tensor-parallel")
def draw_bytes(rows: pandas.DataFrame) -> Figure:
    """Draw the bytes that leave a rank per step in each layout.

    Bars show the formula, split into tensor-parallel and data-parallel groups; marks show the counts on all ranks.
    Raises ValueError without such records.
    """
    table = select(rows, "count", overlap=False, placement="inside")
    bars, counted, off = {}, {}, 0.0
    for _, row in table.iterrows():
        name = str(variant_of(row)).replace(" inside", "")
        told = [row["tp_bytes_by_formula"], row["dp_bytes_by_formula"]]
        bars[name] = dict(zip(GROUPS, told, strict=True))
        counted[name] = [sum(pair) for pair in zip(row["tp_bytes_by_rank"], row["dp_bytes_by_rank"], strict=True)]
        off = max(off, *(abs(sent / sum(told) - 1) for sent in counted[name]))
    sums = {name: sum(parts.values()) for name, parts in bars.items()}
    agree = "as the formula says" if off == 0 else f"{off:.1%} off the formula"
    title = f"A rank sends {min(sums.values()) / 1e6:.3g} to {max(sums.values()) / 1e6:.3g} MB per step, {agree}"
    fig, (ax,) = figures.panels(title, [""], 9, 1.8 + 0.38 * len(bars))
    draw_bars(ax, bars, GROUPS, unit="B", xlabel="bytes that leave a rank per step")
    for y, by_rank in enumerate(counted.values()):
        mark_bar(ax, by_rank, y, "|")
    ax.set_ylabel("dp × tp")
    figures.legend_below(fig, GROUPS | {"counted on each rank": ("formula", "|")})
    figures.write_below(fig, f"{_task(table)}{recorded_on(table)}")
    return fig


@beside_yours("tensor-parallel")
def draw_memory(rows: pandas.DataFrame) -> Figure:
    """Draw the bytes that a rank holds, by tp: parameters, gradients, AdamW's moments, and the peak that a step adds.

    All layouts use the same number of ranks and the same global batch. Raises ValueError without such records.
    """
    table = select(rows, "count", overlap=False, placement="inside", scheme="megatron")
    table = table.sort_values(["sequence_parallel", "tp"])
    labels = [f"tp {row['tp']}" + "\nsequence-\nparallel" * row["sequence_parallel"] for _, row in table.iterrows()]
    plain = table[~table["sequence_parallel"]]
    first, last = plain.iloc[0], plain.iloc[-1]
    kept = [sum(row[f"{name}_bytes"] for name in HELD if name != "activation") for row in (first, last)]
    added = last["activation_bytes"] / first["activation_bytes"]
    title = (
        f"tp {last['tp']}: {kept[1] / kept[0]:.2g} times tp {first['tp']}'s state, {added:.2g} times its activations"
    )
    fig, (ax,) = figures.panels(title, [""], 9, 4.6)
    below = pandas.Series(0, index=table.index)
    for name, words in HELD.items():
        held = table[f"{name}_bytes"]
        ax.bar(labels, held, bottom=below, color=color(ROLES[words]), label=words, width=0.62)
        below = below + held
    ax.set(ylabel="bytes on a rank")
    figures.set_unit(ax.yaxis, "B")
    ax.grid(False, axis="x")
    figures.legend_below(fig, ROLES)
    figures.write_below(fig, f"{_task(table)}{recorded_on(table)}")
    return fig


def _task(table: pandas.DataFrame) -> str:
    row = table.iloc[0]
    ranks = int(row["nodes"] * row["ranks_per_node"])
    return f"{ranks} ranks, {row['batch']:.0f} sequences of {row['length']:.0f} tokens in all"
