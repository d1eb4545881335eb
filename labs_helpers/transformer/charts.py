"""The figures of the transformer's study: each is a function of a table of records, as `study.load` gives it.

What a table has no records of is not drawn, and the figure says so in its place: a student's own machine has fewer.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, PercentFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves, predicted, recorded_on, tick_each
from labs_helpers.transformer import counts
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.grids import FIELDS
from labs_helpers.transformer.measure_step import PHASES
from labs_helpers.transformer.setups import ORDERS, PRECISIONS, REMEDIES, Setup, walk
from labs_helpers.transformer.study import of_setup, with_rates

EAGER = Setup(precision="bf16")
CURVES = Curves({
    "tiny": ("v", "sky"), "small": ("o", "blue"), "medium": ("s", "vermillion"), "large": ("^", "orange"),
    "xl": ("P", "purple"), "1b": ("D", "green"),
})  # fmt: skip
SHAPE = ["size", "batch", "length"]
SETTING = [*SHAPE, *FIELDS]
WHOLE = ["batch", "length", "layers", "segments", "accumulate"]  # columns that beside other kinds of records are float
TIMES = [f"{phase}{part}_ms" for phase in PHASES for part in ("", "_p20", "_p80")]
MEASURED = [*TIMES, "peak_bytes", "state_bytes", "launches", "forward_launches", "busy", "flops_per_token"]
TREATMENT: dict[str, dict[str, Any]] = {
    "tf32": {"precision": "tf32"},
    "bf16": {"precision": "bf16"},
    "sdpa": {"attention": "sdpa"},
    "flash": {"attention": "flash"},
    "fused": {"optimizer": "fused"},
    "compiled": {"compiled": True},
    "by block": {"regional": True},
}
CLAIMED_KERNELS, CLAIMED_WAIT = 2500, 0.5  # what is often said of a forward pass, and of a step


def steps(frame: pandas.DataFrame, setup: Setup | None = None, **wanted: Any) -> pandas.DataFrame:
    """The latest step of each shape and setup: in one setup (None: any), where the columns have the values `wanted`.

    No rows where there are no such records, or no such column. Of MEASURED a value is NaN where it was not measured,
    as all are of a step that was out of memory."""
    rows = frame
    for column, value in ({"kind": "step"} | wanted).items():
        rows = rows[rows[column] == value] if column in rows else rows[:0]
    usual = dataclasses.asdict(Setup())  # of what an older record does not name
    rows = rows.assign(**{field: value for field, value in usual.items() if field not in rows})
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *SHAPE, *WHOLE, *MEASURED])))
    rows = rows.astype(dict.fromkeys(WHOLE, int) | dict.fromkeys(MEASURED, float))
    rows = of_setup(rows, setup) if setup else rows
    return rows.drop_duplicates(SETTING, keep="last").sort_values(["length", "batch"])


def timed(frame: pandas.DataFrame, setup: Setup | None = None, **wanted: Any) -> pandas.DataFrame:
    """`steps` that were not out of memory, with their rates and MFU."""
    rows = steps(frame, setup, **wanted).dropna(subset="step_ms")
    return with_rates(rows.assign(**{"on.name": rows["on.name"].fillna("") if "on.name" in rows else ""}))


def tokens(rows: pandas.DataFrame) -> pandas.Series:
    """Tokens of a step."""
    return rows["batch"] * rows["length"]


def words(setup: Setup) -> str:
    """A setup for a reader; PyTorch's own optimizer goes without saying."""
    said = [f"{setup.attention} attention", setup.precision, "compiled" if setup.compiled else "eager"]
    said += ["block by block"] * setup.regional
    said += [f"{setup.optimizer} optimizer"] * (setup.optimizer != Setup.optimizer)
    said += ["CUDA graph"] * setup.graph
    said += [f"{setup.segments} segments"] * (setup.segments > 0)
    said += [f"{setup.accumulate} micro-batches"] * (setup.accumulate > 1)
    return ", ".join(said)


