"""Figures of lab 00's measurements: strides, bytes in flight, waves, and five operations on a roofline."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.curves import tick_each, upright
from labs_helpers.draw.roles import INK, color, marker
from labs_helpers.draw.roofline import plot_roofline
from labs_helpers.first_kernels.lab00.in_flight import VECTOR
from labs_helpers.first_kernels.lab00.study import share_by_lines, useful_shares
from labs_helpers.measure.datasheet import KIB
from labs_helpers.measure.roofs import Roofs


def draw_strides(tables: dict, prediction=None, lines=(32, 64)):
    """Draw the useful bandwidth of a strided copy, in percent of stride 1: measured, and predicted from whole lines.

    tables: machine → records of `measure_strides` (or rows of a DataFrame). prediction: for stride 8, in percent.
    lines: lengths in bytes.
    """
    machine, records = list(tables.items())[:2][-1]  # the recorded one, if there is one
    shares = useful_shares(records)
    kept = f"{shares[8]:.0f}% of its bandwidth" if 8 in shares else "less of its bandwidth"
    fig, ax = figures.new(f"Every 8th element: {machine.removesuffix(', recorded')} keeps {kept}")
    itemsize, strides = _column(tables, "itemsize")[0], _column(tables, "stride")
    for line, style in zip(lines, (":", "--"), strict=False):
        look = {"linestyle": style, "marker": "", "color": INK, "linewidth": 1.2, "label": f"lines of {line} bytes"}
        ax.plot(strides, [100 * share_by_lines(s, itemsize, line) for s in strides], **look)
    for role, (machine, records) in enumerate(tables.items()):
        look = {"color": color(role), "marker": marker(role), "label": machine}
        ax.plot(*zip(*useful_shares(records).items(), strict=True), **look)
    ax.set(ylabel="useful bandwidth, % of stride 1", ylim=(0, 105))
    tick_each(ax, strides, xlabel="stride of the copy, in elements (float32)")
    figures.label_lines(ax)
    figures.mark_prediction(ax, 8, prediction)
    return fig


def _column(tables: dict, key: str) -> list[int]:
    return [int(record[key]) for record in next(iter(tables.values()))]


def draw_roofline(tables: dict, predictions: dict | None = None):
    """Draw the operations on each machine's roofline. A hollow marker shows the student's predicted time.

    tables: machine → records of `measure_operations` (or rows of a DataFrame). predictions: operation → prediction
    in ms, for the first machine.
    """
    first, records = next(iter(tables.items()))
    slow = sum(r["bound"] == "memory" for r in records)
    fig, ax = figures.new(f"{first}: memory limits {slow} of {len(records)} operations", height=5.0)
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
    if guessed:  # one label for all points
        figures.label_points(ax, {"your predictions": guessed[0]}, style="italic")
    return fig


def draw_in_flight(machine: str, records: list[dict], latency_ns: float, prediction=None):
    """Draw read bandwidth against the bytes in flight per SM, and the limit that Little's law sets.

    records: from `measure_in_flight`. latency_ns: of a single load from DRAM. prediction: warps, with one load each.
    """
    multiprocessors, best = records[0]["multiprocessors"], max(_bandwidth(r) for r in records)
    # The fewest bytes in flight that reach 95% of the best bandwidth, with any number of stages.
    enough = min(r["bytes_in_flight"] for r in records if _bandwidth(r) > 0.95 * best)
    fig, ax = figures.new(f"{machine}: {enough / KIB:.0f} KiB in flight per SM keep memory busy", height=4.6)
    reach = [r["bytes_in_flight"] for r in records]
    law = np.geomspace(min(reach), max(reach), 40)
    allowed = np.minimum(best, law * multiprocessors / (latency_ns * 1e-9))
    look = {"color": INK, "linewidth": 1.2, "linestyle": "--", "marker": "", "label": "Little's law: at most"}
    ax.plot(law / KIB, allowed, **look)
    names = {1: "1 load per thread", 3: "2 loads per thread", 5: "4 loads per thread"}
    for stages, name in names.items():
        points = [(r["bytes_in_flight"] / KIB, _bandwidth(r)) for r in records if r["stages"] == stages]
        ax.plot(*zip(*points, strict=True), label=name)
    ax.set_ylim(0, 1.08 * best)
    tick_each(ax, [2**k for k in range(-1, 8)], xlabel="KiB in flight per SM")
    figures.set_unit(ax.yaxis, "B/s")
    top = ax.secondary_xaxis("top", functions=(lambda x: x * KIB / (32 * VECTOR), lambda w: w * 32 * VECTOR / KIB))
    top.set_xticks(warps := [1, 2, 4, 8, 16, 32, 64], [str(w) for w in warps])
    top.minorticks_off()
    top.set_xlabel("warps on an SM, one load of 16 bytes per thread", fontsize=10)
    figures.label_lines(ax)
    if prediction is not None and prediction.value:
        figures.mark_prediction(ax, prediction.value * 32 * VECTOR / KIB, best)
    return fig


def _bandwidth(record: dict) -> float:
    return record["bytes"] / (record["median_ms"] * 1e-3)


def draw_wave_times(machine: str, records: list[dict]):
    """Draw the time of a grid against its number of programs, for computing programs and for waiting ones."""
    multiprocessors, room = records[0]["multiprocessors"], 16
    fig, ax = figures.new(width=7.6)
    for does, label in (("computing", "they compute"), ("waiting", "they wait for memory")):
        points = [(r["programs"] / multiprocessors, 1e3 * r["median_ms"]) for r in records if r["does"] == does]
        if does == "waiting" and records[0].get("l2") != "warm":
            continue  # with a cold cache, only the first wave would wait
        ax.plot(*zip(*points, strict=True), label=label, marker="")
    for wave in (room, 2 * room):
        upright(ax, wave, f"{wave}: full", style=":")
    ax.set(xlabel="programs per SM, of which 16 fit at a time", ylabel=f"time on {machine}, µs", xlim=(0, None))
    ax.set_ylim(bottom=0)
    more = _one_more(records, "computing", room * multiprocessors)
    ax.set_title(f"A {room + 1}th computing program per SM adds {more:.0%} of a wave", pad=22)
    figures.label_lines(ax)
    return fig


def _one_more(records: list[dict], does: str, full: int) -> float:
    """Return the time that half a program per SM beyond `full` adds to a full wave."""
    times = {r["programs"]: r["median_ms"] for r in records if r["does"] == does}
    following = min(programs for programs in times if programs > full)
    return times[following] / times[full] - 1
