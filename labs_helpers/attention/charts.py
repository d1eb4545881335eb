"""Figures of measured attention in labs 04 and 05; each is a function of a table of records (see study.py)."""

from __future__ import annotations

from matplotlib.ticker import LogLocator

from labs_helpers.attention.baselines import CUDNN, EFFICIENT, FLASH, FLEX, OURS, PLAIN
from labs_helpers.attention.error_study import QUANTITIES, ROUNDED
from labs_helpers.attention.study import DIRECTIONS, flops, score_bytes, tiled_bytes
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, predicted, recorded_on, tick_each
from labs_helpers.draw.roles import color
from labs_helpers.draw.words import length_text, span
from labs_helpers.measure.records import select

CURVES = Curves({
    OURS: "ours", FLASH: "theirs", CUDNN: 2, FLEX: (4, "^"), EFFICIENT: (5, "v"), PLAIN: "result", ROUNDED: (3, "P"),
})  # fmt: skip
BASELINES = (FLASH, CUDNN, FLEX, OURS)  # ours last, on top
RATE = "TFLOP/s (median, 20th to 80th percentile)"
LENGTH = "sequence length"


def chosen(rows, kind: str, **wanted):
    """Select the latest record of each length and candidate whose columns have the values in `wanted`.

    kind: 'speed', 'memory' or 'error'. The default dtype is float16; speeds are those with a cold L2 cache. Raises
    ValueError if no record is left.
    """
    wanted = {"dtype": "float16"} | ({"graph": False} if kind == "speed" else {}) | wanted
    return select(rows, kind, ["L", "name"], **wanted).sort_values("L")


@beside_yours("attention")
def draw_speed(rows, direction: str = "forward", causal: bool = True):
    """Plot TFLOP/s against the sequence length for flash_attention and the baselines, one panel per head dimension.

    rows: DataFrame from study.load. direction: 'forward' or 'backward'. `study.flops` counts the operations.
    """
    fig, axes = figures.panels(None, ("head dim 64", "head dim 128"), 10.5, sharey=True)
    reached = {}
    for ax, head_dim in zip(axes, (64, 128), strict=True):
        panel = chosen(rows, "speed", direction=direction, causal=causal, D=head_dim)
        for name, curve in _curves(panel, BASELINES):
            shapes = zip(*(curve[column] for column in "BHLD"), strict=True)
            work = [flops(direction, *shape, causal) / 1e9 for shape in shapes]
            rate, low, high = (work / curve[column] for column in ("median_ms", "p80_ms", "p20_ms"))
            CURVES.plot(ax, name, curve["L"], rate, low, high)
            reached[name.split()[0]] = float(rate.iloc[-1])
        tick_each(ax, panel["L"], base=2, xlabel=LENGTH)
    told = [(name, f"{reached[name]:.0f}") for name in (OURS, FLASH.split()[0]) if name in reached]
    finding = "The rate of attention against the sequence length"
    if told:
        (first, rate), *others = told
        finding = ", ".join([f"{first} reaches {rate} TFLOP/s", *(f"{name} {rate}" for name, rate in others)])
    figures.set_title(fig, finding)
    at = f"title: {length_text(panel['L'].max())} tokens, heads of 128"
    setting = f"{direction}, {'causal' if causal else 'full'}, float16, 16,384 tokens per batch; {at}"
    figures.write_below(fig, f"{setting}{recorded_on(rows)}")
    axes[0].set(ylabel=RATE)
    axes[0].set_ylim(0, 1.05 * axes[0].get_ylim()[1])
    _label(axes)
    return fig


@beside_yours("attention")
def draw_time(rows, direction: str = "forward"):
    """Plot the time of plain attention, flash_attention and the baselines against the sequence length.

    Both axes are logarithmic; the records are those of full attention with heads of 128.
    """
    fig, ax = figures.new(width=8.4)
    panel = chosen(rows, "speed", direction=direction, causal=False, D=128)
    times = panel.pivot(index="L", columns="name", values="median_ms")
    both = times[[name for name in (PLAIN, OURS) if name in times]].dropna()
    if both.shape[1] == 2 and len(both):
        L, gain = both.index[-1], both[PLAIN].iloc[-1] / both[OURS].iloc[-1]
        finding = f"At {length_text(L)}, plain attention takes {gain:.1f} times as long as ours"
    else:
        finding = "The time of a batch grows with the sequence length"
    figures.set_title(fig, finding, ax)
    setting = f"{direction}, full, float16, heads of 128, 16,384 tokens per batch at every length"
    figures.write_below(fig, f"{setting}{recorded_on(rows)}")
    for name, curve in _curves(panel, (PLAIN, EFFICIENT, *BASELINES)):
        CURVES.plot(ax, name, curve["L"], *(curve[column] for column in ("median_ms", "p20_ms", "p80_ms")))
    tick_each(ax, panel["L"], base=2, xlabel=LENGTH)
    ax.set_ylabel("ms (median, 20th to 80th percentile)")
    _log_scale(ax)
    figures.label_lines(ax)
    return fig