def draw_sizes(frame: pandas.DataFrame, setup: Setup = EAGER) -> Figure:
    """Time per token of forward pass, backward pass and step against the context length, a panel for each size, and
    MFU beside them: medians, with the 20th to 80th percentile as a bar. Drawn are the records of one number of tokens
    per step, or of sequences, of which there are the most."""
    rows = timed(frame, setup)
    if rows.empty:
        return _nothing(f"steps with {words(setup)}")
    ways = tokens(rows).rename("tokens per step"), rows["batch"].rename("sequences per step")
    same = max(ways, key=lambda values: values.value_counts().max())
    same = same[same == same.mode().iloc[0]]
    rows = rows.loc[same.index]
    curves = _by_size(rows)
    first, last = rows["length"].min(), rows["length"].max()
    factors = [f"{c['step_ms'].iloc[-1] / c['step_ms'].iloc[0]:.1f} ({size})" for size, c in curves.items()]
    fig, axes = _new(
        f"From {_short(first)} to {_short(last)} tokens of context a token takes {_listed(factors)} times as long\n"
        f"{words(setup)}, {same.iloc[0]:,} {same.name}{recorded_on(rows)}",
        width=3.3 + 2.4 * len(curves),
        ncols=len(curves) + 1,
    )
    for ax, (size, curve) in zip(axes, curves.items(), strict=False):
        ax.sharey(axes[0])
        look = {"color": CURVES.color(size), "marker": CURVES.marker(size)}
        for phase, dashes in (("backward", "--"), ("forward", ":"), ("step", "-")):
            low, middle, high = (curve[f"{phase}{part}_ms"] / 1e3 / tokens(curve) for part in ("_p20", "", "_p80"))
            ax.plot(curve["length"], middle, dashes, label=phase, **look)
            ax.vlines(curve["length"], low, high, color=CURVES.color(size), linewidth=4, alpha=0.3)
        ax.set_title(size, fontsize="medium")
        ax.tick_params(labelleft=ax is axes[0])
        CURVES.plot(axes[-1], size, curve["length"], curve["mfu"])
    axes[0].set(yscale="log", ylabel="time per token")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    figures.set_unit(axes[0].yaxis, "s")
    axes[-1].set_title("MFU", fontsize="medium")
    for ax in axes:
        tick_each(ax, rows["length"], base=2)
        ax.set_xlabel("context length")
    figures.label_lines(axes[-2])
    if rows["mfu"].isna().all():
        _say(axes[-1], "no datasheet\nof this machine")
    else:
        axes[-1].set_ylim(0, None)
        axes[-1].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        figures.label_lines(axes[-1])
    return fig


def draw_launches(frame: pandas.DataFrame, prediction: Any = None, setup: Setup = EAGER, at: str = "small") -> Figure:
    """Kernels of a forward pass against the number of layers, and the share of a step in which the GPU waits against
    the tokens of a step, a curve for each size; with what is commonly said of both as lines.

    prediction: a Prediction of the kernels in a forward pass of the size `at`. The share is drawn of that attention
    of which more batches were measured.
    """
    shapes = timed(frame, setup).dropna(subset="forward_launches").groupby(["batch", "length"])
    counted = max((rows for _, rows in shapes), key=len, default=timed(frame[:0]))  # of most sizes
    alike = {name: getattr(setup, name) for name in FIELDS if name != "attention"}
    varied = _varied(timed(frame, **alike).dropna(subset="busy"), "batch")
    if counted.empty or varied.empty:
        return _nothing(f"launches with {words(setup)}")
    curves = _by_size(timed(frame, _setup(varied.iloc[0]), length=varied["length"].iloc[0]).dropna(subset="busy"))
    layers, kernels = counted["layers"].to_numpy(float), counted["forward_launches"].to_numpy(float)
    slope, besides = np.polyfit(layers, kernels, 1) if len(counted) > 1 else (kernels[0] / layers[0], 0.0)
    fig, (left, right) = _new(
        f"A layer launches {slope:.0f} kernels; the GPU waits {1 - varied['busy'].iloc[0]:.0%} of the time at "
        f"{tokens(varied).iloc[0]:,} tokens per step, {1 - varied['busy'].iloc[-1]:.0%} at "
        f"{tokens(varied).iloc[-1]:,}\n{setup.precision}, eager{recorded_on(counted)}",
        width=9.5,
        ncols=2,
    )
    reach = 1.25 * layers.max()
    left.plot([0, reach], [besides, besides + slope * reach], marker="", color="gray", linewidth=1.2)
    for row in counted.itertuples():
        CURVES.plot(left, row.size, [row.layers], [row.forward_launches])
    guess = predicted(prediction)
    left.set(xlabel="layers", xlim=(0, reach), ylim=(0, 1.12 * max(CLAIMED_KERNELS, kernels.max(), guess or 0)))
    left.set_title(f"kernels of a forward pass, {setup.attention} attention", fontsize="medium")
    left.yaxis.set_major_formatter("{x:,.0f}")
    _line(left, CLAIMED_KERNELS, f"“{CLAIMED_KERNELS:,} kernels”")
    points = zip(counted["size"], layers, kernels, strict=True)
    figures.label_points(left, {f"{size}: {count:,.0f}": (deep, count) for size, deep, count in points})
    if at in SIZES:
        figures.mark_prediction(left, SIZES[at].layers, guess)
    for size, curve in curves.items():
        CURVES.plot(right, size, tokens(curve), 1 - curve["busy"])
    tick_each(right, tokens(pandas.concat(curves.values())), base=2)
    right.set(xlabel="tokens per step", ylim=(0, 1))
    traced = "gpu_ms" not in varied or varied["gpu_ms"].isna().all()  # else against steps timed without a profiler
    step = "traced step" if traced else "step"
    right.set_title(f"share of a {step} in which the GPU waits, {varied['attention'].iloc[0]}", fontsize="medium")
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    _line(right, CLAIMED_WAIT, "“half of the time”", right=True)
    second = {size: curve.iloc[min(1, len(curve) - 1)] for size, curve in curves.items()}
    places = {size: (row["batch"] * row["length"], 1 - row["busy"]) for size, row in second.items()}
    figures.label_points(right, places)
    return fig


