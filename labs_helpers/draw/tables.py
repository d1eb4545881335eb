"""Tables as pictures: a color and a number per cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

if TYPE_CHECKING:
    import pandas


def draw_table(
    ax: Axes,
    table: pandas.DataFrame,
    text: str,
    cmap: str,
    low: float,
    high: float,
    dark: Callable[[float], bool],
) -> None:
    """Draw `table`, a DataFrame of numbers, with '–' for NaN. text: the format of the numbers. low, high: the ends
    of the color scale. dark: a function of a number that tells whether its cell is dark and its text white."""
    values = table.to_numpy()
    ax.imshow(values, cmap=cmap, vmin=low, vmax=high)
    for (i, j), value in np.ndenumerate(values):
        shown = "–" if np.isnan(value) else format(value, text)
        ax.text(j, i, shown, ha="center", va="center", color="white" if dark(value) else "black", fontsize="small")
    ax.set_xticks(range(len(table.columns)), list(table.columns))
    ax.set_yticks(range(len(table.index)), list(table.index))
    ax.grid(False)
