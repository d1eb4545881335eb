"""Draw time and memory with activation checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, recorded_on, tick_each
from labs_helpers.draw.roles import color
from labs_helpers.transformer.charts.words import SPREAD, no_records, shape_text, words
from labs_helpers.transformer.records import setup_of, timed, varied_in

CURVES = Curves({
    "formula": ("formula", ""), "one more\nforward pass": ("formula", ""), "no\ncheckpoints": ("aside", ""),
    "measured": "measured",
})  # fmt: skip


@beside_yours("transformer")
def draw_checkpoints(
    frame: pandas.DataFrame,
    formula: Callable[[int], float] | None = None,
    prediction: Any = None,
    predicted_at: int = 4,
    **wanted: Any,
) -> Figure:
    """Draw peak memory and time of a step against the number of checkpointed segments, beside a step without
    checkpoints.

    formula(segments): the peak in bytes, drawn dashed. The predicted time adds one measured forward pass. prediction: a
    Prediction of the share of the peak that remains with `predicted_at` segments. wanted: columns' values, if several
    settings would do.
    """
    every = varied_in(timed(frame, **wanted).dropna(subset="peak_bytes"), "segments")
    rows, without = every[every["segments"] > 0], every[every["segments"] == 0]
    if rows.empty or without.empty:
        return no_records("time and peak of steps with and without checkpoints")
    plain, best = without.iloc[0], rows.loc[rows["peak_bytes"].idxmin()]
    title = (
        f"{best['segments']} segments: {best['peak_bytes'] / plain['peak_bytes']:.0%} of the memory, "
        f"{best['step_ms'] / plain['step_ms']:.2f} times the time\n"
        f"{shape_text(plain)}, {words(setup_of(plain))}{recorded_on(rows)}"
    )
    fig, (memory, time) = figures.panels(title, ("peak memory of a step", "time of a step"), 9.5, 3.7)
    segments = rows["segments"].to_numpy()
    if formula is not None:
        CURVES.plot(memory, "formula", segments, [formula(int(count)) for count in segments], linestyle="--")
    again = 0 * segments + (plain["step_ms"] + plain["forward_ms"]) / 1e3
    CURVES.plot(time, "one more\nforward pass", segments, again, linestyle="--")
    for ax, unit, values, alone in (
        (memory, "B", rows["peak_bytes"], plain["peak_bytes"]),
        (time, "s", rows["step_ms"] / 1e3, plain["step_ms"] / 1e3),
    ):
        CURVES.plot(ax, "no\ncheckpoints", segments, 0 * segments + alone, linestyle=":")
        CURVES.plot(ax, "measured", segments, values)
        tick_each(ax, segments, xlabel="checkpointed segments")
        ax.set_ylim(0, 1.15 * max(ax.get_ylim()[1], alone))
        figures.set_unit(ax.yaxis, unit)
        figures.label_lines(ax, gap=2.6)
    time.vlines(segments, rows["step_p20_ms"] / 1e3, rows["step_p80_ms"] / 1e3, color=color("measured"), **SPREAD)
    figures.mark_prediction(memory, predicted_at, prediction, scale=plain["peak_bytes"])
    return fig
