"""The drawings of lab 00: a GPU, its waves, and the sectors that a warp fetches."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_arrow, draw_box
from labs_helpers.draw.roles import INK, PAPER, RULE, color, colormap, text_on
from labs_helpers.measure.datasheet import DATASHEET, KIB, MIB, lookup
from labs_helpers.measure.machine import this_machine


def chip() -> str:
    """Return the GPU to draw: this machine's if its datasheet is known, else the H200."""
    return next((name for name, sheet in DATASHEET.items() if sheet is lookup(this_machine().name)), "H200")


def draw_gpu(name: str, latencies: dict[str, float] | None = None):
    """Draw a GPU from its datasheet: its SMs (one enlarged), L2 and DRAM, with sizes, rates and latencies.

    latencies: 'L1', 'L2', 'DRAM' → ns of one load from there, if they were measured.
    """
    sheet = DATASHEET[name]
    unit, warp = ("CU", "wavefront") if sheet.architecture.startswith("gfx") else ("SM", "warp")
    takes = {place: [f"{ns:.0f} ns per load"] for place, ns in (latencies or {}).items()}
    finding = f"{sheet.multiprocessors} {unit}s share one L2 cache and one DRAM"
    if latencies:
        ratio = latencies["DRAM"] / latencies["L1"]
        finding = f"a load from DRAM takes {ratio:.0f} times as long as from L1"
    fig, ax = figures.new(f"{name}: {finding}", height=5.6)
    ax.set(xlim=(0, 100), ylim=(0, 80))
    ax.axis("off")
    columns = round((sheet.multiprocessors * 40 / 44) ** 0.5)
    rows = -(-sheet.multiprocessors // columns)
    for i in range(sheet.multiprocessors):
        x, y = 2 + 40 / columns * (i % columns), 74 - 44 / rows * (i // columns + 1)
        draw_box(ax, (x, y), 40 / columns * 0.82, 44 / rows * 0.82, color("one" if i == columns - 1 else "all"))
    ax.text(2, 76, f"{sheet.multiprocessors} {unit}s", fontweight="bold", va="bottom")
    draw_box(ax, (50, 29), 48, 45, PAPER, edge=color("one"), linewidth=2)
    ax.text(50, 76, f"one {unit}", fontweight="bold", va="bottom")
    ax.text(98, 76.4, f"rates: of all {unit}s together", va="bottom", ha="right", fontsize=9)
    for y, corner in ((74, 74), (74 - 44 / rows, 29)):
        ax.plot([42, 50], [y, corner], color=color("one"), linewidth=1, marker="")
    threads = f"{warp}s: {sheet.warp_size} threads each, in step"
    _box(ax, 52, 62.5, 44, 9.5, "threads", f"{threads}\na program is one of them or more")
    _box(ax, 52, 51.5, 44, 8, "registers", f"registers: {sheet.registers_per_sm * 4 // KIB} KiB")
    _box(ax, 52, 41, 16, 8, "arithmetic", f"float32\n{sheet.fp32_flops / 1e12:,.3g} TFLOP/s", size=9)
    products = f"tensor cores: float16\nproducts, {sheet.fp16_flops / 1e12:,.0f} TFLOP/s"
    _box(ax, 69, 41, 27, 8, "arithmetic", products, size=9)
    shared = [f"shared memory: {sheet.shared_bytes_per_sm // KIB} KiB", *(f"L1: {t}" for t in takes.get("L1", []))]
    _box(ax, 52, 31, 44, 8, "shared memory", "; ".join(shared), size=9.5)
    cache = [f"L2 cache, for all {unit}s: {sheet.l2_bytes // MIB} MiB", *takes.get("L2", [])]
    _box(ax, 2, 15.5, 96, 8, "cache", "; ".join(cache))
    _box(ax, 2, 1, 96, 8, "DRAM", "; ".join(["DRAM: where tensors live", *takes.get("DRAM", [])]))
    for x, low, high in ((22, 23.5, 29.5), (74, 23.5, 29), (22, 9, 15.5)):
        draw_arrow(ax, (x, low), (x, high), INK, "<->", linewidth=1)
    ax.text(24, 12.2, f"{sheet.bandwidth / 1e12:.3g} TB/s", va="center", fontweight="bold")
    return fig


def draw_waves(programs: int, multiprocessors: int):
    """Draw which SM runs which program in which wave, if an SM runs one at a time and all take equally long."""
    waves = -(-programs // multiprocessors)
    fig, ax = figures.new(_waves_title(programs, multiprocessors, waves), height=0.9 + 0.26 * multiprocessors)
    for program in range(programs):
        wave, sm = divmod(program, multiprocessors)
        ground = color("forward" if wave % 2 else "backward")
        draw_box(ax, (wave + 0.03, sm - 0.42), 0.94, 0.84, ground, f"{program}", size=9, ink=text_on(ground))
    idle = waves * multiprocessors - programs
    if idle:
        middle = waves - 0.5, multiprocessors - idle / 2 - 0.5
        ax.text(*middle, f"{idle} SMs idle", ha="center", va="center", style="italic")
    ax.set(xlim=(0, waves), ylim=(multiprocessors - 0.5, -0.5), xlabel="time, in programs", ylabel="SM")
    ax.set_xticks(range(waves + 1))
    ax.set_yticks(range(multiprocessors))
    ax.grid(False)
    return fig


def _waves_title(programs: int, multiprocessors: int, waves: int) -> str:
    last = programs - (waves - 1) * multiprocessors
    used = f"the last one uses {last} of them" if last < multiprocessors else "all of them full"
    return f"{programs} programs on {multiprocessors} SMs: {waves} waves, {used}"


def draw_warp(strides, itemsize: int, sector: int = 32, lanes: int = 32):
    """Draw the sectors that one warp fetches from a row-major matrix, along a row and down a column.

    strides: the matrix's, in elements. itemsize and sector: in bytes.
    """
    sectors = [len(np.unique(np.arange(lanes) * step * itemsize // sector)) for step in (strides[1], strides[0])]
    more = f"{sectors[1] / sectors[0]:.3g} times as many bytes"
    fig, axes = figures.new(f"Down a column a warp fetches {more}", height=4.0, ncols=2)
    width = min(strides[0], 2 * lanes)
    for ax, title, step in zip(axes, ("along a row", "down a column"), (strides[1], strides[0]), strict=True):
        elements = np.arange(lanes) * step
        fetched = np.unique(elements * itemsize // sector)
        picture = np.zeros((lanes, width))
        per_sector = sector // itemsize
        every = (fetched[:, None] * per_sector + np.arange(per_sector)).ravel()
        picture[every // strides[0], every % strides[0]] = 1
        picture[elements // strides[0], elements % strides[0]] = 2
        shades = colormap("paper", "all", "wrong")
        ax.imshow(picture, cmap=shades, vmin=0, vmax=2, aspect="auto", interpolation="nearest")
        used, moved = lanes * itemsize, len(fetched) * sector
        said = f"{title}: {len(fetched)} sectors\n{moved:,} bytes fetched, {used} used"
        ax.set(title=said, xlabel="column", xticks=range(0, width + 1, per_sector), yticks=range(0, lanes, 8))
        ax.set_xticks(np.arange(0, width, per_sector) - 0.5, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.tick_params(axis="x", labelsize=9)
        ax.grid(False)
        ax.grid(which="minor", axis="x", color=RULE)
        ax.title.set_fontsize(11)
    axes[0].set_ylabel("row")
    return fig


def _box(ax, x, y, width, height, role, text, size=10.5) -> None:
    draw_box(ax, (x, y), width, height, color(role), text, size=size, ink=color("paper"))
