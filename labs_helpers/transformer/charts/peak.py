"""Draw the peak memory of a step against the context length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import predicted, recorded_on
from labs_helpers.draw.roles import color
from labs_helpers.draw.words import length_text
from labs_helpers.transformer import counts
from labs_helpers.transformer.charts.words import EAGER, no_records, words
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.records import timed, tokens
from labs_helpers.transformer.setups import PRECISIONS, Setup

BANDS = (("limit", 0.15), ("all", 0.3), ("wrong", 0.4))  # role, opacity


@beside_yours("transformer")
def draw_peak(
    frame: pandas.DataFrame,
    formula: Callable[[TransformerConfig, int, int, int], float] = counts.step_peak,
    prediction: Any = None,
    size: str = "small",
    setup: Setup = EAGER,
) -> Figure:
    """Draw the peak memory of a step against the context length, at the number of tokens per step with the most
    records. It has three parts: what was allocated before the step, and of the line fitted to the rest, the part that
    does not depend on the length and the part that does, the scores.

    formula(config, batch, length, itemsize): the peak in bytes, drawn dashed. prediction: a Prediction of the length at
    which the scores are half of the kept activations; if it is outside the axis, the figure shows it as text.
    """
    rows = timed(frame, setup, size=size).dropna(subset=["peak_bytes", "state_bytes"])
    rows = max((group for _, group in rows.groupby(tokens(rows))), key=len, default=rows)
    if len(rows) < 3:
        return no_records(f"{size} at three context lengths, with {words(setup)}")
    lengths, peaks = rows["length"].to_numpy(), rows["peak_bytes"].to_numpy()
    first, last = lengths[0], lengths[-1]
    states = rows["state_bytes"].mean()
    per_token, rest = np.polyfit(lengths, peaks, 1)
    others = rest - states
    itemsize = PRECISIONS[setup.precision].itemsize
    told = [formula(SIZES[size], row.batch, row.length, itemsize) for row in rows.itertuples()]
    title = (
        f"The peak grows {peaks[-1] / peaks[0]:.1f} times; the formula is within {abs(told / peaks - 1).max():.1%}\n"
        f"{size}, {tokens(rows).iloc[0]:,} tokens per step, {words(setup)}{recorded_on(rows)}"
    )
    fig, (ax,) = figures.panels(title, [""], 9)
    ends = np.array([0, 1.04 * last])
    below = 0 * ends
    parts = {"states": states, "the rest, loss too": others, "∝ L: scores": per_token * ends}
    for (name, part), (role, alpha) in zip(parts.items(), BANDS, strict=True):
        above = below + part
        ax.fill_between(ends, below, above, color=color(role), alpha=alpha, linewidth=0)
        middle = (below[-1] + above[-1]) / 2  # a curve without a line, for its name beside the axes
        ax.plot(ends[-1:], [middle], linestyle="none", marker="", color=color(role), label=name)
        below = above
    ax.plot(lengths, told, "--", marker="", color=color("formula"), label="formula")
    ax.plot(lengths, peaks, "o", color=color("measured"), label="measured")
    ax.set(xlabel="context length L", ylabel="peak of a step", xlim=(0, ends[-1]), ylim=(0, None))
    ax.set_xticks(lengths, [length_text(length) for length in lengths])
    figures.set_unit(ax.yaxis, "B")
    figures.label_lines(ax)
    kept = counts.saved_activations(SIZES[size], int(rows["batch"].iloc[0]), int(first), itemsize, setup.attention)
    scores = kept.get("probabilities", 0) + kept.get("mask", 0)
    half = first * (sum(kept.values()) - scores) / scores if scores else np.inf  # the same tokens: the same activations
    if half < ends[-1]:
        ax.axvline(half, linestyle=":", color=color("wrong"), label="_half")
        look: dict[str, Any] = {
            "xycoords": ax.get_xaxis_transform(),
            "xytext": (6, 0),
            "textcoords": "offset points",
            "va": "top",
        }
        ax.annotate(f"from {half:,.0f} tokens on the scores are\nmost of the activations kept", (half, 0.97), **look)
    guess = predicted(prediction)
    if guess is not None and 0 <= guess <= ends[-1]:
        figures.mark_prediction(ax, guess, rest + per_token * guess)
    elif guess is not None:
        ax.text(0.98, 0.03, f"your prediction: {guess:,.0f}", transform=ax.transAxes, ha="right", style="italic")
    return fig
