"""The drawings of lab 09: the blocks of a vector, and the bytes that doubling it moves."""

from __future__ import annotations

from labs_helpers.draw import figures


def draw_blocks(n: int, block: int):
    """A vector of n elements with the block of `block` elements of each program; the last may stick out."""
    fig, ax = figures.new(f"{n} elements, {block} a program", height=1.8)
    for program, first in enumerate(range(0, n, block)):
        ax.barh(0, block, left=first, color=list(figures.COLORS.values())[program % 6], edgecolor="white")
        ax.text(first + block / 2, 0, f"program {program}", ha="center", va="center", color="white")
    ax.axvline(n, color=figures.COLORS["black"])
    ax.set(xlabel="element", yticks=[])
    ax.grid(False)
    return fig


def draw_bytes(sizes, counted, prediction=None):
    """Counted bytes against the number of elements. prediction: one for the last size, in bytes, or None."""
    fig, ax = figures.new("What doubling moves")
    ax.plot(sizes, counted)
    ax.set(xlabel="elements", ylabel="bytes loaded and stored")
    if prediction is not None:
        figures.mark_prediction(ax, sizes[-1], prediction.value)
    return fig