def our_ms(rows, direction: str, causal: bool) -> float:
    """Return flash_attention's median time in ms at the longest recorded length, for float16 and heads of 128."""
    return float(chosen(rows, "speed", direction=direction, causal=causal, D=128, name=OURS)["median_ms"].iloc[-1])


def plain_steps(rows):
    """Return a DataFrame with the time of each of plain attention's three kernels in ms, one row per length.

    Two more columns give the softmax's rate in TB/s and the kernel that PyTorch chose. rows: as for draw_speed.
    """
    steps = rows[rows["kind"] == "plain step"].drop_duplicates(["L", "step"], keep="last")
    table = steps.pivot(index="L", columns="step", values="median_ms")[["Q·Kᵀ", "softmax", "P·V"]].round(1)
    softmax = steps[steps["step"] == "softmax"].set_index("L")
    rate = (softmax["bytes"] / softmax["median_ms"] / 1e9).round(1)
    kernel = softmax["kernel"].fillna("").str.split("<").str[0].str.split("::").str[-1].str.split().str[-1].fillna("")
    return table.add_suffix(", ms").assign(**{"softmax, TB/s": rate, "softmax's kernel": kernel})


@beside_yours("attention")
def draw_memory(rows):
    """Plot extra bytes at the peak against the sequence length, for the forward pass alone and with the backward pass.

    Both axes are logarithmic. Dotted lines show the outputs that every method needs (o, lse and the gradients) and
    one L × L matrix of scores per head.
    """
    fig, axes = figures.panels(None, DIRECTIONS, 10.5, sharey=True)
    titles = "forward", "forward and backward"
    for ax, direction, title in zip(axes, DIRECTIONS, titles, strict=True):
        panel = chosen(rows, "memory", direction=direction)
        _draw_panel(ax, panel, (PLAIN, FLASH, OURS), lambda curve: curve["extra_bytes"])
        first, lengths = panel.iloc[0], panel["L"].unique()
        last = panel[panel["L"] == panel["L"].max()].set_index("name")["extra_bytes"]
        B, H, D = (int(first[column]) for column in "BHD")
        needed = "o, lse" if direction == "forward" else "o, lse, dq, dk, dv"
        for label, count in (
            ("L × L scores", [score_bytes(B, H, int(L)) for L in lengths]),
            (needed, [tiled_bytes(direction, B, H, int(L), D) for L in lengths]),
        ):
            ax.plot(lengths, count, ":", marker="", color=color("aside"), label=label)
        ax.set_yscale("log")
        figures.set_unit(ax.yaxis, "B")
        ax.set_title(f"{title}, {H} heads × {D}", fontsize="medium")
    finding = "Plain attention's memory grows with L², tiled with L"
    if {PLAIN, OURS} <= set(last.index):
        plain, tiled = (f"{last[name] / 1e9:.3g} GB" for name in (PLAIN, OURS))
        finding = f"At {length_text(lengths.max())}, plain attention needs {plain}, tiled {tiled}"
    figures.set_title(fig, finding)
    setting = "peak beyond the inputs, one sequence, float16; title: forward and backward"
    figures.write_below(fig, f"{setting}{recorded_on(rows)}")
    axes[0].set_ylabel("extra bytes at the peak")
    _label(axes)
    return fig


