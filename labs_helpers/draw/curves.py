"""Curves with the same style in every figure of a topic, and their axes, titles and predictions."""

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
    """The style of a topic's curves: name → role, or (role, marker); drawn in this order."""

    def __init__(self, looks: Mapping[str, Role | tuple[Role, str]], **style: Any) -> None:
        self.looks, self.style = dict(looks), style

    def __iter__(self) -> Iterator[str]:
        return iter(self.looks)

    def role(self, name: str) -> Role:
        """Return the role of a curve, 'aside' for a curve without a style."""
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
        """Draw one curve with its name, and an error bar at each point if `low` and `high` are given. style: as for
        `Axes.plot`."""
        look = {"marker": self.marker(name), "color": self.color(name), "label": name} | self.style | style
        ax.plot(list(x), list(y), **look)
        if low is not None and high is not None:
            ax.vlines(list(x), list(low), list(high), color=self.color(name), linewidth=1.2, alpha=0.5)


def tick_each(ax: Axes, values: Iterable[float], base: int = 10, xlabel: str | None = None) -> None:
    """Make the x axis logarithmic with a tick at each of the values only; base 2 writes multiples of 1,024 as '4k'."""
    ticks = sorted(set(values))
    ax.set_xscale("log", base=base)
    ax.set_xticks(ticks, [length_text(n) if base == 2 and n % 1 == 0 else f"{n:.7g}" for n in ticks])
    ax.minorticks_off()
    if xlabel is not None:
        ax.set_xlabel(xlabel)


def log_bytes(ax: Axes, xlabel: str = "bytes") -> None:
    """Make both axes logarithmic: x in bytes, y in seconds."""
    ax.set(xscale="log", yscale="log", xlabel=xlabel)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=8))
    figures.set_unit(ax.xaxis, "B")
    figures.set_unit(ax.yaxis, "s")
    ax.minorticks_off()


def percent(ax: Axes) -> None:
    """Write the ticks of the y axis as percentages."""
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
    """Draw a horizontal line for a target or a limit, with text above its left end, above its right end, or below
    it. style: '--' for an asymptote, ':' for a mere mark."""
    ax.axhline(at, linestyle=style, linewidth=1.4, color=roles.color(role), label="_level")
    place: dict[str, Any] = {"ha": "right" if right else "left", "va": "top" if below else "bottom"}
    place |= {"xycoords": ax.get_yaxis_transform(), "xytext": (0, -4 if below else 3), "textcoords": "offset points"}
    if text:
        ax.annotate(text, (0.98 if right else 0.02, at), style="italic", fontsize="small", **place)


def upright(ax: Axes, at: float, text: str = "", *, role: Role = "limit", style: str = "--", top: bool = True) -> None:
    """Draw the same line vertically, with text above its end or to the right of its foot."""
    ax.axvline(at, linestyle=style, linewidth=1.4, color=roles.color(role), label="_level", zorder=1.5)
    place: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    place |= {"ha": "center", "va": "bottom", "xytext": (0, 2)} if top else {"va": "bottom", "xytext": (5, 0)}
    if text:
        ax.annotate(text, (at, 1 if top else 0.03), style="italic", fontsize="small", **place)


def recorded_on(rows: pandas.DataFrame) -> str:
    """Return ', NVIDIA H200 (recorded)' or ', NVIDIA H200, your run' for records (a DataFrame) that name a machine;
    otherwise ''."""
    return f", {label(rows['on.machine'].iloc[0])}" if "on.machine" in rows and len(rows) else ""
