"""The figures of labs 04 and 05 that draw measurements: each is a function of a table of records (see study.py)."""

from __future__ import annotations

from labs_helpers.attention.baselines import CUDNN, EFFICIENT, FLASH, FLEX, OURS, PLAIN
from labs_helpers.attention.error_study import QUANTITIES, ROUNDED
from labs_helpers.attention.study import DIRECTIONS, flops, score_bytes, tiled_bytes
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, predicted, recorded_on, tick_each
from labs_helpers.measure.records import select

CURVES = Curves({
    OURS: ("o", "blue"), FLASH: ("s", "vermillion"), CUDNN: ("D", "green"), FLEX: ("^", "orange"),
    EFFICIENT: ("v", "sky"), PLAIN: ("X", "black"), ROUNDED: ("P", "purple"),
})  # fmt: skip
BASELINES = (FLASH, CUDNN, FLEX, OURS)  # ours last, on top
RATE = "TFLOP/s (median, 20th to 80th percentile)"
LENGTH = "sequence length"


def chosen(rows, kind: str, **wanted):
    """The latest record of each length and candidate of a kind, where the columns have the values `wanted`.

    Float16 unless `wanted` says otherwise, and from a cold L2. ValueError when nothing is left to draw.
    """
    wanted = {"dtype": "float16"} | ({"graph": False} if kind == "speed" else {}) | wanted
    return select(rows, kind, ["L", "name"], **wanted).sort_values("L")


@beside_yours("attention")
def draw_speed(rows, direction: str = "forward", causal: bool = True):
    """TFLOP/s against the sequence length, a panel a head dim, ours and the baselines.

    rows: DataFrame as study.load gives it. direction: 'forward' or 'backward'. `study.flops` counts the operations.
    """
    fig, axes = figures.new(None, width=10.5, ncols=2, sharey=True)
    reached = {}
    for ax, head_dim in zip(axes, (64, 128), strict=True):
        panel = chosen(rows, "speed", direction=direction, causal=causal, D=head_dim)
        for name, curve in _curves(panel, BASELINES):
            shapes = zip(*(curve[column] for column in "BHLD"), strict=True)
            work = [flops(direction, *shape, causal) / 1e9 for shape in shapes]
            rate, low, high = (work / curve[column] for column in ("median_ms", "p80_ms", "p20_ms"))
            CURVES.plot(ax, name, curve["L"], rate, low, high)
            reached[name] = float(rate.iloc[-1])
        label_lengths(ax, panel["L"], f"head dim {head_dim}")
    told = [f"{name} reaches {reached[name]:.0f} TFLOP/s" for name in (OURS, FLASH) if name in reached]
    _title(
        fig,
        f"At {_short(panel['L'].max())} tokens, heads of 128, {', '.join(told)}",
        f"attention {direction}, {_mask(causal)}, float16, 16,384 tokens per batch{recorded_on(rows)}",
    )
    axes[0].set(ylabel=RATE)
    axes[0].set_ylim(0, 1.05 * axes[0].get_ylim()[1])
    _label(axes)
    return fig


@beside_yours("attention")
def draw_time(rows, direction: str = "forward"):
    """Time against the sequence length, both logarithmic: plain attention, ours, the baselines; full, head dim 128."""
    fig, ax = figures.new(None, width=8.4)
    panel = chosen(rows, "speed", direction=direction, causal=False, D=128)
    times = panel.pivot(index="L", columns="name", values="median_ms")
    both = times[[name for name in (PLAIN, OURS) if name in times]].dropna()
    if both.shape[1] == 2 and len(both):
        L, gain = both.index[-1], both[PLAIN].iloc[-1] / both[OURS].iloc[-1]
        finding = f"At {_short(L)} tokens plain attention takes {gain:.1f} times as long as flash_attention"
    else:
        finding = "The time of a batch grows with its sequences"
    _title(fig, finding, f"{direction}, full, float16, heads of 128{recorded_on(rows)}")
    for name, curve in _curves(panel, (PLAIN, EFFICIENT, *BASELINES)):
        CURVES.plot(ax, name, curve["L"], curve["median_ms"])
    ax.set(ylabel="ms (median)", yscale="log")
    label_lengths(ax, panel["L"])
    ax.set_xlabel(f"{LENGTH} (16,384 tokens per batch: fewer sequences as they grow)")
    figures.label_lines(ax)
    return fig


