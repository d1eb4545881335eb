"""Draw lab 02's figures that show no times: strips, tiles, bytes loaded, orders of tiles."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.curves import level, predicted, tick_each
from labs_helpers.draw.roles import INK, PAPER, color


def draw_strips(M: int, N: int, K: int, block_m: int, block_n: int, block_k: int, tile: tuple[int, int]):
    """Draw A left of D and B above D, with the strips of A and B that one tile of D needs.

    M, N, K and the blocks are in elements. tile: (tile row, tile column) of D. Numbers on the strips give the order in
    which the kernel loads them.
    """
    fig, ax = figures.new("One tile of D needs a strip of A and a strip of B", 6.6, 5.4)
    gap, (i, j) = 0.12 * K, tile
    left, top = K + gap, K + gap  # the corner of D
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
    """Draw the tiles of a matrix with their program ids and the order in which a GPU starts the programs.

    writer: int (M, N), as in `Tally.writer`. It holds for each element the number of the program that wrote it, in the
    interpreter's order (last axis fastest), or −1 if none did. Such elements stay blank. grid: number of programs along
    both axes. Later programs are darker.
    """
    title = "A GPU starts the programs column by column"
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
    """Draw the bytes of A and B that a kernel loads against the tile size, beside the formula.

    A and B are n×n with `itemsize` bytes per element. blocks: tile edges, BLOCK_M = BLOCK_N. counted: bytes loaded with
    each of them. prediction: a Prediction for the last block in kB, or None.
    """
    fig, ax = figures.new(f"Twice the tile's edge loads half the bytes (n = {n})")
    fine = np.geomspace(min(blocks), max(blocks), 50)
    formula = 2 * n * n * itemsize * n / fine / 1e3
    ax.plot(fine, formula, marker="", color=color("reference"), label=f"2·n²·(n / BLOCK) · {itemsize} bytes")
    ax.plot(blocks, np.array(counted) / 1e3, linestyle="none", color=color("measured"), label="counted")
    ax.set(yscale="log", ylabel="kB of A and B loaded")
    tick_each(ax, blocks, xlabel="BLOCK_M = BLOCK_N")
    ax.set_yticks([count / 1e3 for count in counted], [f"{count / 1e3:.0f}" for count in counted])
    ax.minorticks_off()
    ax.legend(loc="lower left")
    figures.mark_prediction(ax, blocks[-1], prediction)
    return fig


def draw_orders(orders: dict, tiles_m: int, tiles_n: int, wave: int):
    """Draw when each tile is computed, with one panel per order, and outline the tiles of the first wave.

    orders: name → sequence of (tile row, tile column). wave: how many programs run at the same time. The title of each
    panel counts the strips that the first wave needs.
    """
    fig, axes = figures.panels(f"{wave} programs need the fewest strips when they form a square", orders, 7.2, 4.6)
    figures.write_below(fig, f"outlined: the first {wave} programs")
    for ax, (name, order) in zip(axes, orders.items(), strict=True):
        when = np.full((tiles_m, tiles_n), np.nan)
        for pid, (i, j) in enumerate(order):
            when[int(i), int(j)] = pid
        image = ax.imshow(when, cmap="viridis")
        first = [(int(i), int(j)) for i, j in list(order)[:wave]]
        for i, j in first:
            draw_box(ax, (j - 0.5, i - 0.5), 1, 1, edge=color("group of columns"), linewidth=1.5)
        rows, columns = len({i for i, _ in first}), len({j for _, j in first})
        strips = f"{rows} strip{'s' * (rows > 1)} of A, {columns} of B"
        ax.set(title=f"{name}:\n{strips}", xlabel="tile column", ylabel="tile row")
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    key = fig.colorbar(image, ax=axes, shrink=0.6, aspect=16)
    key.set_ticks([0, tiles_m * tiles_n - 1], labels=["first", "last"])
    return fig


def draw_misses(groups, misses, by_rows: int, prediction=None):
    """Draw the misses of the simulated cache against GROUP_M, with a line at the misses of row order."""
    best = int(np.argmin(misses))
    fig, ax = figures.new(f"GROUP_M = {groups[best]} fetches {misses[best]} strips, row order {by_rows}")
    ax.plot(groups, misses, marker="o")
    level(ax, by_rows, "row order", role="theirs", style=":")
    ax.set(ylabel="strips fetched (simulated)", ylim=(0, 1.15 * max(*misses, by_rows, predicted(prediction) or 0)))
    tick_each(ax, groups, xlabel="GROUP_M")
    figures.mark_prediction(ax, groups[best], prediction)
    return fig
