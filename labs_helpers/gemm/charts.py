"""The figures of lab 02 that draw measured times: each is a function of a table of records (see study.py)."""

from __future__ import annotations

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, level, predicted, recorded_on, tick_each
from labs_helpers.draw.roles import color
from labs_helpers.gemm.study import ALONE, EAGER, OURS, PORTABLE
from labs_helpers.measure.datasheet import lookup
from labs_helpers.measure.timing import STEADY

CURVES = Curves({  # 'yours' and 'reference' are the student's own two measurements
    OURS: "ours", "matmul_add_relu, larger tiles": (3, "s"), "matmul_add_relu, 64×64×32": (1, "P"), "torch.compile": 2,
    "addmm + relu": 4, "yours, larger tiles": ("result", "*"), "yours, 64×64×32": ("result", "X"),
    "reference, larger tiles": ("result", "*"), "reference, 64×64×32": ("result", "X"),
})  # fmt: skip


def squares(frame, graph: bool = False):
    """The latest row of each n×n×n and candidate, in the frame's first dtype; not the tiles' order. Timed by calls with
    a cold L2, or from CUDA graphs, back to back."""
    chosen = frame[(frame["M"] == frame["N"]) & (frame["N"] == frame["K"]) & (frame["graph"].astype(bool) == graph)]
    chosen = chosen[chosen["dtype"] == frame["dtype"].iloc[0]]
    chosen = chosen[~chosen["name"].str.contains("GROUP_M")]
    return chosen.drop_duplicates(["M", "name"], keep="last")


@beside_yours("gemm")
def draw_speedup(frames: dict, prediction=None):
    """Speed over eager against n, a panel a machine.

    frames: machine's label → DataFrame as `results.load` gives it. prediction: a Prediction for n = 2048, drawn in
    the first panel; one without a number draws nothing. Bars: eager's median over the candidate's 80th and 20th
    percentile; what sticks out of the medians' range is cut off, and the panel says how wide the spread is.
    """
    fig, axes = figures.panels(_gain(frames), frames, 10.5)
    fig.get_layout_engine().set(wspace=0.04)
    for ax, (machine, frame) in zip(axes, frames.items(), strict=True):
        chosen = squares(frame)
        table = chosen.pivot_table(index="M", columns="name", aggfunc="last", values=["median_ms", "p20_ms", "p80_ms"])
        wide, fast, slow = (table[percentile] for percentile in ("median_ms", "p20_ms", "p80_ms"))
        highest = 1.0
        for name in [n for n in CURVES if n in wide and wide[n].notna().sum() > 1]:
            times, low, high = (wide[EAGER] / ms[name] for ms in (wide, slow, fast))
            CURVES.plot(ax, name, wide.index, times, low, high)
            highest = max(highest, times.max())
        level(ax, 1, role="aside", style=":")
        spread = ((chosen["p80_ms"] - chosen["p20_ms"]) / chosen["median_ms"]).max()
        if spread > STEADY:
            ax.set_title(f"{machine}\nspread up to {spread:.0%}", fontsize="medium")
        ax.set_ylim(0, 1.2 * highest)
        tick_each(ax, wide.index, xlabel="n (all matrices n×n)")
    axes[0].set_ylabel("times eager's speed")
    axes[0].set_ylim(top=max(axes[0].get_ylim()[1], 1.08 * (predicted(prediction) or 0)))
    for ax in axes:
        figures.label_lines(ax)
    figures.mark_prediction(axes[0], 2048, prediction)
    return fig


def _gain(frames: dict) -> str:
    """The figure's title: what `fused_matmul` gains over eager at the ends of the first machine's range."""
    table = squares(next(iter(frames.values()))).pivot_table(
        index="M", columns="name", values="median_ms", aggfunc="last"
    )
    if OURS not in table or len(table.index) < 2:
        return "D = ReLU(A·B + C): speed over eager PyTorch"
    gain = (table[EAGER] / table[OURS]).dropna()
    first, last = gain.index[0], gain.index[-1]
    return f"Fused: {gain[first]:.1f} × eager's speed at n = {first}, {gain[last]:.2f} × at {last}"


