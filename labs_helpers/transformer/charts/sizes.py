"""Draw where the time goes as model and context grow."""

from __future__ import annotations

import dataclasses

import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import percent, recorded_on, tick_each
from labs_helpers.draw.words import length_text
from labs_helpers.transformer.charts.words import CURVES, EAGER, SPREAD, by_size, no_records, words
from labs_helpers.transformer.records import timed, tokens
from labs_helpers.transformer.setups import Setup

FLOAT32 = dataclasses.replace(EAGER, precision="fp32")


@beside_yours("transformer")
def draw_sizes(frame: pandas.DataFrame, setup: Setup | None = None) -> Figure:
    """Draw the time per token of forward pass, backward pass and step against the context length, one panel per size,
    with MFU beside them: medians, and bars for the 20th to 80th percentile.

    It uses the records of the number of tokens per step, or of sequences, that occurs most. setup: by default EAGER;
    without its records, as on a CPU, the same in float32.
    """
    if setup is None:
        setup = FLOAT32 if timed(frame, EAGER).empty and len(timed(frame, FLOAT32)) else EAGER
    rows = timed(frame, setup)
    if rows.empty:
        return no_records(f"steps with {words(setup)}")
    ways = tokens(rows).rename("tokens per step"), rows["batch"].rename("sequences per step")
    same = max(ways, key=lambda values: values.value_counts().max())
    same = same[same == same.mode().iloc[0]]
    rows = rows.loc[same.index]
    curves = by_size(rows)
    first, last = rows["length"].min(), rows["length"].max()
    factors = [c["step_ms"].iloc[-1] / c["step_ms"].iloc[0] for c in curves.values()]
    ends = " to ".join(dict.fromkeys(f"{factor:.1f}" for factor in (min(factors), max(factors))))
    setting = f"{words(setup)}, {same.iloc[0]:,} {same.name}{recorded_on(rows)}"
    title = f"A token takes {ends} times as long at {length_text(last)} as at {length_text(first)}\n{setting}"
    fig, axes = figures.panels(title, [*curves, "MFU"], 3.3 + 2.4 * len(curves), 3.7)
    for ax, (size, curve) in zip(axes, curves.items(), strict=False):
        ax.sharey(axes[0])
        for phase, dashes in (("backward", "--"), ("forward", ":"), ("step", "-")):
            low, middle, high = (curve[f"{phase}{part}_ms"] / 1e3 / tokens(curve) for part in ("_p20", "", "_p80"))
            CURVES.plot(ax, size, curve["length"], middle, linestyle=dashes, label=phase)
            ax.vlines(curve["length"], low, high, color=CURVES.color(size), **SPREAD)
        ax.tick_params(labelleft=ax is axes[0])
        CURVES.plot(axes[-1], size, curve["length"], curve["mfu"])
    axes[0].set(yscale="log", ylabel="time per token")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    figures.set_unit(axes[0].yaxis, "s")
    for ax in axes:
        tick_each(ax, rows["length"], base=2, xlabel="context length")
    figures.label_lines(axes[-2])
    if rows["mfu"].isna().all():
        figures.say("no datasheet\nof this machine", axes[-1])
    else:
        axes[-1].set_ylim(0, None)
        percent(axes[-1])
        figures.label_lines(axes[-1])
    return fig
