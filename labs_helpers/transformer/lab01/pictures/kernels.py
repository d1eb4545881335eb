"""Draw the GPU's time by kind of work, and the bytes and FLOPs that counters measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars, write_at_end
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.roles import INK, color, text_on
from labs_helpers.draw.timeline import KIND_COLORS
from labs_helpers.measure.datasheet import lookup
from labs_helpers.measure.kernel_kinds import OTHER
from labs_helpers.measure.trace import Event, Trace, by_kind

SMALL = 0.03  # of the work in each trace: kinds below it are drawn as 'other'


def draw_kinds(traces: Mapping[str, Trace | Iterable[Event]], what: str = "one training step") -> Figure:
    """Draw one bar per trace: the GPU's work by kind (`by_kind`).

    traces: name → a trace or its events, the slowest first. what: what was traced, for the axis. Work that overlaps on
    two streams counts twice. Idle time is left out, because the profiler slows the CPU down and makes it longer.
    ValueError without a trace.
    """
    if not traces:
        raise ValueError("no trace to draw")
    spent = _by_kind(
        {name: list(trace.events if isinstance(trace, Trace) else trace) for name, trace in traces.items()}
    )
    on = [trace.on["machine"] for trace in traces.values() if isinstance(trace, Trace)]
    title = _what_changed(spent) + (f"\n{on[0]} (recorded)" if on else "")
    fig, (ax,) = figures.panels(title, [""], 9, 1.2 + 1.25 * len(spent.columns))
    pieces = spent.cumsum() - spent / 2  # their middles
    right = 1.02 * spent.sum().max() or 1.0
    for kind, ms in spent.iterrows():
        bars = ax.barh(spent.columns, ms, left=pieces.loc[kind] - ms / 2, height=0.4, color=KIND_COLORS[kind])
        wide = [f"{value:.3g}" if value > 0.05 * right else "" for value in ms]
        ax.bar_label(bars, wide, label_type="center", color=text_on(KIND_COLORS[kind]))
    ax.set(xlabel=f"ms of GPU work in {what}", xlim=(0, right), ylim=(len(spent.columns) - 0.65, -0.85))
    ax.set_yticks(range(len(spent.columns)), [name.replace(", ", ",\n") for name in spent.columns])
    ax.grid(False, axis="y")
    longest = spent.idxmax(axis=1)[spent.max(axis=1) > 0.004 * right]
    for y, name in enumerate(spent.columns):
        _name_above(ax, y, pieces.loc[longest.index[longest == name], name])
    return fig


def _by_kind(traces: Mapping[str, list[Event]]) -> pandas.DataFrame:
    """Return ms: one row per kind, with small ones combined as 'other', and one column per trace."""
    table = pandas.DataFrame({name: by_kind(events) for name, events in traces.items()}, dtype=float).fillna(0) / 1e3
    small = ((table / table.sum()).max(axis=1) < SMALL) & (table.index != OTHER)
    others = table[small | (table.index == OTHER)].sum()
    table = table[~small].drop(index=OTHER, errors="ignore")
    table = table.reindex([kind for kind in KIND_COLORS if kind in table.index])
    if others.any():
        table.loc[OTHER] = others
    return table


def _what_changed(spent: pandas.DataFrame) -> str:
    """Return a title: for one trace its most expensive kind, for several what differs most between the first and the
    last."""
    first, last = spent.iloc[:, 0], spent.iloc[:, -1]
    name, other = spent.columns[0], spent.columns[-1]
    if not first.sum():
        return "The GPU does nothing"
    if name == other:
        return f"{first.idxmax()}: {first.max() / first.sum():.0%} of the GPU's work"
    most = (first - last).abs().idxmax()
    how = "shrank" if last[most] < first[most] else "grew"
    return f"{first.sum():.3g} ms of GPU work become {last.sum():.3g}: {most} {how} the most"


def _name_above(ax: Axes, y: int, places: pandas.Series) -> None:
    """Write names over the bar at y, each with a line to its place, moved so that they do not overlap."""
    right = ax.get_xlim()[1]
    width = right / 10
    x = places.to_numpy(copy=True)
    for i in range(len(x)):
        x[i] = max(x[i], x[i - 1] + width if i else width / 2)
    for i in reversed(range(len(x))):
        x[i] = min(x[i], x[i + 1] - width if i + 1 < len(x) else right - width / 2)
    line: dict[str, Any] = {"arrowstyle": "-", "color": color("aside"), "shrinkA": 1, "shrinkB": 0, "relpos": (0.5, 0)}
    for (name, place), at in zip(places.items(), x, strict=True):
        text = str(name).replace(", ", ",\n").replace(" ", "\n", 1)
        look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": "small", "arrowprops": line}
        ax.annotate(text, (place, y - 0.2), (at, y - 0.37), **look)


@beside_yours("transformer")
def draw_counters(frame: pandas.DataFrame, copy_bandwidth: float | None = None) -> Figure:
    """Draw the bytes and FLOPs that each kernel of `counters.py` moved and computed, over the prediction (outlined),
    and the share of a copy's bandwidth that it reached.

    copy_bandwidth: bytes per second, by default the datasheet's. Without records, the figure says so.
    """
    rows = frame[frame["kind"] == "counters"] if "kind" in frame else frame[:0]
    if rows.empty:
        return figures.say("No counters here: they were read on an H200.")
    rows = rows.drop_duplicates("name", keep="last")
    chip = lookup(rows["on.name"].iloc[0] if "on.name" in rows else rows["on.machine"].iloc[0])
    roof = copy_bandwidth or (chip.bandwidth if chip else float("nan"))
    moved = (rows["bytes_read"] + rows["bytes_written"]) / (rows["ns"] / 1e9)
    share = (moved / roof).to_numpy()
    excess = (rows["bytes_read"] / rows["predicted_read"]).to_numpy()
    names = [name.split(",")[0] for name in rows["name"]]
    title = f"{names[excess.argmax()]} reads {excess.max():.1f} times its operands"
    measured = ("bytes read", "bytes written", "FLOPs, tensor cores")
    panels = (*measured, "copy bandwidth" if copy_bandwidth else "DRAM bandwidth")
    setting = f"outlined: predicted, each operand once{recorded_on(rows)}"
    widths: dict[str, Any] = {"width_ratios": (1, 1, 1, 0.8)}
    fig, axes = figures.panels(f"{title}\n{setting}", panels, 10.5, 3.4, sharey=True, **widths)
    for ax, unit, predicted, counted in (
        (axes[0], "B", "predicted_read", "bytes_read"),
        (axes[1], "B", "predicted_written", "bytes_written"),
        (axes[2], "FLOP", "predicted_flops", "tensor_flops"),
    ):
        ax.barh(rows["name"], rows[predicted], height=0.74, fill=False, edgecolor=INK, linewidth=1.4)
        pairs = list(zip(rows["name"], rows[counted], rows[predicted], strict=True))
        draw_bars(ax, {name: c for name, c, _ in pairs}, "ours", height=0.5, ticks=False)
        for y, (_, c, p) in enumerate(pairs):
            text = EngFormatter(unit)(float(f"{c:.3g}")) + (f", {c / p:.2f}×" if p else "")
            write_at_end(ax, max(c, p), y, text)
        ax.set_xlim(0, 2.0 * max(rows[counted].max(), rows[predicted].max()))
    reached = dict(zip(rows["name"], share, strict=True))
    texts = {name: f"{part:.0%}" for name, part in reached.items()}
    draw_bars(axes[3], reached, "one", texts, height=0.5, room=2.0, ticks=False)
    return fig
