"""One look for all labs: figures that read in light and dark, in print and by the colour-blind.

    fig, ax = figures.new("Copy bandwidth")
    ax.plot(sizes, bandwidth, label="NVIDIA H200")
    figures.label_lines(ax)
    figures.finish(fig, "copy_bandwidth")

Figures stand outside pyplot, so a notebook shows each once, where `finish` is called, and none is left
open behind.
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
from matplotlib.ticker import EngFormatter

from labs_helpers.draw.labels import label_lines, label_points
from labs_helpers.draw.roles import COLORS, INK, MARKERS, PAPER, RULE, Role, color, pale

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

__all__ = [
    "COLORS", "INK", "PAPER", "STYLE", "finish", "label_lines", "label_points", "legend_below", "mark_prediction",
    "new", "panels", "png", "predicted", "say", "set_title", "set_unit", "use_style", "write_below",
]  # fmt: skip

# The ground is opaque, a light card: dark text stays legible wherever the figure is shown.
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
    # Each curve differs in its marker as well as in its colour.
    "axes.prop_cycle": cycler(color=list(COLORS.values())) + cycler(marker=list(MARKERS)),
    "svg.fonttype": "path",
}

# Of a figure's pixels: so many of one colour are an area, whose colour says something; so much (of 255) between the
# shades of an edge is not seen.
FILLED, SEEN = 64, 24
ALTERNATIVE = 600  # letters of a text alternative: longer ones are not listened to


def use_style() -> None:
    """Give every figure made from here on, with pyplot too, the look of the labs."""
    matplotlib.rcParams.update(STYLE)


def new(title: str | None = None, width: float = 7.2, height: float = 4.2, **subplots: Any) -> tuple[Figure, Any]:
    """A figure of width × height inches and its axes, as plt.subplots gives them: (fig, ax).

    A title too long for the figure is broken. subplots: what `Figure.subplots` takes (nrows, ncols, sharey, …).
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
    """A figure with a panel per name, side by side, and the title above them all: (fig, [ax, …]).

    names: titles of the panels; '' for none. subplots: as for `new`.
    """
    names = list(map(str, names))
    fig, axes = new(title, width, height, ncols=len(names), **{"squeeze": False} | subplots)
    for ax, name in zip(axes[0], names, strict=True):
        if name:
            ax.set_title(name, fontsize="medium")
    return fig, list(axes[0])


def set_title(fig: Figure, title: str, ax: Axes | None = None) -> None:
    """Write the title over the axes, or from the figure's left edge over all of them; lines are broken at its width."""
    letters = int((10.5 if ax is None else 11) * fig.get_figwidth())
    lines = "\n".join(textwrap.fill(line, letters) for line in title.splitlines())
    if ax is not None:
        ax.set_title(lines)
    else:
        fig.suptitle(lines, x=0.01, ha="left", fontsize=STYLE["axes.titlesize"])


def write_below(fig: Figure, text: str) -> None:
    """Write below the axes, over a legend there, what the title leaves out: the machine and the sizes measured."""
    lines = textwrap.fill(text, int(13 * fig.get_figwidth()))
    legend = fig.legends[0] if fig.legends else fig.legend(handles=[], loc="outside lower left", borderpad=0)
    legend.set_title(lines, prop=FontProperties(size="small"))
    legend.set_alignment("left")


def say(text: str, ax: Axes | None = None) -> Figure:
    """Write `text` in place of a chart: in the axes, or in a figure of its own, whose `empty` is True."""
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
    """A legend below the figure: of the curves and bars that have labels, or label → role of a patch, or label → (role,
    look) of a line, where the look is '-', '--', ':' or a marker. The role '' is a patch that bears no colour.
    only: the labels to show. share: of the patches' colours, below 1 thinned on the ground."""
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
    columns = -(-len(handles) // -(-letters // int(13 * fig.get_figwidth())))  # as many in each row
    fig.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize="small", handlelength=1.4)


def finish(fig: Figure, name: str, place: str | None = None, update: bool = False) -> None:
    """Show the figure as PNG in a notebook, and write `<name>.svg` where LABS_FIGURES names a directory.

    The SVG is the same, byte for byte, for the same figure. Outside a notebook nothing is shown. Below it follow the
    figures of the reader's own machines, where there are any (see beside.py). place: a name of the output, in which a
    later figure with update=True takes this one's place.

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
    # IPython 7, which Colab has, knows no alt=.
    display(Image(png(fig), format="png", metadata={"alt": alt}), **place)
    # %matplotlib would show a figure of pyplot's a second time at the end of the cell.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)


def svg(fig: Figure, name: str) -> bytes:
    """Return the figure as SVG, reproducible byte for byte. `name` keeps its ids unique on a page of several."""
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        fig.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


def png(fig: Figure) -> bytes:
    """The figure as PNG: in a palette where that shows the same, in a third of the bytes; else in all colours."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, format="png")
    image = PIL.Image.open(drawn).convert("RGB")
    (_with_palette(image) or image).save(packed, "png", optimize=True)
    return packed.getvalue()


def _with_palette(image: PIL.Image.Image) -> PIL.Image.Image | None:
    """`image` in at most 256 colours: those of FILLED pixels and more are exact, and no channel of any pixel is off by
    more than SEEN. None where 256 colours do not suffice."""
    pixels = np.asarray(image).reshape(-1, 3)
    codes, where, count = np.unique(pixels @ [1 << 16, 1 << 8, 1], return_inverse=True, return_counts=True)
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], 1)
    chosen = np.argsort(-count)[: max(1, (count >= FILLED).sum())].tolist()
    if len(chosen) > 256:
        return None
    off = np.stack([np.abs(colors - colors[one]).max(1) for one in chosen])
    nearest, error = off.argmin(0), off.min(0)
    while error.max() > SEEN:  # the colour that is furthest from all others comes next
        if len(chosen) == 256:
            return None
        chosen.append(int(error.argmax()))
        off = np.abs(colors - colors[chosen[-1]]).max(1)
        nearest, error = np.where(off < error, len(chosen) - 1, nearest), np.minimum(off, error)
    packed = PIL.Image.fromarray(nearest[where].astype(np.uint8).reshape(image.height, image.width))
    packed.putpalette(colors[chosen].astype(np.uint8).tobytes())
    return packed


def alternative(fig: Figure) -> str:
    """The figure's text for those who cannot see it: title, each panel's axes and curves, and what stands below."""
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


def predicted(prediction: Any) -> float | None:
    """The number of a Prediction, None where there is no prediction or no number yet."""
    return prediction.value if hasattr(prediction, "value") else prediction


def mark_prediction(ax: Axes, x: Any, y: Any, text: str = "your prediction", scale: float = 1.0) -> Annotation | None:
    """Draw a predicted point, hollow and labelled, over the measurements.

    x, y: numbers, of which one may be a Prediction, in units of `scale`. Nothing is drawn where one of them is None, or
    has no place on a logarithmic axis. Call it last: the label goes where it covers no curve, point or other text.
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
