"""Curves that look the same in every figure of a topic, and the axes, titles and predictions around them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.measure.records import label
from labs_helpers.measure.timing import STEADY, Timing

if TYPE_CHECKING:
    import pandas


class Curves:
    """The look of a topic's curves: name → (marker, colour's name in figures.COLORS), drawn in this order."""

    def __init__(self, looks: Mapping[str, tuple[str, str]], **style: Any) -> None:
        self.looks, self.style = dict(looks), style

    def __iter__(self) -> Iterator[str]:
        return iter(self.looks)

    def color(self, name: str) -> str:
        return figures.COLORS[self.looks[name][1]] if name in self.looks else "gray"  # one that has no look yet

    def marker(self, name: str) -> str:
        return self.looks[name][0] if name in self.looks else "."

    def plot(
        self,
        ax: Axes,
        name: str,
        x: Iterable[float],
        y: Iterable[float],
        low: Iterable[float] | None = None,
        high: Iterable[float] | None = None,
    ) -> None:
        """One curve with its name; with `low` and `high` a bar of spread at each point."""
        ax.plot(list(x), list(y), marker=self.marker(name), color=self.color(name), label=name, **self.style)
        if low is not None and high is not None:
            ax.vlines(list(x), list(low), list(high), color=self.color(name), linewidth=1.2, alpha=0.5)


def tick_each(ax: Axes, values: Iterable[int], base: int = 10) -> None:
    """A logarithmic x axis with a tick at each of the values and nowhere else; multiples of 1,024 as '4k'."""
    ticks = sorted(set(map(int, values)))
    ax.set_xscale("log", base=base)
    ax.set_xticks(ticks, [f"{n // 1024}k" if base == 2 and n % 1024 == 0 else str(n) for n in ticks])
    ax.minorticks_off()


def recorded_on(rows: pandas.DataFrame) -> str:
    """', NVIDIA H200 (recorded)' or ', NVIDIA H200, your run' where the records, a DataFrame, say so; else ''."""
    return f", {label(rows['on.machine'].iloc[0])}" if "on.machine" in rows and len(rows) else ""


def warn_of_spread(fig: Figure, rows: pandas.DataFrame | list[dict[str, Any]]) -> None:
    """Writes below the figure how far the times in `rows` (median_ms, p20_ms, p80_ms) spread, if more than STEADY."""
    records = rows if isinstance(rows, list) else rows.to_dict("records")
    spreads = [Timing(row["median_ms"], row["p20_ms"], row["p80_ms"], 0) for row in records if row.get("p80_ms")]
    wide = [timing.spread for timing in spreads if not timing.steady]
    if wide:
        said = (
            f"{len(wide)} of {len(spreads)} times of this machine spread by more than {STEADY:.0%}, by {max(wide):.0%} "
            "at most: something else ran here. Measure again when it is quiet."
        )
        fig.supxlabel(textwrap.fill(said, int(13 * fig.get_figwidth())), x=0.01, ha="left", fontsize=9, style="italic")


def predicted(prediction: Any) -> float | None:
    """The number of a Prediction, None where there is no prediction or no number yet."""
    return prediction.value if prediction is not None else None
