"""The style of all figures: readable in light and dark mode, in print, and for color-blind readers.

    fig, ax = figures.new("Copy bandwidth")
    ax.plot(sizes, bandwidth, label="NVIDIA H200")
    figures.label_lines(ax)
    figures.finish(fig, "copy_bandwidth")

Figures do not use pyplot, so a notebook shows each figure once, where `finish` is called, and none stays open.
"""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import PIL.Image
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.ticker import EngFormatter, LogFormatter

from labs_helpers.draw.labels import label_lines, label_points
from labs_helpers.draw.roles import COLORS, INK, MARKERS, PAPER, RULE, Role, color, pale

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

__all__ = [
    "COLORS", "INK", "PAPER", "STYLE", "finish", "label_lines", "label_points", "legend_below", "mark_prediction",
    "new", "panels", "png", "predicted", "say", "set_title", "set_unit", "use_style", "write_below",
]  # fmt: skip

# The background is opaque and light, so that dark text stays legible on any page.
STYLE: dict[RcKeyType, Any] = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "figure.dpi": 110,
    "savefig.dpi": 110,
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.08,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "legend.frameon": False,
    # Curves differ in their markers as well as in their colors.
    "axes.prop_cycle": cycler(color=list(COLORS.values())) + cycler(marker=list(MARKERS)),
    "svg.fonttype": "path",
}

# Of a figure's pixels: so many in squares of one color are an area, whose color says something; so many colors are
# those of its thin lines; so much (of 255) between the shades of a letter's edge is not seen.
FILLED, THIN, SEEN = 64, 16, 24
ALTERNATIVE = 600  # letters of a text alternative: readers do not listen to longer ones


def use_style() -> None:
    """Give every figure from now on, including pyplot's, the style of the labs."""
    matplotlib.rcParams.update(STYLE)


def new(title: str | None = None, width: float = 7.2, height: float = 4.2, **subplots: Any) -> tuple[Figure, Any]:
    """Return (fig, ax), a figure of width × height inches and its axes, as plt.subplots does.

    A title that is too long for the figure is wrapped. subplots: arguments of `Figure.subplots` (nrows, ncols, sharey,
    …).
    """
    use_style()
    fig = Figure(figsize=(width, height), layout="constrained")
    axes = fig.subplots(**subplots)
    if title:
        set_title(fig, title, axes if isinstance(axes, Axes) else None)
    return fig, axes


def panels(
    title: str | None, names: Iterable[Any], width: float = 7.2, height: float = 4.2, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """Return (fig, [ax, …]), a figure with one panel per name, next to each other, under a common title.

    names: titles of the panels; '' for none. subplots: as for `new`.
    """
    names = list(map(str, names))
    fig, axes = new(title, width, height, ncols=len(names), **{"squeeze": False} | subplots)
    for ax, name in zip(axes[0], names, strict=True):
        if name:
            ax.set_title(name, fontsize="medium")
    return fig, list(axes[0])


def set_title(fig: Figure, title: str, ax: Axes | None = None) -> None:
    """Write the title above the axes, or above all axes from the figure's left edge; wrap it at the figure's width."""
    letters = int((10.5 if ax is None else 11) * fig.get_figwidth())
    lines = "\n".join(textwrap.fill(line, letters) for line in title.splitlines())
    if ax is not None:
        ax.set_title(lines)
    else:
        fig.suptitle(lines, x=0.01, ha="left", fontsize=STYLE["axes.titlesize"])


def write_below(fig: Figure, text: str) -> None:
    """Write a note below the axes, above a legend there, for what the title omits: the machine and the measured
    sizes."""
    lines = textwrap.fill(text, int(13 * fig.get_figwidth()))
    legend = fig.legends[0] if fig.legends else fig.legend(handles=[], loc="outside lower left", borderpad=0)
    legend.set_title(lines, prop=FontProperties(size="small"))
    legend.set_alignment("left")


def say(text: str, ax: Axes | None = None) -> Figure:
    """Write `text` instead of a chart: in the axes, or in a new figure whose `empty` is True."""
    fig = ax.figure if ax is not None else None
    if ax is None:
        fig, ax = new(height=1.4)
        fig.empty = True  # type: ignore[attr-defined]
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", style="italic")
    return fig  # type: ignore[return-value]


def legend_below(
    fig: Figure,
    entries: Mapping[str, Role | tuple[Role, str]] | None = None,
    only: Collection[str] | None = None,
    share: float = 1.0,
) -> None:
    """Draw a legend below the figure for the curves and bars with labels, or for given labels: label → role of a
    patch, or label → (role, look) of a line, where look is '-', '--', ':' or a marker. The role '' is a patch
    without a color. only: the labels to show. share: strength of the patches' colors; below 1 they blend into the
    background."""
    handles: list[Patch | Line2D] = []
    for label, role in (entries or {}).items():
        if only is not None and label not in only:
            continue
        if isinstance(role, tuple):
            line: dict[str, Any] = (
                {"linestyle": role[1]} if role[1] in ("-", "--", ":") else {"marker": role[1], "linestyle": "none"}
            )
            handles.append(Line2D([], [], color=color(role[0]), markerfacecolor="none", label=label, **line))
        else:
            look: dict[str, Any] = (
                {"fill": False} if role == "" else {"facecolor": pale(role, share), "edgecolor": RULE}
            )
            handles.append(Patch(label=label, **look))
    if not handles:
        there = dict(zip(*reversed(fig.axes[0].get_legend_handles_labels()), strict=True))
        for ax in fig.axes[1:]:
            there = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True)) | there
        handles = list(there.values())
    letters = sum(len(str(one.get_label())) + 6 for one in handles)
    columns = -(-len(handles) // -(-letters // int(13 * fig.get_figwidth())))  # the same number in each row
    fig.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize="small", handlelength=1.4)


