"""The drawings of lab 12: the blocks of a vector, and the bytes that doubling it moves."""

from __future__ import annotations

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.roles import color, rank_color


def draw_blocks(n: int, block: int):
    """A vector of n elements with the block of `block` elements of each program; the last may stick out."""
    fig, ax = figures.new(f"{n} elements, {block} a program", height=1.8)
    for program, first in enumerate(range(0, n, block)):
        draw_box(ax, (first, -0.4), block, 0.8, rank_color(program), f"program {program}", edge=color("edge"))
    ax.axvline(n, color=color("limit"))
    ax.set(xlabel="element", xlim=(0, -(-n // block) * block), ylim=(-0.5, 0.5), yticks=[])
    ax.grid(False)
    return fig


def draw_bytes(sizes, counted, prediction=None):
    """Counted bytes against the number of elements. prediction: one for the last size, in bytes, or None."""
    fig, ax = figures.new("What doubling moves")
    ax.plot(sizes, counted)
    ax.set(xlabel="elements", ylabel="bytes loaded and stored")
    figures.mark_prediction(ax, sizes[-1], prediction)
    return fig
