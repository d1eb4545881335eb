"""Draw the measurements of lab 06; each function takes a table of records (see study.py)."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import LogLocator

from labs_helpers.collectives.cost_model import Costs, cost, crossover
from labs_helpers.collectives.race.native_settings import DEFAULT
from labs_helpers.collectives.race.records import NATIVE, costs_of, latest
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, predicted, recorded_on
from labs_helpers.draw.roles import INK, color, marker
from labs_helpers.draw.words import binary_bytes

BEST = "native, best setting"
PLAIN = "native, default"
CURVES = Curves({
    "naive": ("naive", "X"), "ring": 1, "recursive_doubling": (4, "^"), "recursive_halving": (4, "^"),
    "rabenseifner": 2, "pairwise": 1, "binomial": 2, "hierarchical": (7, "v"), "shared_memory": 0,
    "auto": ("ours", "*"), PLAIN: 5, BEST: ("limit", "p"),
}, markersize=4.5, linewidth=1.6)  # fmt: skip
SLOW = 8  # times native's best; slower points are not drawn
TITLES = {"allreduce": "All-reduce", "alltoall": "All-to-all", "reduce_scatter": "Reduce-scatter",
          "allgather": "All-gather", "broadcast": "Broadcast"}  # fmt: skip


@beside_yours("collectives")
def draw_race(rows, function: str = "allreduce", title: str | None = None):
    """Draw each algorithm's time over that of native's best setting against the size, one panel per rank count; below 1
    is faster.

    Both axes are logarithmic; points above SLOW times are left out. rows: DataFrame from study.load. Names are right of
    the last panel. ValueError without such records.
    """
    race = latest(rows, "race", function=function)
    counts = sorted(map(int, race["ranks"].unique()))
    said = title or f"{TITLES[function]}: time over that of native with its best setting"
    names = [f"{count} ranks" for count in counts]
    fig, axes = figures.panels(
        f"{said}\n{recorded_on(rows).removeprefix(', ')}".rstrip(),
        names,
        max(9, 3 + 2.9 * len(counts)),
        4.6,
        sharey=True,
    )
    least = 1.0
    for ax, ranks in zip(axes, counts, strict=True):
        of_count = race[race["ranks"] == ranks]
        native = of_count[of_count["algorithm"] == NATIVE].groupby("bytes")["median_us"].min()
        for name, curve in _curves(of_count):
            if name != BEST:
                ratio, low, high = (
                    curve[column].to_numpy() / native.loc[curve["bytes"]].to_numpy()
                    for column in ("median_us", "p20_us", "p80_us")
                )
                near = ratio <= SLOW  # a name goes to the last drawn point
                least = min(least, ratio.min())
                CURVES.plot(ax, name, curve["bytes"][near], ratio[near], low[near], high[near])
        ax.axhline(1, color=INK, linewidth=1.2, marker="")
        _sizes(ax, race["bytes"], apart=256)
    axes[0].set(yscale="log", ylabel="times native's best", ylim=(0.9 * least, SLOW))
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if 0.9 * least <= tick <= SLOW]
    axes[0].set_yticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes[0].minorticks_off()
    figures.label_lines(axes[-1])
    return fig


@beside_yours("collectives")
def draw_bandwidth(rows, function: str = "allreduce", ranks: int = 8, title: str | None = None):
    """Draw bus bandwidth against size: the least that each link carries, whatever the number of ranks."""
    race = latest(rows, "race", function=function, ranks=ranks)
    said = title or f"{TITLES[function]}, {ranks} ranks: bus bandwidth"
    fig, ax = figures.new(f"{said}\n{recorded_on(rows).removeprefix(', ')}".rstrip(), width=8.4)
    for name, curve in _curves(race):
        CURVES.plot(ax, name, curve["bytes"], 1e9 * curve["busbw_GBps"])
    _sizes(ax, race["bytes"])
    ax.set(ylabel="busbw", ylim=(0, None))
    figures.set_unit(ax.yaxis, "B/s")
    figures.label_lines(ax)
    return fig


@beside_yours("collectives")
def draw_crossover(
    rows,
    ranks: int = 8,
    function: str = "allreduce",
    algorithms: tuple[str, str] = ("recursive_doubling", "ring"),
    costs: Costs | None = None,
    prediction=None,
    title: str | None = None,
):
    """Draw the measured (points) and predicted (dashed) time of two algorithms against size, and where each pair
    crosses.

    algorithms: the one with fewer messages first. costs: of a fit, by default to the same records' ping-pong.
    prediction: a Prediction of the crossing in bytes; without a number nothing is drawn.
    """
    costs = costs or costs_of(rows, ranks)
    race = latest(rows, "race", function=function, ranks=ranks)
    said = title or f"{TITLES[function]}, {ranks} ranks: predicted and measured"
    fig, ax = figures.new(f"{said}\n{recorded_on(rows).removeprefix(', ')}".rstrip(), width=8.4)
    smooth = np.geomspace(race["bytes"].min(), race["bytes"].max(), 24)  # mark_prediction examines every piece
    measured = {}
    for name in algorithms:
        curve = race[race["algorithm"] == name]
        measured[name] = curve.set_index("bytes")["median_us"] / 1e6
        ax.plot(curve["bytes"], measured[name], CURVES.marker(name), color=CURVES.color(name), label="_points")
        expected_times = [cost(function, name, ranks, size, costs) for size in smooth]
        ax.plot(smooth, expected_times, "--", marker="", color=CURVES.color(name), label=name)
    ax.set(yscale="log", ylabel="time")
    figures.set_unit(ax.yaxis, "s")
    _sizes(ax, race["bytes"])
    figures.label_lines(ax)
    expected = crossover(function, *algorithms, ranks, costs)
    if expected:
        seconds = cost(function, algorithms[0], ranks, expected, costs)
        _mark(ax, expected, seconds, f"predicted: {binary_bytes(expected)}", below=True)
    if found := measured_crossover(*(measured[name] for name in algorithms)):
        _mark(ax, *found, f"measured: {binary_bytes(found[0])}", below=False)
    if value := predicted(prediction):
        figures.mark_prediction(ax, value, cost(function, algorithms[0], ranks, value, costs))
    return fig


@beside_yours("collectives")
def draw_ping_pong(rows, ranks: int = 8, title: str | None = None):
    """Draw half a round trip against size, measured and as α + nβ: one pair of ranks alone, and all pairs at the
    same time."""
    fig, ax = figures.new(f"{title or 'A message of n bytes takes α + nβ'}{recorded_on(rows)}", width=8.4)
    for together, label in ((False, "one pair"), (True, "all pairs")):
        played = latest(rows, "ping_pong", ranks=ranks, together=together)
        costs = costs_of(rows, ranks, together)
        sizes, look = played["bytes"], {"color": color(int(together))}
        ax.plot(sizes, played["median_us"] / 1e6, marker(int(together)), label="_points", **look)
        smooth = np.geomspace(sizes.min(), sizes.max(), 100)
        text = f"{label}:\nα = {1e6 * costs.alpha:.2g} µs\n1/β = {1e-9 / costs.beta:.2g} GB/s"
        ax.plot(smooth, costs.alpha + smooth * costs.beta, marker="", label=text, **look)
    ax.set(yscale="log", ylabel="half a round trip", ylim=(None, 4e-6 * played["median_us"].max()))  # for the names
    figures.set_unit(ax.yaxis, "s")
    _sizes(ax, sizes)
    figures.label_lines(ax, gap=4.2)
    return fig


def measured_crossover(few_messages, few_bytes) -> tuple[float, float] | None:
    """Return (bytes, seconds) from which on the second of two series, indexed by bytes, stays faster; else None.

    Between two sizes both count as straight lines in the logarithms.
    """
    sizes = sorted(set(few_messages.index) & set(few_bytes.index))
    ahead = [float(np.log(few_bytes[size] / few_messages[size])) for size in sizes]
    slower = [i for i, lead in enumerate(ahead) if lead > 0]
    if not slower or slower[-1] + 1 == len(sizes):
        return None
    i = slower[-1]
    part = ahead[i] / (ahead[i] - ahead[i + 1])
    pairs = (sizes[i], sizes[i + 1]), (few_messages[sizes[i]], few_messages[sizes[i + 1]])
    return tuple(float(low ** (1 - part) * high**part) for low, high in pairs)


def _curves(race):
    """Return (name, its rows by size) in the order of `CURVES`, native last: its default, and its fastest setting."""
    ours, native = race[race["algorithm"] != NATIVE], race[race["algorithm"] == NATIVE]
    named = set(ours["algorithm"])
    order = [*(name for name in CURVES if name in named), *sorted(named - set(CURVES))]
    curves = [(name, ours[ours["algorithm"] == name]) for name in order]
    plain = native[native["setting"] == DEFAULT]
    best = native.loc[native.groupby(["ranks", "bytes"])["median_us"].idxmin()]
    curves.append((PLAIN, plain))
    if set(native["setting"]) != {DEFAULT}:
        curves.append((BEST, best))
    return [(name, curve) for name, curve in curves if len(curve)]


def _mark(ax, x: float, y: float, text: str, below: bool) -> None:
    """Draw a ring around a crossing, with its name where rising curves leave room: below right, or above left."""
    ax.plot([x], [y], "o", markersize=11, markerfacecolor="none", color=color("formula"), label="_crossing")
    side, align = (1, "left") if below else (-1, "right")
    ax.annotate(text, (x, y), xytext=(14 * side, -18 * side), textcoords="offset points", ha=align, va="center")


def _sizes(ax, sizes, apart: int = 16) -> None:
    ax.set(xscale="log", xlabel="bytes")
    ax.xaxis.set_major_locator(LogLocator(base=apart, numticks=12))
    ax.xaxis.set_major_formatter(lambda size, _: binary_bytes(size))
    ax.minorticks_off()
    ax.set_xlim(min(sizes) / 1.6, max(sizes) * 1.6)