def draw_peak(
    frame: pandas.DataFrame,
    formula: Callable[[TransformerConfig, int, int, int], float] = counts.step_peak,
    prediction: Any = None,
    size: str = "small",
    setup: Setup = EAGER,
) -> Figure:
    """Peak memory of a step against the context length, with its fit in three parts, the last one being the scores'.

    At one batch the fit is a + b·L + c·L². Where more was measured at one number of tokens per step, the first part is
    what was allocated before the step, and of the line through the rest the second does not depend on L.
    formula(config, batch, length, itemsize): the peak in bytes, drawn dashed. prediction: a Prediction of the length
    at which the scores are as large as the second part; one that is not on the axis is written into the figure.
    """
    rows = timed(frame, setup, size=size).dropna(subset=["peak_bytes", "state_bytes"])
    rows = max(
        (group for same in (rows["batch"], tokens(rows)) for _, group in rows.groupby(same)), key=len, default=rows
    )
    if len(rows) < 3:
        return _nothing(f"{size} at three context lengths, with {words(setup)}")
    lengths, peaks, batches = (rows[column].to_numpy() for column in ("length", "peak_bytes", "batch"))
    one_batch, first, last = len(set(batches)) == 1, lengths[0], lengths[-1]
    if one_batch:
        a, b, c = counts.fit_length(dict(zip(lengths, peaks, strict=True)))
    else:
        c, rest = np.polyfit(lengths, peaks, 1)
        a, b = rows["state_bytes"].mean(), rest - rows["state_bytes"].mean()
    itemsize = PRECISIONS[setup.precision].itemsize
    told = [formula(SIZES[size], int(B), int(L), itemsize) for B, L in zip(batches, lengths, strict=True)]
    fig, ax = _new(
        f"From {_short(first)} to {_short(last)} tokens of context the peak grows {peaks[-1] / peaks[0]:.1f} times; "
        f"the formula is within {abs(told / peaks - 1).max():.0%}\n{size}, "
        + (f"batch {batches[0]}" if one_batch else f"{tokens(rows).iloc[0]:,} tokens per step")
        + f", {words(setup)}{recorded_on(rows)}",
        width=9,
        height=4.8,
    )
    x = np.linspace(0, 1.04 * last, 50)

    def parts(length: Any) -> Any:
        power = 1 if one_batch else 0
        return np.cumsum([0 * length + a, b * length**power, c * length ** (power + 1)], axis=0)

    names = ("constant", "∝ L", "∝ L²: scores") if one_batch else ("states", "other activations", "∝ L: scores")
    below = 0 * x
    for name, above, color, alpha in zip(
        names, parts(x), ("black", "sky", "vermillion"), (0.15, 0.3, 0.4), strict=True
    ):
        ax.fill_between(x, below, above, color=figures.COLORS[color], alpha=alpha, linewidth=0)
        middle = (below[-1] + above[-1]) / 2  # a curve without a line, for its name beside the axes
        ax.plot(x[-1:], [middle], linestyle="none", marker="", color=figures.COLORS[color], label=name)
        below = above
    ax.plot(lengths, told, "--", marker="", color=figures.COLORS["black"], label="formula")
    ax.plot(lengths, peaks, "o", color=figures.COLORS["blue"], label="measured")
    ax.set(xlabel="context length L", ylabel="peak of a step", xlim=(0, x[-1]), ylim=(0, None))
    ax.set_xticks(lengths, [_short(length) for length in lengths])
    figures.set_unit(ax.yaxis, "B")
    figures.label_lines(ax)
    if 0 < b < c * x[-1]:
        ax.axvline(b / c, linestyle=":", color=figures.COLORS["vermillion"], label="_equal")
        words_at = {"xycoords": ax.get_xaxis_transform(), "xytext": (6, 0), "textcoords": "offset points", "va": "top"}
        ax.annotate(f"from {b / c:,.0f} tokens on the scores\nare most of the activations", (b / c, 0.97), **words_at)
    guess = predicted(prediction)
    if guess is not None and 0 <= guess <= x[-1]:
        figures.mark_prediction(ax, guess, parts(np.float64(guess))[-1])
    elif guess is not None:
        ax.text(0.98, 0.03, f"your prediction: {guess:,.0f}", transform=ax.transAxes, ha="right", style="italic")
    return fig


