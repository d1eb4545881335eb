"""The drawings of lab 02 that are not measurements of time: strips, tiles, reuse, order."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.curves import level, predicted, tick_each
from labs_helpers.draw.roles import INK, PAPER, color


def draw_strips(M: int, N: int, K: int, block_m: int, block_n: int, block_k: int, tile: tuple[int, int]):
    """A, B and D as a matrix product is drawn, B above D: the strips that one tile of D takes, in steps along K.

    tile: (tile row, tile column) of D. The steps are numbered in the order in which they are loaded.
    """
    fig, ax = figures.new("One tile of D takes a strip of A and a strip of B", 6.6, 5.4)
    gap, (i, j) = 0.12 * K, tile
    left, top = K + gap, K + gap  # of D; A stands left of it, B above it
    for name, x, y, width, height in (("A", 0, top, K, M), ("B", left, 0, N, K), ("D", left, top, N, M)):
        draw_box(ax, (x, y), width, height, edge=INK, linewidth=1.2)
        ax.text(x + width / 2, y - 0.02 * K, name, ha="center", va="bottom", fontsize="large")
    steps = range(-(-K // block_k))
    for step in steps:
        ground = (color("all"), 0.3 + 0.6 * step / max(len(steps) - 1, 1))
        along_a, along_b = (step * block_k, top + i * block_m), (left + j * block_n, step * block_k)
        draw_box(ax, along_a, block_k, block_m, ground, str(step), edge=PAPER, linewidth=1)
        draw_box(ax, along_b, block_n, block_k, ground, str(step), edge=PAPER, linewidth=1)
    here = left + j * block_n, top + i * block_m
    draw_box(ax, here, block_n, block_m, color("one"), f"tile\n{tile}")
    ax.annotate("K, in steps", (K, top + M * 1.06), (0, top + M * 1.06), va="center", arrowprops={"arrowstyle": "->"})
    ax.set(xlim=(-0.05 * K, left + N * 1.05), ylim=(top + M * 1.12, -0.12 * K), aspect="equal")
    ax.axis("off")
    return fig


def draw_tiles(writer: np.ndarray, grid: tuple[int, int]):
    """A matrix whose tiles carry their program's (i, j) and its place in the order in which a GPU starts them.

    writer: int (M, N), as `Tally.writer`, the programs counted as the interpreter runs them, last axis fastest; −1
    where nothing was written is left blank. grid: programs along both axes. The darker, the later.
    """
    title = "A GPU starts them down the rows of tiles first"
    fig, ax = figures.new(title, width=6.4, height=0.6 + 5.6 * writer.shape[0] / writer.shape[1])
    i, j = writer // grid[1], writer % grid[1]
    place = np.where(writer < 0, np.nan, i + grid[0] * j)
    ax.imshow(place, cmap="Blues", vmin=-0.5 * grid[0] * grid[1], vmax=2 * grid[0] * grid[1], interpolation="nearest")
    for program in np.unique(writer[writer >= 0]):
        rows, columns = np.nonzero(writer == program)
        where = columns.mean(), rows.mean()
        ax.text(*where, f"{int(place[rows[0], columns[0]])}", ha="center", va="bottom", fontsize="large")
        ax.text(*where, f"({program // grid[1]}, {program % grid[1]})", ha="center", va="top", fontsize="small")
    edges = [(rows, "h") for rows in range(grid[0])] + [(columns, "v") for columns in range(grid[1])]
    for number, way in edges[1:]:
        line = ax.axhline if way == "h" else ax.axvline
        line(number * writer.shape[way == "v"] / grid[way == "v"] - 0.5, color=PAPER, linewidth=2)
    ax.grid(False)
    ax.set(xlabel="column", ylabel="row")
    return fig


def draw_reuse(n: int, blocks, counted, itemsize: int, prediction=None):
    """Counted bytes of A and B against the tile's edge, on the line that the formula gives.

    blocks: tile edges BLOCK_M = BLOCK_N; counted: bytes loaded with each. prediction: one for the last block, in
    kB, or None.
    """
    fig, ax = figures.new(f"A larger tile loads less: A and B of {n}×{n}")
    fine = np.geomspace(min(blocks), max(blocks), 50)
    formula = 2 * n * n * itemsize * n / fine / 1e3
    ax.plot(fine, formula, marker="", color=color("reference"), label="2·n²·(n / BLOCK)")
    ax.plot(blocks, np.array(counted) / 1e3, linestyle="none", color=color("measured"), label="counted")
    ax.set(yscale="log", ylabel="kB of A and B loaded")
    tick_each(ax, blocks, xlabel="BLOCK_M = BLOCK_N")
    ax.set_yticks([count / 1e3 for count in counted], [f"{count / 1e3:.0f}" for count in counted])
    ax.minorticks_off()
    ax.legend(loc="lower left")
    figures.mark_prediction(ax, blocks[-1], prediction)
    return fig


def draw_orders(orders: dict, tiles_m: int, tiles_n: int, wave: int):
    """When each tile is computed, a panel an order: dark tiles come first, the outlined ones together in wave 0.

    orders: name → sequence of (tile row, tile column). The panels say how many strips the first wave takes.
    """
    title = f"{wave} programs that run together take fewest strips as a square"
    fig, axes = figures.panels(title, orders, 7.2, 4.4)
    for ax, (name, order) in zip(axes, orders.items(), strict=True):
        when = np.full((tiles_m, tiles_n), np.nan)
        for pid, (i, j) in enumerate(order):
            when[int(i), int(j)] = pid
        image = ax.imshow(when, cmap="viridis")
        first = [(int(i), int(j)) for i, j in list(order)[:wave]]
        for i, j in first:
            draw_box(ax, (j - 0.5, i - 0.5), 1, 1, edge=color("group of columns"), linewidth=1.5)
        rows, columns = len({i for i, _ in first}), len({j for _, j in first})
        ax.set(title=f"{name}:\n{rows} of A + {columns} of B", xlabel="tile column", ylabel="tile row")
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    key = fig.colorbar(image, ax=axes, shrink=0.6, aspect=16)
    key.set_ticks([0, tiles_m * tiles_n - 1], labels=["first", "last"])
    return fig


def draw_misses(groups, misses, by_rows: int, prediction=None):
    """Misses of the simulated cache against GROUP_M, with row order as the level to beat."""
    best = int(np.argmin(misses))
    fig, ax = figures.new(f"GROUP_M = {groups[best]} fetches {misses[best]} strips, row order {by_rows} (simulated)")
    ax.plot(groups, misses, marker="o")
    level(ax, by_rows, "row order", role="theirs", style=":")
    ax.set(ylabel="strips fetched", ylim=(0, 1.15 * max(*misses, by_rows, predicted(prediction) or 0)))
    tick_each(ax, groups, xlabel="GROUP_M")
    figures.mark_prediction(ax, groups[best], prediction)
    return fig
