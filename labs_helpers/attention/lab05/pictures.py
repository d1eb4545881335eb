"""Figures of lab 05: the walks of the programs, the writers of dQ, bytes moved, and the time of the backward pass."""

from __future__ import annotations

import numpy as np

from labs_helpers.attention.charts import OURS, chosen, draw_time_ratios
from labs_helpers.attention.tile_map import tile_states, visible
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.boxes import draw_arrow
from labs_helpers.draw.curves import predicted, recorded_on
from labs_helpers.draw.roles import color, colormap, pale
from labs_helpers.draw.words import length_text

STATES = ("skipped tile", "whole tile", "masked tile")
SHADES = colormap(*STATES, share=0.4)


def draw_walks(by_queries: np.ndarray, by_keys: np.ndarray, BLOCK: int):
    """Draw the counted walk of each program over the tiles of the score matrix, for dQ and for dK and dV.

    by_queries: how often program i of dQ loads each key, (query tiles, Lk). by_keys: how often program j of dK and
    dV loads each query, (key tiles, Lq). Both are causal, with tiles of BLOCK × BLOCK.
    """
    Lq, Lk = by_keys.shape[1], by_queries.shape[1]
    states = tile_states(visible(Lq, Lk), BLOCK, BLOCK)
    title = "dQ programs walk along rows, dK and dV programs down columns"
    across, down = ((loads.reshape(loads.shape[0], -1, BLOCK) > 0).any(2) for loads in (by_queries, by_keys))
    fig, axes = figures.panels(title, ("dQ: one program per row of tiles", "dK, dV: one program per column"), 9.6, 4.3)
    for ax, walks in zip(axes, (across, down), strict=True):
        ax.imshow(states, cmap=SHADES, vmin=0, vmax=2)
        for program, walk in enumerate(walks):
            tiles = np.flatnonzero(walk)
            if tiles.size:
                ends = (tiles[0] - 0.35, program), (tiles[-1] + 0.35, program)
                start, end = (end[::-1] for end in ends) if ax is axes[1] else ends
                draw_arrow(ax, start, end, color("ours"))
        ax.set(xlabel="key tile", ylabel="query tile", xticks=range(states.shape[1]), yticks=range(states.shape[0]))
        ax.grid(False)
    names = "no query sees a key: skipped", "every query sees every key", "on the diagonal: masked"
    figures.legend_below(fig, dict(zip(names, STATES, strict=True)), share=0.4)
    return fig


def draw_writers(writers, prediction=None):
    """Draw how many programs add to each tile of dQ in the one kernel; a separate dQ kernel has one writer per tile.

    writers: one number per query tile. prediction: a Prediction for the last tile, or None.
    """
    fig, ax = figures.new(f"Up to {max(writers)} programs add to one tile of dQ", height=3.8)
    tiles = np.arange(len(writers))
    ax.bar(tiles, writers, width=0.7, color=pale("all", 0.5), label="one kernel, counted")
    ax.axhline(1, linestyle=":", color=color("theirs"), label="separate kernel for dQ")
    figures.legend_below(fig)
    most = max(*writers, predicted(prediction) or 0)
    ax.set(xlabel="query tile", ylabel="programs", xticks=tiles, ylim=(0, 1.2 * most))
    ax.grid(False, axis="x")
    figures.mark_prediction(ax, tiles[-1], prediction)
    return fig


def draw_traffic(moved: dict):
    """Draw the counted bytes that each version of the backward pass loads and stores. moved: name → bytes."""
    most = max(moved, key=moved.get)
    title = f"{most.capitalize()} move{'' if most.endswith('s') else 's'} the most: {moved[most] / 1e3:.0f} kB"
    fig, ax = figures.new(title, 8.4, 3.2)
    texts = {name: f"{nbytes / 1e3:.0f} kB" for name, nbytes in moved.items()}
    draw_bars(ax, moved, "reference", texts, unit="B", xlabel="bytes loaded and stored", room=1.15)
    return fig


@beside_yours("attention")
def draw_ratio(rows, prediction=None):
    """Plot backward time over forward time against the length, for causal attention with heads of 128 in float16.

    rows: DataFrame from study.load. prediction: a Prediction for flash_attention at the last length, or None.
    """
    forward, backward = (
        chosen(rows, "speed", direction=direction, causal=True, D=128) for direction in ("forward", "backward")
    )
    fig, ax = figures.new(width=8.4)
    last, lengths = draw_time_ratios(ax, backward, forward, 2.5, "five products over two")
    finding = "Backward time over forward time against the length"
    if OURS in last:
        finding = f"At {length_text(lengths[-1])}, our backward pass takes {last[OURS]:.1f} times our forward pass"
    figures.set_title(fig, finding, ax)
    figures.write_below(fig, f"causal, float16, heads of 128{recorded_on(rows)}")
    ax.set(ylabel="backward / forward time", ylim=(0, 1.1 * max(ax.get_ylim()[1], predicted(prediction) or 0)))
    figures.label_lines(ax)
    figures.mark_prediction(ax, lengths[-1], prediction)
    return fig
