"""Figures of lab 09: flat memory cut into shards, bytes held, and bytes sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labs_helpers.data_parallel.study.tables import PARTS
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars, mark_bar, predict_bar
from labs_helpers.draw.curves import predicted
from labs_helpers.draw.lanes import Span, draw_spans, finish_rows, write_in
from labs_helpers.draw.roles import INK, color, rank_color

WITH_ALL_REDUCE, THREE = "ZeRO-1 with all-reduce", "ZeRO-3"


def draw_shards(
    numels: Sequence[int], names: Sequence[str], pieces: Sequence[Sequence[tuple[int, int, int]]], shard: int
):
    """Draw flat memory with a box per parameter, and below it the pieces of each rank and the padding.

    pieces: (number, begin, end) of each piece, by rank. shard: elements of one shard."""
    ranks, total = len(pieces), sum(numels)
    fig, ax = figures.new(f"Shard boundaries cut parameters: {total} elements, {ranks} shards", height=2.7)
    starts = [sum(numels[:i]) for i in range(len(numels))]
    parameters = [
        Span(start, start + n, color("cell"), name) for start, n, name in zip(starts, numels, names, strict=True)
    ]
    held = [
        Span(starts[number] + begin, starts[number] + end, rank_color(rank), f"{begin}:{end}")
        for rank, own in enumerate(pieces)
        for number, begin, end in own
    ]
    for y, spans in enumerate((parameters, held)):
        draw_spans(ax, y, spans, 0.6, {color("cell"): INK})
    if padding := ranks * shard - total:
        ax.barh(1, padding, left=total, color=color("cell"), edgecolor=INK, hatch="///", height=0.6)
    for rank in range(ranks):
        ax.text((rank + 0.5) * shard, 1.62, f"rank {rank}", ha="center", va="center")
        ax.axvline((rank + 1) * shard, color=INK, linestyle="--", linewidth=1)
    finish_rows(ax, ["parameters", "pieces"])
    ax.set(xlim=(-0.3, ranks * shard + 0.3), ylim=(1.95, -0.5), xlabel="element of flat memory (hatched: padding)")
    ax.grid(False)
    # Write each name into the largest piece of its parameter, where no shard boundary crosses it.
    largest: dict[str, Span] = {}
    for number, begin, end in sorted((piece for own in pieces for piece in own), key=lambda piece: piece[2] - piece[1]):
        largest[names[number]] = Span(starts[number] + begin, starts[number] + end, color("cell"), names[number])
    write_in(ax, enumerate((largest.values(), held)), size=8)
    return fig


def draw_held(counted: Mapping[str, Mapping[str, float]], formula: Mapping[str, float], prediction=None):
    """Draw the bytes that one rank holds after the backward pass, a bar per stage, with the formula as a diamond.

    prediction: ZeRO-2's bytes over DDP's; without a number, nothing is drawn for it."""
    worst = max(abs(sum(parts.values()) / formula[stage] - 1) for stage, parts in counted.items())
    title = f"The counted bytes match the formula within {max(worst, 1e-3):.1%}"
    fig, ax = figures.new(title, 8.2, 1.8 + 0.5 * len(counted))
    bars = {stage: {part: parts[part] for part in PARTS} for stage, parts in counted.items()}
    xlabel = "bytes held by one rank after the backward pass"
    draw_bars(ax, bars, {part: part for part in PARTS}, unit="B", xlabel=xlabel)
    for y, stage in enumerate(counted):
        mark_bar(ax, formula[stage], y)
        if stage == "ZeRO-2" and (value := predicted(prediction)):
            predict_bar(ax, value * formula["DDP"], y)
    figures.legend_below(fig, {part: part for part in PARTS} | {"formula": ("formula", "D")})
    return fig


def draw_sent(rows: Mapping[str, float], prediction=None):
    """Draw bytes sent per step and rank, relative to DDP, by scheme. prediction: for ZeRO-1 with an all-reduce."""
    times = {name: sent / rows["DDP"] for name, sent in rows.items()}
    fig, ax = figures.new(f"ZeRO-3 sends {times[THREE]:.3g} times as many bytes as DDP", height=1.6 + 0.45 * len(rows))
    roles = {name: "right" if factor <= 1 else "wrong" for name, factor in times.items()}
    texts = {name: f"{factor:.3g}" for name, factor in times.items()}
    draw_bars(ax, times, roles, texts, xlabel="bytes sent, relative to DDP", room=1.12)
    predict_bar(ax, predicted(prediction), list(rows).index(WITH_ALL_REDUCE))
    return fig