def finish(fig: Figure, name: str, place: str | None = None, update: bool = False) -> None:
    """Show the figure as PNG in a notebook, and write `<name>.svg` into the folder named by LABS_FIGURES, if it is set.

    The SVG of a figure is reproducible byte for byte. Outside a notebook nothing is shown. The figures of the reader's
    own machines follow below, if there are any (see beside.py). place: a name for the output; a later figure with
    update=True replaces it.

    Raises ValueError for a name that is not a plain file name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ValueError(f"a figure's name is made of letters, digits, '_' and '-', not {name!r}")
    directory = os.environ.get("LABS_FIGURES")
    if directory:
        path = Path(directory, f"{name}.svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(svg(fig, name))
    _show(fig, alternative(fig) or name, display_id=place, update=update)
    for machine, other in getattr(fig, "beside", {}).items():
        finish(other, f"{name}_{machine}")


def _show(fig: Figure, alt: str, **place: Any) -> None:
    # A plain Python process has no notebook to show a figure in, and may have no IPython.
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython
    from IPython.display import Image, display

    if get_ipython() is None:
        return
    # IPython 7, on Colab, has no alt=.
    display(Image(png(fig), format="png", metadata={"alt": alt}), **place)
    # %matplotlib would show a pyplot figure a second time at the end of the cell.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)


def svg(fig: Figure, name: str) -> bytes:
    """Return the figure as SVG, reproducible byte for byte. `name` keeps its ids unique on a page of several."""
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        fig.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


def png(fig: Figure) -> bytes:
    """Return the figure as PNG: with a palette, which takes a third of the bytes, if that shows the same, otherwise
    in full color."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, format="png")
    image = PIL.Image.open(drawn).convert("RGB")
    (_with_palette(image) or image).save(packed, "png", optimize=True)
    return packed.getvalue()


