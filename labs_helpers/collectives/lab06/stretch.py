"""The stretch exercise of lab 06: broadcast along a binomial tree, and count the steps of each way."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.interface import broadcast
from labs_helpers.draw import figures
from labs_helpers.draw.curves import tick_each
from labs_helpers.practice import PracticeError, practice

SIZES = (2, 3, 4, 6, 8, 12, 16)
VECTOR = np.arange(1.0, 101.0)


def from_the_root(comm, data) -> None:
    """Broadcast with the root sending to one rank after another: size − 1 steps."""
    if comm.rank:
        comm.Recv(data, source=0)
    else:
        for rank in range(1, comm.size):
            comm.Send(data, dest=rank)


def down_a_tree(comm, data) -> None:
    """Broadcast with every rank that has the vector passing it on, so that their number doubles: ⌈log₂ size⌉ steps."""
    broadcast(comm, data, root=0, validate=False)


def steps(function, size: int) -> int | None:
    """Return the steps in which function(comm, data) brings rank 0's vector to all ranks; None if it does not."""

    def on_rank(comm):
        data = VECTOR.copy() if comm.rank == 0 else np.full_like(VECTOR, np.nan)
        function(comm, data)
        return data

    ran = practice(on_rank, size, timeout=2)
    right = all(np.array_equal(result, VECTOR) for result in ran.results) and not ran.unreceived
    return ran.steps if right and ran.messages else None


def draw_stretch(student):
    """Draw the steps against the number of ranks: the root alone, ours, and the student's if it is right for every
    number."""
    ways = {"the root, one after another": from_the_root, "ours, a tree": down_a_tree, "yours": student}
    fig, ax = figures.new("A tree brings a vector to 16 ranks in 4 steps, its root alone in 15")
    for name, function in ways.items():
        try:
            taken = [steps(function, size) for size in SIZES]
        except PracticeError as error:
            print(f"{name}: {error}")
            continue
        if None not in taken:
            ax.plot(SIZES, taken, label=name, linestyle="--" if name == "yours" else "-")
        elif name == "yours":
            missing = [size for size, count in zip(SIZES, taken, strict=True) if count is None]
            print(f"yours does not bring the vector to all of {', '.join(map(str, missing))} ranks yet")
    ax.set(ylabel="steps", ylim=(0, None))
    tick_each(ax, SIZES, xlabel="ranks")
    ax.legend()
    return fig
