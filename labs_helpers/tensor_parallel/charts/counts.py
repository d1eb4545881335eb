"""What a step sends and what a rank holds, by layout."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.tensor_parallel.records import select, variant_of
from labs_helpers.transformer.charts.layout import new_figure

GROUPS = {"tp": ("tensor-parallel group", "blue"), "dp": ("data-parallel group", "orange")}
HELD = {
    "parameter": ("parameters", "blue"),
    "gradient": ("gradients", "sky"),
    "optimizer": ("AdamW's moments", "green"),
    "activation": ("most that a step adds", "vermillion"),
}


@beside_yours("tensor-parallel")
def draw_bytes(rows: pandas.DataFrame) -> Figure:
    """Bytes that leave a rank in a step, by layout: by formula as bars, of the tensor-parallel and of the data-parallel
    group, and counted on every rank as marks. ValueError without such records."""
    table = select(rows, "count", overlap=False, placement="inside")
    labels = [str(variant_of(row)).replace(" inside", "") for _, row in table.iterrows()]
    told = table["tp_bytes_by_formula"] + table["dp_bytes_by_formula"]
    counted = [
        [sum(pair) for pair in zip(row["tp_bytes_by_rank"], row["dp_bytes_by_rank"], strict=True)]
        for _, row in table.iterrows()
    ]
    off = max(abs(n / expected - 1) for expected, by_rank in zip(told, counted, strict=True) for n in by_rank)
    agree = "every byte that was counted" if off == 0 else f"what was counted, within {off:.1%}"
    least, most = told.argmin(), told.argmax()
    fig, axes = new_figure(
        f"A rank sends from {told.iloc[least] / 1e6:.3g} MB ({labels[least]}) to {told.iloc[most] / 1e6:.3g} MB "
        f"({labels[most]}) in a step; the formula has {agree}\n{_task(table)}{recorded_on(table)}",
        width=9,
        height=1.8 + 0.38 * len(labels),
        squeeze=False,
    )
    ax, below = axes[0][0], pandas.Series(0, index=table.index)
    for group, (name, color) in GROUPS.items():
        sent = table[f"{group}_bytes_by_formula"]
        ax.barh(labels, sent, left=below, color=figures.COLORS[color], label=f"{name}, by formula", height=0.62)
        below = below + sent
    for y, by_rank in enumerate(counted):
        name = "counted on each rank" if y == 0 else "_counted"
        ax.plot(by_rank, [y] * len(by_rank), "|", color="black", markersize=13, markeredgewidth=2, label=name)
    ax.invert_yaxis()
    ax.set(xlabel="bytes that leave a rank in a step", ylabel="dp × tp", xlim=(0, 1.05 * told.max()))
    figures.set_unit(ax.xaxis, "B")
    ax.grid(False, axis="y")
    fig.legend(loc="outside lower left", ncols=3, fontsize="small", handlelength=1.2)
    return fig


@beside_yours("tensor-parallel")
def draw_memory(rows: pandas.DataFrame) -> Figure:
    """Bytes that a rank holds, by tp: parameters, gradients, AdamW's moments, and the most that a step adds to them.
    All are layouts of one number of ranks, with one batch between them. ValueError without such records."""
    table = select(rows, "count", overlap=False, placement="inside", scheme="megatron")
    table = table.sort_values(["sequence_parallel", "tp"])
    labels = [f"tp {row['tp']}" + "\nsequence-\nparallel" * row["sequence_parallel"] for _, row in table.iterrows()]
    plain = table[~table["sequence_parallel"]]
    first, last = plain.iloc[0], plain.iloc[-1]
    kept = [sum(row[f"{name}_bytes"] for name in HELD if name != "activation") for row in (first, last)]
    added = last["activation_bytes"] / first["activation_bytes"]
    title = f"From tp {first['tp']} to {last['tp']} a rank keeps {kept[1] / kept[0]:.2g} times the bytes between steps"
    title += f", and a step adds {added:.2g} times as many"
    sequence = table[table["sequence_parallel"] & (table["tp"] == last["tp"])]
    if len(sequence):
        ratio = sequence["activation_bytes"].iloc[0] / first["activation_bytes"]
        title += f" ({ratio:.2g} times with sequence parallelism)"
    fig, axes = new_figure(f"{title}\n{_task(table)}{recorded_on(table)}", width=9, height=4.6, squeeze=False)
    ax, below = axes[0][0], pandas.Series(0, index=table.index)
    for name, (words, color) in HELD.items():
        held = table[f"{name}_bytes"]
        ax.bar(labels, held, bottom=below, color=figures.COLORS[color], label=words, width=0.62)
        below = below + held
    ax.set(ylabel="bytes on a rank")
    figures.set_unit(ax.yaxis, "B")
    ax.grid(False, axis="x")
    fig.legend(loc="outside lower left", ncols=4, fontsize="small", handlelength=1.2)
    return fig


def _task(table: pandas.DataFrame) -> str:
    row = table.iloc[0]
    ranks = int(row["nodes"] * row["ranks_per_node"])
    return f"{ranks} ranks, {row['batch']:.0f} sequences of {row['length']:.0f} tokens between them"
