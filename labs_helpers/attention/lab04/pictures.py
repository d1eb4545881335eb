"""The drawings of lab 04 that are not measurements of time: costs, the running softmax, the map of tiles."""

from __future__ import annotations

import numpy as np

from labs_helpers.attention.tile_map import MASKED, SKIPPED, WHOLE, tile_states
from labs_helpers.draw import figures

NEEDLESS = 3  # a tile that is visited although no query sees anything of it


def draw_costs(lengths, costs, room: float, prediction=None):
    """Bytes moved and extra bytes at the peak against the length, plain and tiled, both axes logarithmic.

    costs: one (plain_bytes, plain_extra, tiled_bytes, tiled_extra) a length. room: bytes of memory, a line in the
    second panel. prediction: one for the length at which plain attention fills it, or None.
    """
    plain_bytes, plain_extra, tiled_bytes, tiled_extra = zip(*costs, strict=True)
    fig, axes = figures.new(
        "Plain attention needs memory with the square of the length, tiled attention with the length",
        width=10.5,
        ncols=2,
    )
    for ax, title, plain, tiled in (
        (axes[0], "bytes moved", plain_bytes, tiled_bytes),
        (axes[1], "extra bytes at the peak", plain_extra, tiled_extra),
    ):
        ax.plot(lengths, plain, label="plain", color=figures.COLORS["vermillion"], marker="s")
        ax.plot(lengths, tiled, label="tiled", color=figures.COLORS["blue"], marker="o")
        ax.set(xlabel="sequence length", yscale="log")
        ax.set_title(title, fontsize="medium")
        ax.set_xscale("log", base=2)
        ax.set_xticks(lengths, [f"{n // 1024}k" if n >= 1024 else str(n) for n in lengths])
        ax.minorticks_off()
        figures.set_unit(ax.yaxis, "B")
    axes[1].axhline(room, linestyle=":", color="gray", label="_room")
    axes[1].annotate(f"{room / 1e9:.0f} GB", (lengths[0], room), xytext=(0, 4), textcoords="offset points")
    for ax in axes:
        figures.label_lines(ax)
    predicted = prediction.value if prediction is not None and (prediction.value or 0) > 0 else None
    figures.mark_prediction(axes[1], predicted, room)
    return fig


def draw_running(row, BLOCK: int):
    """One row of scores in blocks: the elements with the running maximum, and the running sum below.

    row: 1-D array. Where the maximum grows the sum is rescaled, so it falls, or grows less.
    """
    row = np.asarray(row, dtype=float)
    edges = np.arange(0, len(row), BLOCK)
    blocks = [row[start : start + BLOCK] for start in edges]
    m = np.maximum.accumulate([block.max() for block in blocks])
    sums = [np.exp(row[: start + BLOCK] - top).sum() for start, top in zip(edges, m, strict=True)]
    grows = np.flatnonzero(np.diff(m, prepend=-np.inf) > 0)
    fig, (above, below) = figures.new(
        "One row in blocks: when the maximum grows, the sum is rescaled", nrows=2, height=5, sharex=True
    )
    above.plot(row, ".", color=figures.COLORS["sky"], markersize=3)
    above.step([*edges, len(row)], [*m, m[-1]], where="post", marker="", color=figures.COLORS["blue"])
    above.set_ylabel("scores, maximum m")
    below.step([*edges, len(row)], [*sums, sums[-1]], where="post", marker="", color=figures.COLORS["vermillion"])
    below.set(ylabel="sum l", xlabel="element of the row", xticks=edges, ylim=(0, None))
    for ax in (above, below):
        for start in edges[grows]:
            ax.axvline(start, color="gray", linestyle=":", linewidth=1.2, zorder=0)
    return fig


def draw_tile_map(maps: dict, BLOCK_M: int, BLOCK_N: int):
    """Which tiles of the score matrix a kernel visits, a panel a case.

    maps: title → (visits, seen): how often each program loads each key, int (query tiles, Lk), as `course.visits`
    counts it, and whether a query sees a key, bool (Lq, Lk).
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    kinds = {
        SKIPPED: ("skipped", figures.RULE),
        WHOLE: ("computed (counted)", figures.COLORS["blue"]),
        MASKED: ("on the diagonal (masked)", figures.COLORS["orange"]),
        NEEDLESS: ("computed for nothing", figures.COLORS["vermillion"]),
    }
    fig, axes = figures.new(width=9.6, height=4.4, ncols=len(maps), squeeze=False)
    drawn, computed, of_all = set(), 0, 0
    for ax, (title, (visits, seen)) in zip(axes[0], maps.items(), strict=True):
        states = tile_states(seen, BLOCK_M, BLOCK_N)
        visited = np.stack([visits[:, j : j + BLOCK_N].any(1) for j in range(0, seen.shape[1], BLOCK_N)], 1)
        shown = np.where(visited, np.where(states == SKIPPED, NEEDLESS, states), SKIPPED)
        drawn |= set(np.unique(shown))
        computed, of_all = computed + int(visited.sum()), of_all + visited.size
        colors = ListedColormap([color for _, color in kinds.values()])
        ax.pcolormesh(shown, cmap=colors, vmin=-0.5, vmax=3.5, edgecolor=figures.PAPER, linewidth=1.5)
        ax.set_title(f"{title}\n{visited.sum()} of {visited.size} tiles", fontsize="medium")
        ax.set(xlabel="tile of keys", xticks=[], yticks=[], aspect="equal", anchor="NW")
        ax.invert_yaxis()
        ax.grid(False)
    axes[0][0].set_ylabel("tile of queries")
    title = f"Of {of_all} tiles {computed} are computed, as counted; most of them need no mask"
    if NEEDLESS in drawn:
        title = f"Of {of_all} tiles {computed} are computed, some of them for nothing"
    fig.suptitle(title, x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])
    fig.legend(
        handles=[Patch(color=color, label=text) for kind, (text, color) in kinds.items() if kind in drawn],
        loc="outside lower center",
        ncols=len(drawn),
    )
    return fig


def draw_balance(walks: dict, BLOCK_N: int):
    """How many tiles of keys each program visits, a curve each way.

    walks: name → visits, how often each program loads each key, int (programs, Lk), as `course.visits` counts it.
    """
    fig, ax = figures.new(width=8.4, height=3.8)
    looks = zip(walks, (("vermillion", "s"), ("green", "D"), ("blue", "o")), strict=False)
    spans = {}
    for name, (color, marker) in looks:
        visits = walks[name]
        tiles = visits[:, ::BLOCK_N].sum(1)
        spans[name] = f"{tiles.min()} to {tiles.max()}" if tiles.min() < tiles.max() else f"{tiles.max()} each"
        ax.plot(tiles, label=f"{name}, {len(tiles)} programs", color=figures.COLORS[color], marker=marker)
    ax.set(xlabel="program", ylabel="tiles of keys", ylim=(0, None))
    ax.set_title("Tiles per program: " + ", ".join(f"{name} {span}" for name, span in spans.items()))
    figures.label_lines(ax)
    return fig