@beside_yours("gemm")
def draw_order(frame):
    """How much longer `fused_matmul` takes than with the best GROUP_M, a panel per size, recorded by `measure_order`,
    with the runs' spread. The title names the sizes at which the spreads of the best and the worst do not meet."""
    if "GROUP_M" not in frame:
        raise ValueError("no record here is of an order of tiles: the study measures them on a GPU")
    orders = frame[frame["GROUP_M"].notna()].drop_duplicates(["M", "GROUP_M"], keep="last")
    sizes = sorted(orders["M"].unique())
    ends = {n: order.sort_values("median_ms").iloc[[0, -1]] for n, order in orders.groupby("M")}
    costs = {
        n: worst["median_ms"] / best["median_ms"] - 1
        for n, (best, worst) in ((n, (two.iloc[0], two.iloc[1])) for n, two in ends.items())
        if best["p80_ms"] < worst["p20_ms"]
    }
    worst = ", ".join(f"{cost:.0%} at n = {n}" for n, cost in costs.items()) or "no more than the runs differ"
    panels = [f"n = {n}" for n in sizes]
    fig, axes = figures.panels(f"The worst order costs {worst}", panels, 8.5, sharey=True)
    figures.write_below(fig, f"median, 20th to 80th percentile{recorded_on(orders)}")
    for ax, n in zip(axes, sizes, strict=True):
        order = orders[orders["M"] == n].sort_values("GROUP_M")
        low, more, high = (100 * (order[ms] / order["median_ms"].min() - 1) for ms in ("p20_ms", "median_ms", "p80_ms"))
        ax.errorbar(order["GROUP_M"], more, yerr=[more - low, high - more], marker="o", capsize=4)
        level(ax, 0, role="aside", style=":")
        tick_each(ax, order["GROUP_M"], xlabel="GROUP_M")
    axes[0].set_ylabel("% more time than the best order")
    return fig


@beside_yours("gemm")
def draw_ladder(frame, n: int):
    """The ladder at one size: a bar per step, in TFLOP/s, with the runs' 20th to 80th percentile; lines: cuBLAS on A·B
    alone, and the datasheet's roof."""
    at = squares(frame).query("M == @n").set_index("name")
    rate = 2 * n**3 / at["median_ms"] / 1e9
    ours = ("masked_matmul + add + relu", "matmul_add_relu, 64×64×32", "matmul_add_relu, larger tiles", PORTABLE, OURS)
    baselines = (EAGER, "addmm + relu", "_addmm_activation", "torch.compile", "torch.compile, max-autotune")
    steps = [step for step in ours + baselines if step in rate]
    best = max(steps, key=lambda step: rate[step])
    fig, ax = figures.new(f"n = {n}: {best} at {rate[best] / rate[ALONE]:.0%} of A·B alone", height=4.6)
    texts = {step: f"{rate[step]:.0f}" if rate[step] >= 10 else f"{rate[step]:.2g}" for step in steps}
    roles = {step: "ours" if step in ours else "reference" for step in steps}
    spread = {step: tuple(2 * n**3 / at.loc[step, ["p80_ms", "p20_ms"]] / 1e9) for step in steps}
    bars = {step: rate[step] for step in steps}
    draw_bars(ax, bars, roles, texts, spread=spread, xlabel="TFLOP/s (2·n³ over the whole time)")
    figures.write_below(fig, f"median; thin line: 20th to 80th percentile{recorded_on(frame)}")
    roofs = {ALONE: rate[ALONE]}
    if chip := lookup(frame["on.machine"].iloc[0]):
        roofs["datasheet's roof"] = chip.fp16_flops / 1e12
    for name, roof in roofs.items():
        ax.axvline(roof, linestyle="--", color=color("theirs"), zorder=0)
        ax.text(roof, -0.9, name, ha="right", va="center", fontsize="small")
    ax.set_xlim(0, 1.05 * max(*roofs.values(), rate[best]))
    ax.set_ylim(len(steps) - 0.4, -1.4)
    return fig
