"""Draw lab 10's figures: stages and their costs, bubbles, measured timelines, and losses without a flush."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.curves import percent, tick_each
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color
from labs_helpers.pipeline.charts import draw_timelines
from labs_helpers.pipeline.simulate import Timeline
from labs_helpers.pipeline.stages import Span as Parts


def draw_stages(costs: Sequence[float], cuts: Mapping[str, Sequence[Parts]]) -> Figure:
    """Draw the stages of each cut as bars of their parts, with a line at the average. costs: of the parts, forward."""
    block = costs[1]
    slowest = {name: max(sum(costs[a:b]) for a, b in spans) / block for name, spans in cuts.items()}
    first, *_, last = slowest.values()
    height = 1.1 + sum(0.5 + 0.28 * len(spans) for spans in cuts.values())
    title = f"The slowest stage costs {last:.3g} blocks instead of {first:.3g}"
    fig, axes = figures.new(title, 7.6, height, nrows=len(cuts), squeeze=False, sharex=True)
    for ax, (name, spans) in zip(axes[:, 0], cuts.items(), strict=True):
        rows = {f"rank {rank}": [_parts(costs, span, block)] for rank, span in enumerate(spans)}
        draw_lanes(ax, rows, xlabel="cost of a stage, in blocks")
        ax.set_title(name, fontsize=8.5, loc="left")
        ax.axvline(sum(costs) / len(spans) / block, color=color("limit"), linestyle="--", linewidth=1.2)
        ax.label_outer()
    axes[0, 0].set_xlim(0, 1.05 * max(slowest.values()))
    figures.legend_below(fig, {"a block": "forward", "the output": "backward"})
    figures.write_below(fig, "dashed: the average of the stages")
    return fig


def _parts(costs: Sequence[float], span: Parts, block: float) -> list[Span]:
    bars, start = [], 0.0
    for part in range(*span):
        stop = start + costs[part] / block
        bars.append(Span(start, stop, color("backward" if part == len(costs) - 1 else "forward")))
        start = stop
    return [bar for bar in bars if bar.stop > bar.start]


def draw_bubbles(
    shares: Mapping[str, Mapping[int, float]], over_work: Mapping[int, float], at: int, prediction=None
) -> Figure:
    """Draw the bubble over the number of micro-batches.

    shares: name → micro-batches → the bubble as a share of the step. over_work: micro-batches → the bubble over the
    useful time. prediction: of the share in %, for `at` micro-batches.
    """
    fig, ax = figures.new("Twice the micro-batches, about half the bubble")
    ax.plot(list(over_work), list(over_work.values()), "--", color=color("formula"), label="GPipe, over useful time")
    for number, (name, share) in enumerate(shares.items()):
        ax.plot(list(share), list(share.values()), "o-", color=color(number), label=f"{name}, share of the step")
    ax.set_xscale("log", base=2)
    ax.set(ylabel="bubble", ylim=(0, 1))
    tick_each(ax, list(over_work), base=2, xlabel="micro-batches")
    percent(ax)
    figures.legend_below(fig)
    figures.mark_prediction(ax, at, None if prediction is None or prediction.value is None else prediction.value / 100)
    return fig


def draw_measured(simulated: Timeline, measured: Timeline) -> Figure:
    """Draw a measured timeline below the simulated one of the same schedule, on the same time axis."""
    name = measured.name
    pair = [simulated._replace(name=f"{name}, simulated"), measured._replace(name=f"{name}, on this machine's ranks")]
    more = measured.seconds / simulated.seconds - 1
    words = f"{more:.0%} longer than simulated" if more >= 0 else f"{-more:.0%} shorter than simulated"
    return draw_timelines(pair, f"The measured step is {words}", unit="s")


def draw_losses(runs: Mapping[str, Mapping[str, Sequence[float]]], window: int = 10) -> Figure:
    """Draw the losses of training, one panel per learning rate. runs: learning rate → way → the loss of every step.

    window: the steps over which each point is averaged.
    """
    fig, axes = figures.new(
        "Old weights slow down training at a large learning rate", 8.2, 3.4, ncols=len(runs), squeeze=False, sharey=True
    )
    for ax, (rate, ways) in zip(axes[0], runs.items(), strict=True):
        for number, (name, losses) in enumerate(ways.items()):
            means = [sum(losses[i : i + window]) / window for i in range(0, len(losses) - window + 1, window)]
            steps = [window * (i + 0.5) for i in range(len(means))]
            ax.plot(steps, means, color=color(number), label=name)
        ax.set(xlabel="step", title=f"learning rate {rate}")
    axes[0, 0].set_ylabel("loss")
    figures.legend_below(fig)
    return fig