def draw_precision(frame: pandas.DataFrame, **wanted: Any) -> Figure:
    """Step time and peak memory in each precision, all else alike. wanted: columns' values, where several would do."""
    rows = _varied(timed(frame, **wanted).dropna(subset="peak_bytes"), "precision")
    if len(rows) < 2:
        return _nothing("time and peak of steps in several precisions")
    rows = rows.set_index("precision", drop=False).reindex([p for p in PRECISIONS if p in set(rows["precision"])])
    first, last = rows.iloc[0], rows.iloc[-1]
    fig, axes = _new(
        f"{last.name} is {first['step_ms'] / last['step_ms']:.1f} times as fast as {first.name}, in "
        f"{last['peak_bytes'] / first['peak_bytes']:.0%} of its memory\n{_shape(first)}, "
        f"{words(_setup(first)).replace(first.name + ', ', '')}{recorded_on(rows)}",
        width=9,
        height=3.6,
        ncols=2,
        sharey=True,
    )
    for ax, title, unit, values in (
        (axes[0], "time of a step", "s", rows["step_ms"] / 1e3),
        (axes[1], "peak memory", "B", rows["peak_bytes"]),
    ):
        bars = ax.barh(rows.index, values, color=figures.COLORS["blue"])
        shown = EngFormatter(unit)
        ax.bar_label(bars, [shown(float(f"{value:.3g}")) for value in values], padding=4)
        ax.set_title(title, fontsize="medium")
        ax.set(xticks=[], xlim=(0, 1.25 * values.max()))
        ax.spines["bottom"].set_visible(False)
        ax.grid(False)
    axes[0].invert_yaxis()
    return fig


