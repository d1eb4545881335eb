"""What one configuration of the GEMM means for a chip: traffic, programs per SM, waves."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.ticker import MaxNLocator

from labs_helpers.draw import figures
from labs_helpers.draw.roles import color
from labs_helpers.draw.words import short as short_number
from labs_helpers.gemm.lab03.pictures.space import programs_per_sm, short
from labs_helpers.gemm.time_model import SHARED, Tiling

SHOWN = 40  # waves that have a bar of their own


def draw_tile(config, size: int, resources: Callable, waves: Callable, chip):
    """The bytes that all tiles of a size³ product in float16 load, what the programs on one SM take of it, and how full
    each wave is. resources, waves: the functions of exercises 1 and 2. chip: a Datasheet.

    The registers are the accumulators' alone; a compiled kernel needs more, and fewer programs may fit.
    """
    shared, accumulators, verdict = resources(config, chip)
    registers = min(accumulators, 255)
    per_sm = programs_per_sm(shared, registers, config.num_warps, chip) if verdict != "too large" else 0
    tiling = Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K)
    _, terms = tiling.terms((size,) * 3, chip.multiprocessors)
    loaded = terms[SHARED.index("load")]
    moved = short_number(loaded)
    title = f"{short(config)}: {verdict}" if not per_sm else f"{short(config)}: {moved}B loaded, {per_sm} per SM"
    if per_sm:
        tiles, count, last = waves(size, size, config, per_sm * chip.multiprocessors)
        title += f", {count} wave{'s' * (count != 1)}"
    fig, (traffic, takes, full) = figures.panels(title, ["traffic", "of an SM", "waves"], 8.2, 3.2)
    traffic.bar(["loaded", "A + B"], [loaded, 2 * 2 * size**2], color=[color("ours"), color("floor")])
    figures.set_unit(traffic.yaxis, "B")
    threads = 32 * config.num_warps
    shares = {
        "shared\nmemory": max(per_sm, 1) * shared / chip.shared_bytes_per_sm,
        "registers": max(per_sm, 1) * threads * registers / chip.registers_per_sm,
        "warps": max(per_sm, 1) * config.num_warps / 64,
    }
    bars = [color("wrong" if share > 1 else "ours") for share in shares.values()]
    takes.bar(list(shares), list(shares.values()), color=bars)
    takes.axhline(1, color=color("limit"), linestyle="--", linewidth=1)
    takes.yaxis.set_major_formatter("{x:.0%}")
    takes.tick_params(axis="x", labelsize="small")
    if per_sm:
        fills = [1.0] * (count - 1) + [last]
        full.bar(range(max(0, count - SHOWN) + 1, count + 1), fills[-SHOWN:], color=color("ours"))
        full.set(xlabel="wave", ylim=(0, 1.05))
        full.yaxis.set_major_formatter("{x:.0%}")
        full.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    else:
        figures.say("no program fits", full)
    at_once = f"{tiles:,} tiles, {per_sm * chip.multiprocessors:,} at once" if per_sm else "no tile fits"
    below = f"{size:,}³ in float16, {at_once}, on {chip.multiprocessors} SMs; registers: accumulators alone"
    figures.write_below(fig, below)
    return fig
