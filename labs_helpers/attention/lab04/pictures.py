"""Figures of lab 04 that need no timings: costs, the running softmax, the map of tiles, tiles per program."""

from __future__ import annotations

import numpy as np

from labs_helpers.attention.tile_map import MASKED, SKIPPED, WHOLE, tile_states
from labs_helpers.draw import figures
from labs_helpers.draw.curves import level, tick_each
from labs_helpers.draw.roles import PAPER, color, colormap, marker

NEEDLESS = 3  # a tile that a program visits although no query sees any of its keys
KINDS = {  # kind of tile → (label, role)
    SKIPPED: ("skipped", "skipped tile"), WHOLE: ("computed (counted)", "whole tile"),
    MASKED: ("on the diagonal (masked)", "masked tile"), NEEDLESS: ("computed for nothing", "needless tile"),
}  # fmt: skip


def draw_costs(lengths, costs, room: float, prediction=None):
    """Plot bytes moved and extra bytes at the peak of plain and tiled attention against the length, on log axes.

    costs: one (plain_bytes, plain_extra, tiled_bytes, tiled_extra) per length. room: bytes of memory, drawn as a line
    in the second panel. prediction: a Prediction of the length at which plain attention fills it, or None.
    """
    plain_bytes, plain_extra, tiled_bytes, tiled_extra = zip(*costs, strict=True)
    title = "Plain attention's memory grows with L², tiled with L"
    fig, axes = figures.panels(title, ("bytes moved", "extra bytes at the peak"), 10.5)
    for ax, plain, tiled in ((axes[0], plain_bytes, tiled_bytes), (axes[1], plain_extra, tiled_extra)):
        ax.plot(lengths, plain, label="plain", color=color("theirs"), marker="s")
        ax.plot(lengths, tiled, label="tiled", color=color("ours"), marker="o")
        ax.set_yscale("log")
        tick_each(ax, lengths, base=2, xlabel="sequence length")
        figures.set_unit(ax.yaxis, "B")
    level(axes[1], room, f"{room / 1e9:.0f} GB", role="aside", style=":")
    for ax in axes:
        figures.label_lines(ax)
    figures.mark_prediction(axes[1], prediction, room)
    return fig


def draw_running(row, BLOCK: int):
    """Plot one row of scores in blocks: the elements with the running maximum, and the running sum below.

    row: 1-D array. Dotted lines mark the blocks in which the maximum grows. There the sum is rescaled, so it falls or
    grows less.
    """
    row = np.asarray(row, dtype=float)
    edges = np.arange(0, len(row), BLOCK)
    blocks = [row[start : start + BLOCK] for start in edges]
    m = np.maximum.accumulate([block.max() for block in blocks])
    sums = [np.exp(row[: start + BLOCK] - top).sum() for start, top in zip(edges, m, strict=True)]
    grows = np.flatnonzero(np.diff(m, prepend=-np.inf) > 0)
    title = "When a row's maximum grows, its sum is rescaled"
    fig, (above, below) = figures.new(title, height=5, nrows=2, sharex=True)
    above.plot(row, ".", color=color("all"), markersize=3)
    above.step([*edges, len(row)], [*m, m[-1]], where="post", marker="", color=color(0))
    above.set_ylabel("scores, maximum m")
    below.step([*edges, len(row)], [*sums, sums[-1]], where="post", marker="", color=color(1))
    below.set(ylabel="sum l", xlabel="element of the row", xticks=edges, ylim=(0, None))
    for ax in (above, below):
        for start in edges[grows]:
            ax.axvline(start, color=color("aside"), linestyle=":", linewidth=1.2, zorder=0)
    return fig


def draw_tile_map(maps: dict, BLOCK_M: int, BLOCK_N: int):
    """Draw the tiles of the score matrix that a kernel visits, one panel per case.

    maps: title → (visits, seen). visits: how often each program loads each key, int (query tiles, Lk), from
    `course.visits`. seen: whether a query sees a key, bool (Lq, Lk).
    """
    fig, axes = figures.panels(None, [""] * len(maps), 9.6, 4.4)
    drawn, computed, of_all = set(), 0, 0
    for ax, (title, (visits, seen)) in zip(axes, maps.items(), strict=True):
        states = tile_states(seen, BLOCK_M, BLOCK_N)
        visited = np.stack([visits[:, j : j + BLOCK_N].any(1) for j in range(0, seen.shape[1], BLOCK_N)], 1)
        shown = np.where(visited, np.where(states == SKIPPED, NEEDLESS, states), SKIPPED)
        drawn |= {KINDS[kind][0] for kind in np.unique(shown)}
        computed, of_all = computed + int(visited.sum()), of_all + visited.size
        colors = colormap(*(role for _, role in KINDS.values()))
        ax.pcolormesh(shown, cmap=colors, vmin=-0.5, vmax=3.5, edgecolor=PAPER, linewidth=1.5)
        ax.set_title(f"{title}\n{visited.sum()} of {visited.size} tiles", fontsize="medium")
        ax.set(xlabel="key tile", xticks=[], yticks=[], aspect="equal", anchor="NW")
        ax.invert_yaxis()
        ax.grid(False)
    axes[0].set_ylabel("query tile")
    rest = "some are needless" if KINDS[NEEDLESS][0] in drawn else "most need no mask"
    figures.set_title(fig, f"{computed} of {of_all} tiles are computed; {rest}")
    figures.legend_below(fig, dict(KINDS.values()), only=drawn)
    return fig


def draw_balance(walks: dict, BLOCK_N: int):
    """Plot the number of key tiles that each program visits, one curve per kernel.

    walks: name → visits, how often each program loads each key, int (programs, Lk), from `course.visits`.
    """
    fig, ax = figures.new(width=8.4, height=3.8)
    spans = {}
    for name, role in zip(walks, (1, 2, 0), strict=False):
        visits = walks[name]
        tiles = visits[:, ::BLOCK_N].sum(1)
        spans[name] = f"{tiles.min()}–{tiles.max()}" if tiles.min() < tiles.max() else f"{tiles.max()}"
        ax.plot(tiles, label=f"{name}, {len(tiles)} programs", color=color(role), marker=marker(role))
    ax.set(xlabel="program", ylabel="key tiles", ylim=(0, None))
    figures.set_title(fig, "Tiles per program: " + ", ".join(f"{span} in {name}" for name, span in spans.items()), ax)
    figures.label_lines(ax)
    return fig