def draw_checkpoints(frame: pandas.DataFrame, formula: Callable[[int], float] | None = None, **wanted: Any) -> Figure:
    """Peak memory and time of a step against the number of checkpointed segments, beside a step without checkpoints.

    formula(segments): the peak in bytes, drawn dashed. The time's forecast is one more forward pass, as measured.
    wanted: columns' values, where several settings would do.
    """
    every = _varied(timed(frame, **wanted).dropna(subset="peak_bytes"), "segments")
    rows, without = every[every["segments"] > 0], every[every["segments"] == 0]
    if rows.empty or without.empty:
        return _nothing("time and peak of steps with and without checkpoints")
    plain, best = without.iloc[0], rows.loc[rows["peak_bytes"].idxmin()]
    fig, (memory, time) = _new(
        f"{best['segments']} segments take {best['peak_bytes'] / plain['peak_bytes']:.0%} of the memory of no "
        f"checkpoints, and {best['step_ms'] / plain['step_ms']:.2f} times the time\n"
        f"{_shape(plain)}, {words(_setup(plain))}{recorded_on(rows)}",
        width=9.5,
        ncols=2,
    )
    segments = rows["segments"].to_numpy()
    forecast: dict[str, Any] = {"linestyle": "--", "marker": "", "color": figures.COLORS["black"]}
    if formula is not None:
        memory.plot(segments, [formula(int(count)) for count in segments], label="formula", **forecast)
    again = 0 * segments + (plain["step_ms"] + plain["forward_ms"]) / 1e3
    time.plot(segments, again, label="one more\nforward pass", **forecast)
    for ax, title, unit, values, level in (
        (memory, "peak memory of a step", "B", rows["peak_bytes"], plain["peak_bytes"]),
        (time, "time of a step", "s", rows["step_ms"] / 1e3, plain["step_ms"] / 1e3),
    ):
        ax.plot(segments, 0 * segments + level, ":", marker="", color="gray", label="no\ncheckpoints")
        ax.plot(segments, values, "o-", color=figures.COLORS["blue"], label="measured")
        tick_each(ax, segments)
        ax.set(xlabel="checkpointed segments", ylim=(0, 1.15 * max(ax.get_ylim()[1], level)))
        ax.set_title(title, fontsize="medium")
        figures.set_unit(ax.yaxis, unit)
        figures.label_lines(ax, gap=2.6)
    return fig


def draw_waterfall(
    frame: pandas.DataFrame, orders: Mapping[str, Mapping[str, Setup]] | None = None, **wanted: Any
) -> Figure:
    """What each remedy takes off the time of a step, in ms and as a factor, in a panel for each order of them.

    orders: name → {"start": Setup, remedy: the setup with it and all before, …}; by default `walk` along each of
    ORDERS. wanted: columns' values, such as size="small"; else the shape with the most records is drawn.
    """
    orders = orders or {name: walk(name) for name in ORDERS}
    walked = {name: walked_steps(frame, path, **wanted) for name, path in orders.items()}
    walked = {name: rows for name, rows in walked.items() if len(rows.dropna(subset="step_ms")) > 1}
    if not walked:
        return _nothing("steps along an order of remedies")
    start = next(iter(walked.values())).dropna(subset="size")
    fig, axes = _new(
        f"{_remedy_that_differs(walked)}\n{_shape(start.iloc[0])}, from {words(_setup(start.iloc[0]))} on"
        f"{recorded_on(start)}",
        width=max(7.2, 0.4 + 3.4 * len(walked)),
        ncols=len(walked),
        sharex=True,
        squeeze=False,
    )
    remedies = dict.fromkeys([*REMEDIES, *(name for rows in walked.values() for name in rows.index[1:])])
    colors = dict(zip(remedies, figures.COLORS.values(), strict=False))
    for ax, (order, rows) in zip(axes[0], walked.items(), strict=True):
        ax.set_title(order, fontsize="medium")
        _draw_steps_down(ax, rows, colors)
    axes[0][0].set_xlim(0, 2.2 * max(rows["step_ms"].max() for rows in walked.values()))
    return fig


def _draw_steps_down(ax: Axes, rows: pandas.DataFrame, colors: Mapping[str, str]) -> None:
    """A bar for the first step, one for what each remedy took off it, and one for what is left."""
    times = rows["step_ms"]
    reached = float("nan")
    for y, (remedy, ms) in enumerate(times.items()):
        if np.isnan(ms):
            why = "out of memory" if rows.loc[remedy, "out_of_memory"] is True else "not measured"
            ax.text(np.nan_to_num(reached), y, f" {why}", va="center", style="italic")
            continue
        if np.isnan(reached):
            ax.barh(y, ms, color="gray")
            text = f"{ms:.3g} ms"
        else:
            ax.barh(y, reached - ms, left=ms, color=colors.get(remedy, "gray"))
            text = f"{ms - reached:+.3g} ms, {reached / ms:.2f}×".replace("-", "−")
        ax.text(np.fmax(ms, reached), y, f" {text}", va="center")
        reached = ms
        ax.vlines(ms, y, y + 1, color="gray", linewidth=0.8, zorder=0)
    ax.barh(len(times), reached, color=figures.COLORS["black"])
    ax.text(reached, len(times), f" {reached:.3g} ms, {times.dropna().iloc[0] / reached:.1f}× in all", va="center")
    ax.set_yticks(range(len(times) + 1), [*times.index, "left"])
    ax.invert_yaxis()
    ax.set_xlabel("time of a step, ms")
    ax.grid(False, axis="y")


