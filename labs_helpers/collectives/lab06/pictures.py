"""The drawings of lab 06 that belong to its exercises: bytes a rank, and the fit of α and β."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures


def draw_bytes(sent: dict, nbytes: int, prediction=None):
    """Bytes that each rank sends, a group of bars a rank.

    sent: algorithm → list with the bytes of each rank, as `Practice.bytes_sent`; the naive one first. nbytes: of one
    rank's vector, a line. prediction: how many times fewer the last one's busiest rank sends than the first one's.
    """
    size = len(next(iter(sent.values())))
    busiest = [max(counts) for counts in sent.values()]
    fig, ax = figures.new(f"Round the ring the busiest rank sends {busiest[0] / busiest[-1]:.3g} times fewer bytes")
    width = 0.8 / len(sent)
    for i, ((name, counts), color) in enumerate(zip(sent.items(), figures.COLORS.values(), strict=False)):
        ax.bar(np.arange(size) + (i + 0.5) * width - 0.4, counts, width, label=name, color=color)
    ax.axhline(nbytes, color=figures.INK, linestyle=":", linewidth=1.2)
    ax.annotate("one vector", (size - 0.5, nbytes), xytext=(0, 3), textcoords="offset points")
    ax.set_xlim(-0.6, size + 0.7)
    ax.set_xticks(range(size), [f"rank {rank}" for rank in range(size)])
    ax.grid(axis="x", visible=False)
    figures.set_unit(ax.yaxis, "B")
    ax.legend()
    if prediction is not None and (prediction.value or 0) > 0:
        first, last = list(sent.values())[0], list(sent.values())[-1]
        figures.mark_prediction(ax, int(np.argmax(last)) + 0.2, max(first) / prediction.value)
    return fig


def draw_fit(nbytes, seconds, alpha: float, beta: float, title: str = "A message of n bytes takes α + βn"):
    """Measured times of one way against the size, both axes logarithmic, and the fitted α + βn with its two parts.

    nbytes: bytes. seconds: s. alpha: s per message. beta: s per byte.
    """
    nbytes = np.asarray(nbytes, float)
    smooth = np.geomspace(nbytes.min(), nbytes.max(), 100)
    fig, ax = figures.new(title)
    ax.plot(nbytes, seconds, "o", color=figures.COLORS["blue"], label="measured")
    ax.plot(
        smooth,
        alpha + beta * smooth,
        marker="",
        color=figures.COLORS["vermillion"],
        label=f"α + βn: α = {1e6 * alpha:.2g} µs, 1/β = {1e-9 / beta:.2g} GB/s",
    )
    ax.axvline(alpha / beta, color=figures.INK, linestyle=":", linewidth=1.2)
    ax.annotate(
        f"n = α/β = {alpha / beta:,.0f} bytes",
        (alpha / beta, min(seconds)),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )
    ax.set(xscale="log", yscale="log", xlabel="bytes", ylabel="one way")
    figures.set_unit(ax.xaxis, "B")
    figures.set_unit(ax.yaxis, "s")
    ax.legend(loc="upper left")
    return fig
