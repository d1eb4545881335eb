"""The drawings of lab 00: a GPU, waves, a warp's sectors, what a stride costs, and the roofline."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from labs_helpers.draw import figures
from labs_helpers.draw.roofline import plot_roofline
from labs_helpers.first_kernels.lab00.study import share_by_lines
from labs_helpers.measure.datasheet import DATASHEET, KB, MB, lookup
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.roofs import Roofs

BLUE, SKY, ORANGE, GREEN = (figures.COLORS[name] for name in ("blue", "sky", "orange", "green"))
VERMILLION, WHITE = figures.COLORS["vermillion"], "#FFFFFF"


def chip() -> str:
    """The GPU that is drawn: this machine's where its datasheet is known, else the H200."""
    return next((name for name, sheet in DATASHEET.items() if sheet is lookup(this_machine().name)), "H200")


def draw_gpu(name: str):
    """A GPU of the datasheet: its SMs, one of them enlarged, L2 and DRAM, with sizes and rates."""
    sheet = DATASHEET[name]
    unit, warp = ("CU", "wavefront") if sheet.architecture.startswith("gfx") else ("SM", "warp")
    fig, ax = figures.new(f"A GPU in one picture: {name}", height=4.9)
    ax.set(xlim=(0, 100), ylim=(0, 68))
    ax.axis("off")
    divisors = [n for n in range(1, sheet.multiprocessors + 1) if sheet.multiprocessors % n == 0]
    columns = min(divisors, key=lambda n: abs(np.log(n * n / (sheet.multiprocessors * 42 / 32))))
    rows = -(-sheet.multiprocessors // columns)
    for i in range(sheet.multiprocessors):
        x, y = 2 + 42 / columns * (i % columns), 62 - 32 / rows * (i // columns + 1)
        color = ORANGE if i == columns - 1 else SKY
        ax.add_patch(Rectangle((x, y), 42 / columns * 0.82, 32 / rows * 0.82, facecolor=color, edgecolor="none"))
    ax.text(2, 64, f"{sheet.multiprocessors} {unit}s", fontweight="bold", va="bottom")
    ax.add_patch(Rectangle((52, 28), 46, 34, facecolor=WHITE, edgecolor=ORANGE, linewidth=2))
    ax.text(52, 64, f"one {unit}", fontweight="bold", va="bottom")
    for y in (62, 28):
        ax.plot([44, 52], [62 if y == 62 else 62 - 32 / rows, y], color=ORANGE, linewidth=1, marker="")
    registers = sheet.registers_per_sm * 4 // KB
    _box(
        ax, 54, 49, 42, 11, BLUE, f"{warp}s: {sheet.warp_size} threads each, in step\na program is one of them or more"
    )
    _box(ax, 54, 39.5, 42, 8, GREEN, f"registers: {registers} KB")
    _box(ax, 54, 30, 42, 8, VERMILLION, f"shared memory: {sheet.shared_bytes_per_sm // KB} KB")
    _box(ax, 2, 15, 96, 8, "#5B6470", f"L2 cache, for all {unit}s: {sheet.l2_bytes // MB} MB")
    _box(ax, 2, 1, 96, 8, "#22252A", "DRAM: where tensors live")
    for x, y in ((23, 28.5), (75, 28)):
        ax.annotate("", (x, y), xytext=(x, 23), arrowprops={"arrowstyle": "<->", "color": figures.INK})
    ax.annotate("", (23, 15), xytext=(23, 9), arrowprops={"arrowstyle": "<->", "color": figures.INK})
    ax.text(25, 12, f"{sheet.bandwidth / 1e12:.3g} TB/s", va="center", fontweight="bold")
    ax.text(98, 12, f"float16 products: {sheet.fp16_flops / 1e12:,.0f} TFLOP/s", va="center", ha="right")
    return fig


def draw_waves(programs: int, multiprocessors: int):
    """Which SM runs which program when, one at a time on each, all equally long."""
    waves = -(-programs // multiprocessors)
    fig, ax = figures.new(
        f"{programs} programs on {multiprocessors} SMs: {waves} waves", height=0.9 + 0.26 * multiprocessors
    )
    for program in range(programs):
        wave, sm = divmod(program, multiprocessors)
        ax.add_patch(Rectangle((wave + 0.03, sm - 0.42), 0.94, 0.84, facecolor=SKY if wave % 2 else BLUE))
        ax.text(
            wave + 0.5, sm, f"{program}", ha="center", va="center", color="black" if wave % 2 else "white", fontsize=9
        )
    idle = waves * multiprocessors - programs
    if idle:
        ax.text(
            waves - 0.5, multiprocessors - idle / 2 - 0.5, f"{idle} SMs idle", ha="center", va="center", style="italic"
        )
    ax.set(xlim=(0, waves), ylim=(multiprocessors - 0.5, -0.5), xlabel="time, in programs", ylabel="SM")
    ax.set_xticks(range(waves + 1))
    ax.set_yticks(range(multiprocessors))
    ax.grid(False)
    return fig


def draw_warp(strides, itemsize: int, sector: int = 32, lanes: int = 32):
    """The sectors that one warp fetches from a row-major matrix, along a row and down a column.

    strides: of the matrix, in elements. itemsize and sector in bytes.
    """
    fig, axes = figures.new("One warp, 32 elements", height=4.0, ncols=2)
    width = min(strides[0], 2 * lanes)
    for ax, title, step in zip(axes, ("along a row", "down a column"), (strides[1], strides[0]), strict=True):
        elements = np.arange(lanes) * step
        fetched = np.unique(elements * itemsize // sector)
        picture = np.zeros((lanes, width))
        per_sector = sector // itemsize
        every = (fetched[:, None] * per_sector + np.arange(per_sector)).ravel()
        picture[every // strides[0], every % strides[0]] = 1
        picture[elements // strides[0], elements % strides[0]] = 2
        ax.imshow(
            picture,
            cmap=ListedColormap([figures.PAPER, SKY, VERMILLION]),
            vmin=0,
            vmax=2,
            aspect="auto",
            interpolation="nearest",
        )
        used, moved = lanes * itemsize, len(fetched) * sector
        ax.set(
            title=f"{title}: {len(fetched)} sectors\n{moved:,} bytes fetched, {used} used",
            xlabel="column",
            xticks=range(0, width + 1, per_sector),
            yticks=range(0, lanes, 8),
        )
        ax.set_xticks(np.arange(0, width, per_sector) - 0.5, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.tick_params(axis="x", labelsize=9)
        ax.grid(False)
        ax.grid(which="minor", axis="x", color=figures.RULE)
        ax.title.set_fontsize(11)
    axes[0].set_ylabel("row")
    return fig


def draw_strides(tables: dict, prediction=None, lines=(32, 64)):
    """Useful bandwidth of a strided copy in percent of stride 1, measured, and what whole lines alone would cost.

    tables: machine → records of `measure_strides` (or rows of a DataFrame). prediction: for stride 8, in percent.
    lines: lengths in bytes.
    """
    fig, ax = figures.new("What a stride costs")
    itemsize, strides = _column(tables, "itemsize")[0], _column(tables, "stride")
    for line, style in zip(lines, (":", "--"), strict=False):
        ax.plot(
            strides,
            [100 * share_by_lines(s, itemsize, line) for s in strides],
            linestyle=style,
            marker="",
            color=figures.INK,
            linewidth=1.2,
            label=f"lines of {line} bytes",
        )
    for (machine, records), color, marker in zip(tables.items(), (BLUE, VERMILLION), "os", strict=False):
        ax.plot(
            [r["stride"] for r in records],
            [100 * records[0]["median_ms"] / r["median_ms"] for r in records],
            color=color,
            marker=marker,
            label=machine,
        )
    ax.set(
        xscale="log",
        xlabel="every how many-th element is copied (float32)",
        ylabel="useful bandwidth, % of stride 1",
        ylim=(0, 105),
    )
    ax.set_xticks(strides, [str(s) for s in strides])
    ax.minorticks_off()
    figures.label_lines(ax)
    if prediction is not None:
        figures.mark_prediction(ax, 8, prediction.value)
    return fig


def _column(tables: dict, key: str) -> list[int]:
    return [int(record[key]) for record in next(iter(tables.values()))]


def draw_roofline(tables: dict, predictions: dict | None = None):
    """The operations on each machine's roofline; hollow: where a predicted time puts an operation.

    tables: machine → records of `measure_operations` (or rows of a DataFrame). predictions: operation → prediction
    in ms, for the first machine.
    """
    fig, ax = figures.new("Five operations under two roofs", height=5.0)
    machines = {}
    for machine, records in tables.items():
        roofs = Roofs(records[0]["roof_bandwidth"], records[0]["roof_flops"], records[0]["dtype"])
        points = {r["name"]: (r["flops"] / r["bytes"], r["flops"] / r["median_ms"] * 1e3) for r in records}
        machines[machine] = roofs, points
    guessed = []
    for record in next(iter(tables.values())) if predictions else ():
        ms = predictions[record["name"]].value
        if ms is not None and ms > 0:
            guessed.append((record["flops"] / record["bytes"], record["flops"] / ms * 1e3))
            figures.mark_prediction(ax, *guessed[-1], text="")
    plot_roofline(machines, ax)
    if guessed:  # one label for all of them
        figures.label_points(ax, {"your predictions": guessed[0]}, style="italic")
    return fig


def _box(ax, x, y, width, height, color, text) -> None:
    ax.add_patch(Rectangle((x, y), width, height, facecolor=color, edgecolor="none"))
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", color="white")