def treatment(start: Setup | None = None) -> dict[str, Setup]:
    """{"start": start, remedy: the setup with it and all before, …}, as in `configurations/remedies.yaml`."""
    path = {"start": start or Setup()}
    for remedy, change in TREATMENT.items():
        path[remedy] = dataclasses.replace(list(path.values())[-1], **change)
    return path


def remedies_table(
    frame: pandas.DataFrame,
    path: Mapping[str, Setup] | None = None,
    expected: Mapping[str, object] | None = None,
    **wanted: Any,
) -> pandas.DataFrame:
    """The doctor's table: a row for each remedy, with time, peak and launches of a step before it and after it.

    path: {"start": Setup, remedy: the setup with it and all before, …}; by default `treatment()`.
    expected: remedy → what was predicted of it, a text or a number. wanted: columns' values, such as size="1b"; else
    the shape with the most records. NaN where a step was not measured or out of memory; then the next one's 'before'
    is the last that was.
    """
    rows = walked_steps(frame, path or treatment(), **wanted)
    columns: dict[tuple[str, str], Any] = {}
    if expected is not None:
        columns["predicted", ""] = [expected.get(str(remedy), "") for remedy in rows.index[1:]]
    for name, values, digits in (
        ("step, ms", rows["step_ms"], 2),
        ("peak, GB", rows["peak_bytes"] / 1e9, 2),
        ("launches", rows["launches"], 0),
    ):
        before, after = values.ffill().shift().iloc[1:], values.iloc[1:]
        columns[name, "before"], columns[name, "after"] = before.round(digits), after.round(digits)
        if name == "step, ms":
            columns["times as fast", ""] = (before / after).round(2)
    table = pandas.DataFrame(columns, index=rows.index[1:].rename("remedy"))
    return table.astype({column: "Int64" for column in table if column[0] == "launches"})


def walked_steps(frame: pandas.DataFrame, path: Mapping[str, Setup], **wanted: Any) -> pandas.DataFrame:
    """The records along a path of setups, a row for each of its names, at the shape that has the most of them; NaN
    where there is none. wanted: columns' values."""
    rows = steps(frame, **wanted)
    found = pandas.concat({name: of_setup(rows, setup) for name, setup in path.items()}, names=["remedy"])
    shapes = [shape for _, shape in found.groupby(SHAPE)]
    found = max(shapes, key=len, default=found).droplevel(1)
    return found.reindex(index=list(path), columns=[*SETTING, *MEASURED, "out_of_memory", "on.machine"])


def draw_batches(frame: pandas.DataFrame, setup: Setup | None = None, size: str = "small") -> Figure:
    """Tokens per second against the batch, in `setup` and in the fastest other one, under the roof of the GPU's peak,
    with MFU on the right, and the batch from which on each has 90% of its best.

    setup: by default the eager one in bf16 of which the most batches were measured.
    """
    alike = dataclasses.asdict(setup) if setup else {"precision": "bf16", "compiled": False, "graph": False}
    rows = _varied(timed(frame, size=size, **alike), "batch")
    if len(rows) < 2:
        return _nothing(f"{size} at several batches")
    same = timed(frame, size=size, length=rows["length"].iloc[0])
    groups = [group for _, group in same.groupby(list(FIELDS)) if len(group) > 1]
    fastest = max(groups, key=lambda group: group["tokens_per_s"].max())
    curves = [("o", "blue", rows)] + [("s", "vermillion", fastest)] * (_setup(fastest.iloc[0]) != _setup(rows.iloc[0]))
    roof = (rows["tokens_per_s"] / rows["mfu"]).iloc[0]
    best = fastest["tokens_per_s"].max()
    fig, ax = _new(
        f"Eager levels off at {_level(rows)}"
        + (f", the fastest way at {_level(fastest)}" if len(curves) > 1 else "")
        + f"\n{size}, {rows['length'].iloc[0]:,} tokens per sequence{recorded_on(rows)}",
        width=8.4,
        height=4.8,
    )
    ax.set(
        ylim=(0, 1.08 * (roof if roof == roof else best)),
        xlabel="batch (full mark: 90% of the best)",
        ylabel="tokens per second",
    )
    tick_each(ax, rows["batch"])
    figures.set_unit(ax.yaxis, "")
    for marker, color, curve in curves:
        look = {"marker": marker, "color": figures.COLORS[color]}
        ax.plot(curve["batch"], curve["tokens_per_s"], markerfacecolor=figures.PAPER, **look)
        level = curve[curve["batch"] == _levels_off(curve)]
        ax.plot(level["batch"], level["tokens_per_s"], markersize=9, **look)
    if roof == roof:
        _line(ax, roof, "the datasheet's FLOP/s / FLOPs per token")
        right = ax.secondary_yaxis("right", functions=(lambda rate: rate / roof, lambda share: share * roof))
        right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        right.set_ylabel("MFU")
    for _, color, curve in curves:
        name, row = words(_setup(curve.iloc[0])), curve.iloc[-2]
        figures.label_points(ax, {name: (row["batch"], row["tokens_per_s"])}, color=figures.COLORS[color])
    return fig


