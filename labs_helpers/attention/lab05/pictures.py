"""The drawings of lab 05 that are not measurements of time: who walks where, and who adds to dQ."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import ListedColormap

from labs_helpers.attention.tile_map import tile_states, visible
from labs_helpers.draw import figures

SHADES = ListedColormap(["#FAF9F6", "#B7D4E8", "#F3C79B"])  # skipped, whole, masked


def draw_walks(by_queries: np.ndarray, by_keys: np.ndarray, BLOCK: int):
    """The tiles of the score matrix with the walk of each program, as counted: of dQ's, and of dK's and dV's.

    by_queries: how often program i of dQ loads each key, (query tiles, Lk). by_keys: how often program j of dK and
    dV loads each query, (key tiles, Lq). Both causal, tiles BLOCK × BLOCK.
    """
    Lq, Lk = by_keys.shape[1], by_queries.shape[1]
    states = tile_states(visible(Lq, Lk), BLOCK, BLOCK)
    fig, axes = figures.new(
        "The same tiles twice: dQ goes along the rows, dK and dV down the columns", width=9.6, height=4.3, ncols=2
    )
    across, down = ((loads.reshape(loads.shape[0], -1, BLOCK) > 0).any(2) for loads in (by_queries, by_keys))
    for ax, walks, title in (
        (axes[0], across, "dQ: a program a row of tiles"),
        (axes[1], down, "dK, dV: a program a column of tiles"),
    ):
        ax.imshow(states, cmap=SHADES, vmin=0, vmax=2)
        for program, walk in enumerate(walks):
            tiles = np.flatnonzero(walk)
            if tiles.size:
                start, end = (tiles[0] - 0.35, program), (tiles[-1] + 0.35, program)
                if ax is axes[1]:
                    start, end = start[::-1], end[::-1]
                ax.annotate(
                    "",
                    end,
                    start,
                    arrowprops={
                        "arrowstyle": "-|>",
                        "linewidth": 1.6,
                        "color": figures.COLORS["blue"],
                        "shrinkA": 0,
                        "shrinkB": 0,
                    },
                )
        ax.set(
            title=title,
            xlabel="key tile",
            ylabel="query tile",
            xticks=range(states.shape[1]),
            yticks=range(states.shape[0]),
        )
        ax.grid(False)
    names = "no query sees a key: skipped", "every query sees every key", "on the diagonal: masked"
    handles = [_square(color) for color in SHADES.colors]
    fig.legend(handles, names, loc="outside lower center", ncols=3)
    return fig


def draw_writers(writers, prediction=None):
    """How many programs add to each tile of dQ in the one-kernel version, beside the one writer of dQ's own kernel.

    writers: one number a query tile. prediction: one for the last tile, or None.
    """
    fig, ax = figures.new(f"Up to {max(writers)} programs add to one tile of dQ", height=3.8)
    tiles = np.arange(len(writers))
    ax.bar(tiles, writers, width=0.7, color="#B7D4E8", label="one kernel, counted")
    ax.axhline(1, linestyle=":", color=figures.COLORS["vermillion"], label="dQ in a kernel of its own")
    fig.legend(loc="outside lower center", ncols=2)
    value = prediction.value if prediction is not None else None
    ax.set(xlabel="query tile", ylabel="programs", xticks=tiles, ylim=(0, 1.2 * max(*writers, value or 0)))
    ax.grid(False, axis="x")
    figures.mark_prediction(ax, tiles[-1], value)
    return fig


def _square(color: str):
    from matplotlib.patches import Patch

    return Patch(facecolor=color, edgecolor=figures.RULE)


def draw_traffic(moved: dict):
    """Bytes that each way of the backward pass loads and stores, as counted.

    moved: name → bytes.
    """
    most = max(moved, key=moved.get)
    title = f"{most.capitalize()} move{'' if most.endswith('s') else 's'} the most: {moved[most] / 1e6:.2f} MB"
    fig, ax = figures.new(title, width=8.4, height=3.2)
    names = list(moved)[::-1]
    ax.barh(names, [moved[name] for name in names], color=figures.COLORS["sky"], height=0.6)
    for place, name in enumerate(names):
        ax.annotate(
            f"{moved[name] / 1e6:.2f} MB", (moved[name], place), xytext=(4, 0), textcoords="offset points", va="center"
        )
    ax.set(xlabel="bytes loaded and stored", xlim=(0, 1.15 * max(moved.values())))
    figures.set_unit(ax.xaxis, "B")
    ax.grid(False, axis="y")
    return fig