@beside_yours("attention")
def draw_error(rows, of: str = "o"):
    """Plot the relative error against the sequence length for one head of 128, one panel per dtype.

    The relative error is the root mean square (rms) of the error divided by the rms of the exact result.
    of: 'o', 'dq', 'dk' or 'dv'; ValueError for any other.
    """
    if of not in QUANTITIES:
        raise ValueError(f"of is {of!r}; expected one of {', '.join(QUANTITIES)}")
    recorded = rows[rows["kind"] == "error"]["dtype"].unique()
    dtypes = [dtype for dtype in ("float16", "bfloat16", "float32") if dtype in recorded] or ["float16"]
    fig, axes = figures.panels(None, dtypes, 5.25 * len(dtypes), sharey=True)
    times = []  # plain attention's error divided by ours
    for ax, dtype in zip(axes, dtypes, strict=True):
        panel = chosen(rows, "error", dtype=dtype, of=of)
        names = PLAIN, FLASH, OURS, ROUNDED
        _draw_panel(ax, panel, names, lambda curve: curve["rms_error"] / curve["reference_rms"])
        last = panel[panel["L"] == panel["L"].max()].set_index("name")["rms_error"]
        times += [last[PLAIN] / last[OURS]] if {PLAIN, OURS} <= set(last.index) else []
        _log_scale(ax)
    finding = f"The error of {of} against the sequence length"
    if times:
        at = length_text(panel["L"].max())
        finding = f"At {at}, plain attention's error in {of} is {span(times, 1)}× ours"
    figures.set_title(fig, finding)
    figures.write_below(fig, f"against a float64 reference, one head of 128{recorded_on(rows)}")
    axes[0].set_ylabel(f"rms error / rms of {of}")
    _label(axes)
    return fig


@beside_yours("attention")
def draw_causal(rows, direction: str = "forward", prediction=None):
    """Plot the speedup of causal over full attention against the sequence length, for heads of 128.

    Causal attention needs half of the scores, so a dotted line marks a factor of 2. prediction: a Prediction for the
    last length, drawn there if it has a number.
    """
    fig, ax = figures.new(width=8.4)
    full, causal = (chosen(rows, "speed", direction=direction, causal=c, D=128) for c in (False, True))
    gains, lengths = draw_time_ratios(ax, full, causal, 2, "half the scores")
    finding = "A causal mask removes half of the scores"
    if OURS in gains:
        finding = f"At {length_text(lengths[-1])}, causal {OURS} is {gains[OURS]:.2f} times as fast as full"
    figures.set_title(fig, finding, ax)
    figures.write_below(fig, f"{direction}, float16, heads of 128{recorded_on(rows)}")
    value = predicted(prediction)
    ax.set(ylabel="full time / causal time", ylim=(min(0.9, 0.9 * (value or 1)), max(2.15, 1.08 * (value or 0))))
    figures.label_lines(ax)
    figures.mark_prediction(ax, lengths[-1], prediction)
    return fig


def draw_time_ratios(ax, over, under, expected: float, why: str) -> tuple[dict[str, float], list[int]]:
    """Plot the ratio of the times in two tables against the length, one curve per candidate.

    A dotted line labeled `why` marks the ratio `expected`. Returns name → the last ratio, and the lengths.
    """
    last, lengths = {}, sorted(map(int, under["L"].unique()))
    for name in BASELINES:
        a, b = (part[part["name"] == name].set_index("L") for part in (over, under))
        ratio = (a["median_ms"] / b["median_ms"]).dropna()
        if len(ratio):
            spread = (a["p20_ms"] / b["p80_ms"])[ratio.index], (a["p80_ms"] / b["p20_ms"])[ratio.index]
            CURVES.plot(ax, name, ratio.index, ratio, *spread)
            last[name] = float(ratio.iloc[-1])
    ax.plot(lengths, [expected] * len(lengths), ":", marker="", color=color("aside"), label=why)
    tick_each(ax, lengths, base=2, xlabel=LENGTH)
    return last, lengths


def _log_scale(ax) -> None:
    """Make the y axis logarithmic with labels at 1, 2, 5, 10, …; powers of ten alone would leave only two labels."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def _draw_panel(ax, panel, names, values) -> None:
    """Plot values(curve) against the length for each measured candidate in `names`, with a tick at each length."""
    for name, curve in _curves(panel, names):
        CURVES.plot(ax, name, curve["L"], values(curve))
    tick_each(ax, panel["L"], base=2, xlabel=LENGTH)


def _curves(panel, names):
    """Return (name, its rows) for each measured candidate in `names`, in that order."""
    return [(name, panel[panel["name"] == name]) for name in names if name in set(panel["name"])]


def _label(axes) -> None:
    for ax in axes:
        figures.label_lines(ax)