def _with_palette(image: PIL.Image.Image) -> PIL.Image.Image | None:
    """Return `image` in at most 256 colors: those of areas and the THIN most frequent ones are exact, and no channel of
    a pixel is off by more than SEEN. None if 256 colors do not suffice."""
    pixels = np.asarray(image).astype(int) @ [1 << 16, 1 << 8, 1]
    codes, where, count = np.unique(pixels, return_inverse=True, return_counts=True)
    where = where.reshape(pixels.shape)
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], 1)
    squares = np.lib.stride_tricks.sliding_window_view(where, (2, 2)).reshape(-1, 4)
    squares = squares[(squares == squares[:, :1]).all(1)]
    filled = np.bincount(squares.ravel(), minlength=len(codes)) >= FILLED
    often = np.argsort(-count)
    chosen = [*often[:THIN], *(one for one in often[THIN:] if filled[one])]
    if len(chosen) > 256:
        return None
    off = np.stack([np.abs(colors - colors[one]).max(1) for one in chosen])
    nearest, error = off.argmin(0), off.min(0)
    while error.max() > SEEN:  # the color that is farthest from all others comes next
        if len(chosen) == 256:
            return None
        chosen.append(error.argmax())
        off = np.abs(colors - colors[chosen[-1]]).max(1)
        nearest, error = np.where(off < error, len(chosen) - 1, nearest), np.minimum(off, error)
    packed = PIL.Image.fromarray(nearest[where].astype(np.uint8))
    packed.putpalette(colors[chosen].astype(np.uint8).tobytes())
    return packed


def alternative(fig: Figure) -> str:
    """Return the figure's text alternative: its title, each panel's axes and curves, and the note below."""
    panels = [ax for ax in fig.axes if ax.axison]
    parts = [fig.get_suptitle() or next(filter(None, map(_title, panels)), "")]
    for ax in panels:
        labels = [ax.get_xlabel() and f"x: {ax.get_xlabel()}", ax.get_ylabel() and f"y: {ax.get_ylabel()}"]
        curves = [str(label) for label in ax.get_legend_handles_labels()[1]]
        said = "; ".join(filter(None, [*labels, ", ".join(dict.fromkeys(curves))]))
        parts.append(": ".join(filter(None, [_title(ax) if len(panels) > 1 else "", said])))
    parts += [ax.texts[0].get_text() for ax in fig.axes if not ax.axison and ax.texts]
    parts.append(getattr(fig, "told", ""))
    parts += [legend.get_title().get_text() for legend in fig.legends]
    lines = dict.fromkeys(" ".join(part.split()).rstrip(".") for part in parts)
    return textwrap.shorten(". ".join(filter(None, lines)), ALTERNATIVE, placeholder=" …")


def _title(ax: Axes) -> str:
    return ax.get_title("left") or ax.get_title()


def set_unit(axis: Axis, unit: str) -> None:
    """Label an axis's ticks in a unit with SI prefixes: set_unit(ax.yaxis, 'B/s') gives '4 TB/s'."""
    axis.set_major_formatter(EngFormatter(unit))
    if axis.get_scale() == "log":
        axis.set_minor_formatter(_MinorUnits(unit))


class _MinorUnits(LogFormatter):
    """Labels the minor ticks that Matplotlib would label, those of a short logarithmic axis, in the unit."""

    def __init__(self, unit: str) -> None:
        super().__init__(minor_thresholds=(1, 0.4))
        self._in_unit = EngFormatter(unit)

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self._in_unit(x) if super().__call__(x, pos) else ""


def predicted(prediction: Any) -> float | None:
    """Return the number of a Prediction, or None if there is no prediction or it has no number yet."""
    return prediction.value if hasattr(prediction, "value") else prediction


def mark_prediction(ax: Axes, x: Any, y: Any, text: str = "your prediction", scale: float = 1.0) -> Annotation | None:
    """Draw a predicted point, hollow and labeled, over the measurements.

    x, y: numbers in units of `scale`; one of them may be a Prediction. Draws nothing if one of them is None or cannot
    be shown on a logarithmic axis. Call this last: the label is placed where it covers no curve, point or other text.
    Returns the label, or None; an empty text is no label.
    """
    x, y = (
        scale * value if value is not None and hasattr(given, "value") else value
        for given, value in ((x, predicted(x)), (y, predicted(y)))
    )
    if x is None or y is None or (x <= 0 and ax.get_xscale() == "log") or (y <= 0 and ax.get_yscale() == "log"):
        return None
    look: dict[str, Any] = {"markersize": 10, "markerfacecolor": "none", "markeredgewidth": 2, "zorder": 5}
    ax.plot([x], [y], marker="D", linestyle="none", color=color("formula"), label="_prediction", **look)
    return label_points(ax, {text: (x, y)}, style="italic")[0] if text else None
