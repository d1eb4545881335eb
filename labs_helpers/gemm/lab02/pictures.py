"""The drawings of lab 02 that are not measurements of time: tiles, reuse, order."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures


def draw_tiles(writer: np.ndarray, title: str = "Which program writes which element"):
    """A matrix coloured by the program that wrote each element, with the programs' numbers.

    writer: int (M, N), as `Tally.writer`; −1 where nothing was written is left blank.
    """
    fig, ax = figures.new(title, width=6.4, height=0.6 + 5.6 * writer.shape[0] / writer.shape[1])
    ax.imshow(np.where(writer < 0, np.nan, writer % 7), cmap="Pastel1", vmin=0, vmax=8, interpolation="nearest")
    for program in np.unique(writer[writer >= 0]):
        rows, columns = np.nonzero(writer == program)
        ax.text(columns.mean(), rows.mean(), f"{program}", ha="center", va="center")
    ax.grid(False)
    ax.set(xlabel="column", ylabel="row")
    return fig


def draw_reuse(n: int, blocks, counted, itemsize: int, prediction=None):
    """Counted bytes of A and B against the tile's edge, on the line that the formula gives.

    blocks: tile edges BLOCK_M = BLOCK_N; counted: bytes loaded with each. prediction: one for the last block, in
    KB, or None.
    """
    fig, ax = figures.new(f"A larger tile loads less: A and B of {n}×{n}")
    fine = np.geomspace(min(blocks), max(blocks), 50)
    ax.plot(
        fine, 2 * n * n * itemsize * n / fine / 1e3, marker="", color=figures.COLORS["sky"], label="2·n²·(n / BLOCK)"
    )
    ax.plot(blocks, np.array(counted) / 1e3, linestyle="none", color=figures.COLORS["blue"], label="counted")
    ax.set(xscale="log", yscale="log", xlabel="BLOCK_M = BLOCK_N", ylabel="KB of A and B loaded")
    ax.set_xticks(blocks, [str(b) for b in blocks])
    ax.set_yticks([count / 1e3 for count in counted], [f"{count / 1e3:.0f}" for count in counted])
    ax.minorticks_off()
    ax.legend(loc="lower left")
    if prediction is not None:
        figures.mark_prediction(ax, blocks[-1], prediction.value)
    return fig


def draw_orders(orders: dict, tiles_m: int, tiles_n: int, wave: int):
    """When each tile is computed, a panel an order: dark tiles come first, the outlined ones together in wave 0.

    orders: name → sequence of (tile row, tile column).
    """
    fig, axes = figures.new(
        "When each tile is computed (outlined: the first that run together)",
        width=7.2,
        height=4.2,
        ncols=len(orders),
        squeeze=False,
    )
    for ax, (name, order) in zip(axes[0], orders.items(), strict=True):
        when = np.full((tiles_m, tiles_n), np.nan)
        for pid, (i, j) in enumerate(order):
            when[int(i), int(j)] = pid
        image = ax.imshow(when, cmap="viridis")
        for i, j in list(order)[:wave]:
            ax.add_patch(_outline(int(i), int(j)))
        ax.set(title=name, xlabel="tile column", ylabel="tile row", xticks=[], yticks=[])
        ax.grid(False)
    key = fig.colorbar(image, ax=axes, shrink=0.6, aspect=16)
    key.set_ticks([0, tiles_m * tiles_n - 1], labels=["first", "last"])
    return fig


def draw_misses(groups, misses, by_rows: int, prediction=None):
    """Misses of the simulated cache against GROUP_M, with row order as the level to beat."""
    fig, ax = figures.new("Strips fetched from DRAM, simulated")
    ax.plot(groups, misses, marker="o")
    ax.axhline(by_rows, linestyle=":", color=figures.COLORS["vermillion"])
    predicted = prediction.value if prediction is not None and (prediction.value or 0) > 0 else None
    ax.set(xlabel="GROUP_M", ylabel="misses", xscale="log", ylim=(0, 1.15 * max(*misses, by_rows, predicted or 0)))
    ax.set_xticks(groups, [str(g) for g in groups])
    ax.minorticks_off()
    # In the middle of the line: the ends of the curve are on it.
    ax.annotate(
        "row by row",
        (0.5, by_rows),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=figures.COLORS["vermillion"],
    )
    figures.mark_prediction(ax, groups[int(np.argmin(misses))], predicted)
    return fig


def _outline(i: int, j: int):
    from matplotlib.patches import Rectangle

    return Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=figures.COLORS["vermillion"], linewidth=1.5)
