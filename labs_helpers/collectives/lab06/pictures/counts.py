"""Draw the bytes per rank, and the fit of α and β."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.curves import level, log_bytes, predicted, upright
from labs_helpers.draw.roles import color


def draw_bytes(sent: dict, nbytes: int, prediction=None):
    """Draw the bytes that each rank sends, with one group of bars per rank.

    sent: algorithm → list of each rank's bytes, as in `Practice.bytes_sent`; the naive one first. nbytes: of one rank's
    vector, drawn as a line. prediction: how many times fewer bytes the last algorithm's busiest rank sends than the
    first one's.
    """
    size = len(next(iter(sent.values())))
    busiest = [max(counts) for counts in sent.values()]
    fig, ax = figures.new(f"In a ring, the busiest rank sends {busiest[0] / busiest[-1]:.3g} times fewer bytes")
    width = 0.8 / len(sent)
    for i, (name, counts) in enumerate(sent.items()):
        ax.bar(np.arange(size) + (i + 0.5) * width - 0.4, counts, width, label=name, color=color(i))
    level(ax, nbytes, "one vector", style=":", right=True)
    ax.set_xlim(-0.6, size + 0.7)
    ax.set_xticks(range(size), [f"rank {rank}" for rank in range(size)])
    ax.grid(axis="x", visible=False)
    figures.set_unit(ax.yaxis, "B")
    ax.legend()
    if (value := predicted(prediction) or 0) > 0:
        first, *_, last = sent.values()
        figures.mark_prediction(ax, int(np.argmax(last)) + 0.2, max(first) / value)
    return fig


def draw_fit(nbytes, seconds, alpha: float, beta: float, title: str = "A message of n bytes takes α + βn"):
    """Draw the measured times of one message against its size, both axes logarithmic, and the fitted α + βn with its
    two parts.

    nbytes: bytes. seconds: s. alpha: s per message. beta: s per byte.
    """
    nbytes = np.asarray(nbytes, float)
    smooth = np.geomspace(nbytes.min(), nbytes.max(), 100)
    fig, ax = figures.new(title)
    ax.plot(nbytes, seconds, "o", color=color("measured"), label="measured")
    fitted = f"α + βn: α = {1e6 * alpha:.2g} µs, 1/β = {1e-9 / beta:.2g} GB/s"
    ax.plot(smooth, alpha + beta * smooth, marker="", color=color(1), label=fitted)
    upright(ax, alpha / beta, f"n = α/β = {alpha / beta:,.0f} bytes", style=":", top=False)
    log_bytes(ax)
    ax.set_ylabel("one way")
    ax.legend(loc="upper left")
    return fig