def our_ms(rows, direction: str, causal: bool) -> float:
    """The median ms of flash_attention at the longest length that was recorded, heads of 128, float16."""
    return float(chosen(rows, "speed", direction=direction, causal=causal, D=128, name=OURS)["median_ms"].iloc[-1])


def plain_steps(rows):
    """A DataFrame of plain attention's kernels, a row per length: ms of each, and of the softmax the TB/s that
    it moves and the kernel that PyTorch took. rows: as for draw_speed."""
    steps = rows[rows["kind"] == "plain step"].drop_duplicates(["L", "step"], keep="last")
    table = steps.pivot(index="L", columns="step", values="median_ms")[["Q·Kᵀ", "softmax", "P·V"]].round(1)
    softmax = steps[steps["step"] == "softmax"].set_index("L")
    rate = (softmax["bytes"] / softmax["median_ms"] / 1e9).round(1)
    kernel = softmax["kernel"].fillna("").str.split("<").str[0].str.split("::").str[-1].str.split().str[-1].fillna("")
    return table.add_suffix(", ms").assign(**{"softmax, TB/s": rate, "softmax's kernel": kernel})


@beside_yours("attention")
def draw_memory(rows):
    """Extra bytes at the peak against the sequence length, both logarithmic, forward and with the backward.

    Dotted: what cannot be done without, o and lse and the gradients, and one L × L matrix of scores a head.
    """
    fig, axes = figures.new(None, width=10.5, ncols=2, sharey=True)
    titles = "forward", "forward and backward"
    for ax, direction, title in zip(axes, DIRECTIONS, titles, strict=True):
        panel = chosen(rows, "memory", direction=direction)
        for name, curve in _curves(panel, (PLAIN, FLASH, OURS)):
            CURVES.plot(ax, name, curve["L"], curve["extra_bytes"])
        first, lengths = panel.iloc[0], panel["L"].unique()
        last = panel[panel["L"] == panel["L"].max()].set_index("name")["extra_bytes"]
        B, H, D = (int(first[column]) for column in "BHD")
        needed = "o, lse" if direction == "forward" else "o, lse, dq, dk, dv"
        for label, count in (
            ("L × L scores", [score_bytes(B, H, int(L)) for L in lengths]),
            (needed, [tiled_bytes(direction, B, H, int(L), D) for L in lengths]),
        ):
            ax.plot(lengths, count, ":", marker="", color="gray", label=label)
        ax.set_yscale("log")
        figures.set_unit(ax.yaxis, "B")
        label_lengths(ax, panel["L"], f"{title}, {H} heads × {D}")
    finding = "Plain attention's memory grows with L², tiled attention's with L"
    if {PLAIN, OURS} <= set(last.index):
        finding = (
            f"{finding}: {last[PLAIN] / 1e9:.1f} GB against {last[OURS] / 1e9:.2f} GB at {_short(lengths.max())} tokens"
        )
    _title(fig, finding, f"peak beyond the inputs, one sequence, float16{recorded_on(rows)}")
    axes[0].set_ylabel("extra bytes at the peak")
    _label(axes)
    return fig


