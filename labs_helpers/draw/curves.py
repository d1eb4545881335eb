"""Curves that look the same in every figure of a topic, and the axes, titles and predictions around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, PercentFormatter

from labs_helpers.draw import figures, roles
from labs_helpers.draw.figures import predicted
from labs_helpers.draw.roles import Role
from labs_helpers.draw.words import length_text
from labs_helpers.measure.records import label

__all__ = [
    "Curves", "level", "log_bytes", "percent", "predicted", "recorded_on", "tick_each", "upright",
]  # fmt: skip

if TYPE_CHECKING:
    import pandas


class Curves:
    """The look of a topic's curves: name → role, or (role, marker); drawn in this order."""

    def __init__(self, looks: Mapping[str, Role | tuple[Role, str]], **style: Any) -> None:
        self.looks, self.style = dict(looks), style

    def __iter__(self) -> Iterator[str]:
        return iter(self.looks)

    def role(self, name: str) -> Role:
        """The role of a curve; 'aside' of one that has no look yet."""
        look = self.looks.get(name, "aside")
        return look[0] if isinstance(look, tuple) else look

    def color(self, name: str) -> str:
        return roles.color(self.role(name))

    def marker(self, name: str) -> str:
        look = self.looks.get(name, ("aside", "."))
        return look[1] if isinstance(look, tuple) else roles.marker(look)

    def plot(
        self,
        ax: Axes,
        name: str,
        x: Iterable[float],
        y: Iterable[float],
        low: Iterable[float] | None = None,
        high: Iterable[float] | None = None,
        **style: Any,
    ) -> None:
        """One curve with its name; with `low` and `high` a bar of spread at each point. style: as `Axes.plot` takes."""
        look = {"marker": self.marker(name), "color": self.color(name), "label": name} | self.style | style
        ax.plot(list(x), list(y), **look)
        if low is not None and high is not None:
            ax.vlines(list(x), list(low), list(high), color=self.color(name), linewidth=1.2, alpha=0.5)


def tick_each(ax: Axes, values: Iterable[float], base: int = 10, xlabel: str | None = None) -> None:
    """A logarithmic x axis with a tick at each of the values and nowhere else; base 2 writes multiples of 1,024 as
    '4k'."""
    ticks = sorted(set(values))
    ax.set_xscale("log", base=base)
    ax.set_xticks(ticks, [length_text(n) if base == 2 and n % 1 == 0 else f"{n:.7g}" for n in ticks])
    ax.minorticks_off()
    if xlabel is not None:
        ax.set_xlabel(xlabel)


def log_bytes(ax: Axes, xlabel: str = "bytes") -> None:
    """Both axes logarithmic: bytes to the right, seconds up."""
    ax.set(xscale="log", yscale="log", xlabel=xlabel)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=8))
    figures.set_unit(ax.xaxis, "B")
    figures.set_unit(ax.yaxis, "s")
    ax.minorticks_off()


def percent(ax: Axes) -> None:
    """Write the y axis's ticks as percentages."""
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def level(
    ax: Axes,
    at: float,
    text: str = "",
    *,
    role: Role = "limit",
    style: str = "--",
    right: bool = False,
    below: bool = False,
) -> None:
    """A line over the whole width, what is to be reached or beaten, with words over its left end, its right, or
    below it. style: '--' for what something comes near to, ':' for a mere mark."""
    ax.axhline(at, linestyle=style, linewidth=1.4, color=roles.color(role), label="_level")
    place: dict[str, Any] = {"ha": "right" if right else "left", "va": "top" if below else "bottom"}
    place |= {"xycoords": ax.get_yaxis_transform(), "xytext": (0, -4 if below else 3), "textcoords": "offset points"}
    if text:
        ax.annotate(text, (0.98 if right else 0.02, at), style="italic", fontsize="small", **place)


def upright(ax: Axes, at: float, text: str = "", *, role: Role = "limit", style: str = "--", top: bool = True) -> None:
    """The same from the bottom to the top, with words over its end, or right of its foot."""
    ax.axvline(at, linestyle=style, linewidth=1.4, color=roles.color(role), label="_level", zorder=1.5)
    place: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    place |= {"ha": "center", "va": "bottom", "xytext": (0, 2)} if top else {"va": "bottom", "xytext": (5, 0)}
    if text:
        ax.annotate(text, (at, 1 if top else 0.03), style="italic", fontsize="small", **place)


def recorded_on(rows: pandas.DataFrame) -> str:
    """', NVIDIA H200 (recorded)' or ', NVIDIA H200, your run' where the records, a DataFrame, say so; else ''."""
    return f", {label(rows['on.machine'].iloc[0])}" if "on.machine" in rows and len(rows) else ""
