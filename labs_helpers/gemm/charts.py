"""Draw the times that the GEMM study recorded (see study.py)."""

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
    """Select the latest record of each candidate at each square shape, M = N = K.

    Only records in the frame's first dtype count, and none from the study of tile orders. graph: take the times from
    CUDA graphs, which start calls back to back, instead of single calls with an empty L2 cache.
    """
    chosen = frame[(frame["M"] == frame["N"]) & (frame["N"] == frame["K"]) & (frame["graph"].astype(bool) == graph)]
    chosen = chosen[chosen["dtype"] == frame["dtype"].iloc[0]]
    chosen = chosen[~chosen["name"].str.contains("GROUP_M")]
    return chosen.drop_duplicates(["M", "name"], keep="last")


@beside_yours("gemm")
def draw_speedup(frames: dict, prediction=None):
    """Draw each candidate's speed relative to eager PyTorch against n, with one panel per machine.

    frames: label of a machine → DataFrame as `results.load` returns it. prediction: a Prediction for n = 2048, drawn in
    the first panel if it has a value. Error bars divide eager's median by the candidate's 80th and 20th percentiles.
    The axis is scaled to the medians, so it may cut off an error bar; the panel's title then gives the spread.
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
    axes[0].set_ylabel("speed relative to eager")
    axes[0].set_ylim(top=max(axes[0].get_ylim()[1], 1.08 * (predicted(prediction) or 0)))
    for ax in axes:
        figures.label_lines(ax)
    figures.mark_prediction(axes[0], 2048, prediction)
    return fig


def _gain(frames: dict) -> str:
    """Write the figure's title: the speed-up of `fused_matmul` over eager at the smallest and largest n."""
    table = squares(next(iter(frames.values()))).pivot_table(
        index="M", columns="name", values="median_ms", aggfunc="last"
    )
    if OURS not in table or len(table.index) < 2:
        return "D = ReLU(A·B + C): speed relative to eager PyTorch"
    gain = (table[EAGER] / table[OURS]).dropna()
    first, last = gain.index[0], gain.index[-1]
    return f"Fused: {gain[first]:.1f}× as fast as eager at n = {first}, {gain[last]:.2f}× at {last}"


@beside_yours("gemm")
def draw_order(frame):
    """Draw how much longer `fused_matmul` takes with each GROUP_M than with the best one, with one panel per n.

    frame: records with those of `measure_order` among them. The title gives the cost of the worst order at each n where
    its spread and that of the best order do not overlap. Raises ValueError if the frame has no such records.
    """
    if "GROUP_M" not in frame:
        raise ValueError("These records contain no orders of tiles. The study measures them on a GPU.")
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
    """Draw the TFLOP/s of each candidate at one n as bars, with the 20th to 80th percentile.

    Vertical lines mark the rate of A·B alone with cuBLAS and, for a GPU with a datasheet, its peak rate.
    """
    at = squares(frame).query("M == @n").set_index("name")
    rate = 2 * n**3 / at["median_ms"] / 1e9
    ours = ("masked_matmul + add + relu", "matmul_add_relu, 64×64×32", "matmul_add_relu, larger tiles", PORTABLE, OURS)
    baselines = (EAGER, "addmm + relu", "_addmm_activation", "torch.compile", "torch.compile, max-autotune")
    steps = [step for step in ours + baselines if step in rate]
    best = max(steps, key=lambda step: rate[step])
    fig, ax = figures.new(f"n = {n}: {best} reaches {rate[best] / rate[ALONE]:.0%} of A·B alone", height=4.6)
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
        ax.text(roof, -0.9, f"{name} ", ha="right", va="center", fontsize="small")
    ax.set_xlim(0, 1.05 * max(*roofs.values(), rate[best]))
    ax.set_ylim(len(steps) - 0.4, -1.4)
    return fig
