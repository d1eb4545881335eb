"""Draw how much the time model's choice loses at shapes that it was not fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.roles import color


def draw_losses(losses: Mapping[str, Iterable[float]]):
    """Draw the sorted losses, with one curve per machine.

    losses: machine → one number per shape, the chosen configuration's time over the best measured, minus 1.
    """
    least = min(np.quantile(list(lost), 0.95) for lost in losses.values())
    fig, ax = figures.new(f"At 1 shape in 20, the model's choice loses over {least:.0%}")
    figures.write_below(fig, f"{' and '.join(losses)}, recorded; the fit leaves out each shape in turn")
    for (machine, lost), role, line in zip(losses.items(), (0, 1), ("-", "--"), strict=False):
        lost = np.sort(list(lost))
        share = np.arange(1, len(lost) + 1) / len(lost)
        ends = f"median {np.median(lost):.1%}, 95% of shapes below {np.quantile(lost, 0.95):.1%}"
        ax.step(100 * share, 100 * lost, line, where="pre", color=color(role), label=f"{machine}: {ends}")
    ax.set(xlabel="% of the shapes, sorted by loss", ylabel="% slower than the best measured")
    ax.legend(loc="upper left")
    return fig