@beside_yours("attention")
def draw_error(rows, of: str = "o"):
    """Root mean square error over that of the exact result against the length, a panel a dtype; one head of 128.

    of: 'o', 'dq', 'dk' or 'dv'.
    """
    from matplotlib.ticker import LogLocator

    if of not in QUANTITIES:
        raise ValueError(f"of is {of!r}; one of {', '.join(QUANTITIES)} was measured")
    recorded = rows[rows["kind"] == "error"]["dtype"].unique()
    dtypes = [dtype for dtype in ("float16", "bfloat16", "float32") if dtype in recorded] or ["float16"]
    fig, axes = figures.new(None, width=5.25 * len(dtypes), ncols=len(dtypes), squeeze=False, sharey=True)
    times = []  # of ours' error that plain attention's is
    for ax, dtype in zip(axes[0], dtypes, strict=True):
        panel = chosen(rows, "error", dtype=dtype, of=of)
        for name, curve in _curves(panel, (PLAIN, FLASH, OURS, ROUNDED)):
            CURVES.plot(ax, name, curve["L"], curve["rms_error"] / curve["reference_rms"])
        last = panel[panel["L"] == panel["L"].max()].set_index("name")["rms_error"]
        times += [last[PLAIN] / last[OURS]] if {PLAIN, OURS} <= set(last.index) else []
        label_lengths(ax, panel["L"], dtype)
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    finding = f"flash_attention's error of {of}"
    if times:
        least, most = f"{min(times):.1f}", f"{max(times):.1f}"
        span = least if least == most else f"{least} to {most}"
        finding = (
            f"Plain attention's error of {of} is {span} times flash_attention's at {_short(panel['L'].max())} tokens"
        )
    _title(fig, finding, f"against a float64 reference, one head of 128{recorded_on(rows)}")
    axes[0][0].set_ylabel(f"rms error / rms of {of}")
    _label(axes[0])
    return fig


@beside_yours("attention")
def draw_causal(rows, direction: str = "forward", prediction=None):
    """How much faster causal attention is than full, in time, against the length; head dim 128.

    Half the scores are needed, so the limit is 2. prediction: a Prediction for the last length, drawn there; one
    without a number draws nothing.
    """
    fig, ax = figures.new(None, width=8.4)
    gain = None
    full, causal = (chosen(rows, "speed", direction=direction, causal=c, D=128) for c in (False, True))
    for name, curve in _curves(causal, BASELINES):
        beside = full[full["name"] == name].set_index("L")["median_ms"]
        ratio = (beside / curve.set_index("L")["median_ms"]).dropna()
        if len(ratio):
            CURVES.plot(ax, name, ratio.index, ratio)
            gain = ratio.iloc[-1] if name == OURS else gain
    lengths = sorted(causal["L"].unique())
    first = "A causal mask saves half of the scores"
    if gain is not None:
        first = f"With half of the scores flash_attention is {gain:.2f} times as fast at {_short(lengths[-1])} tokens"
    _title(fig, first, f"{direction}, full time over causal time, float16, heads of 128{recorded_on(rows)}")
    ax.plot(lengths, [2] * len(lengths), ":", marker="", color="gray", label="half the scores")
    value = predicted(prediction)
    ax.set(ylabel="times as fast", ylim=(min(0.9, 0.9 * (value or 1)), max(2.15, 1.08 * (value or 0))))
    label_lengths(ax, lengths)
    figures.label_lines(ax)
    figures.mark_prediction(ax, int(lengths[-1]), value)
    return fig


def _curves(panel, names):
    """(name, its rows) of those of `names` that were measured, in that order."""
    return [(name, panel[panel["name"] == name]) for name in names if name in set(panel["name"])]


def label_lengths(ax, lengths, title: str | None = None) -> None:
    """A tick at each length, and the panel's title."""
    tick_each(ax, lengths, base=2)
    ax.set_xlabel(LENGTH)
    if title:
        ax.set_title(title, fontsize="medium")


def _label(axes) -> None:
    for ax in axes:
        figures.label_lines(ax)


def _title(fig, finding: str, what: str) -> None:
    """Two lines: what the figure shows, and of what it is."""
    fig.suptitle(f"{finding}\n{what}", x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])


def _short(length) -> str:
    return f"{int(length) // 1024}k" if int(length) % 1024 == 0 else str(int(length))


def _mask(causal: bool) -> str:
    return "causal" if causal else "full"