def _level(curve: pandas.DataFrame) -> str:
    share = curve["mfu"].max()
    return f"batch {_levels_off(curve)}" + (f" and {share:.0%} MFU" if share == share else "")


def _levels_off(curve: pandas.DataFrame) -> int:
    """The smallest batch with 90% of the curve's best rate."""
    return int(curve[curve["tokens_per_s"] >= 0.9 * curve["tokens_per_s"].max()]["batch"].min())


def _by_size(rows: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """size → its rows, in the order of CURVES; sizes of one's own last."""
    names = dict.fromkeys([*CURVES, *sorted(set(rows["size"]))])
    return {name: rows[rows["size"] == name] for name in names if name in set(rows["size"])}


def _varied(rows: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Of the rows those that differ in one column of SETTING alone, by that column: the most that there are."""
    groups = [group for _, group in rows.groupby([name for name in SETTING if name != column], sort=False)]
    return max(groups, key=len, default=rows).sort_values(column)


def _setup(row: Mapping[str, Any]) -> Setup:
    """The Setup of a record, whose yes and no, beside records of other kinds, are numbers or objects."""
    return Setup(**{name: type(getattr(EAGER, name))(row[name]) for name in FIELDS})


def _remedy_that_differs(walked: Mapping[str, pandas.DataFrame]) -> str:
    """A title: the remedy whose saving depends the most on what came before."""
    saved: dict[str, list[tuple[float, str]]] = {}
    for rows in walked.values():
        ms = rows["step_ms"].ffill().shift() - rows["step_ms"]
        for place, remedy in enumerate(rows.index):
            if ms.iloc[place] == ms.iloc[place]:
                before = f"after {_listed(list(rows.index[1:place]))}" if place > 1 else "first of all"
                saved.setdefault(remedy, []).append((ms.iloc[place], before))
    remedy, ways = max(saved.items(), key=lambda item: max(item[1])[0] - min(item[1])[0])
    told = [f"{ms:.3g} ms {before}" for ms, before in sorted({min(ways), max(ways)})]
    return f"{remedy} saves {', but '.join(told)}".replace("-", "−")


def _new(title: str, width: float, **layout: Any) -> tuple[Figure, Any]:
    """`figures.new` with a title whose lines are broken where the figure ends."""
    letters = int(10 * width)
    return figures.new("\n".join(textwrap.fill(line, letters) for line in title.splitlines()), width, **layout)


def _nothing(what: str) -> Figure:
    """A figure that says what there are no records of."""
    fig, ax = figures.new(height=1.4)
    _say(ax, textwrap.fill(f"No records here of {what}.", 70) + "\nSee python -m labs_helpers.transformer.study --help")
    return fig


def _say(ax: Axes, text: str) -> None:
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", style="italic")


def _line(ax: Axes, height: float, text: str, right: bool = False) -> None:
    """A dashed line with words over its left end, or over its right."""
    ax.axhline(height, linestyle="--", linewidth=1.4, color=figures.COLORS["black"], label="_line")
    ax.annotate(
        text,
        (0.98 if right else 0.02, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right" if right else "left",
        style="italic",
    )


def _listed(texts: list[str]) -> str:
    """'a, b and c'"""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _short(length: int) -> str:
    """'4k' for 4,096, as `tick_each` writes it."""
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def _shape(row: Mapping[str, Any]) -> str:
    return f"{row['size']}, batch {row['batch']:.0f}, {row['length']:,.0f} tokens"
