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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import PIL.Image
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import EngFormatter

from labs_helpers.draw.labels import label_lines, label_points

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

__all__ = [
    "COLORS", "STYLE", "finish", "label_lines", "label_points", "mark_prediction", "new", "png", "set_unit",
    "use_style",
]  # fmt: skip

# Okabe and Ito, "Color Universal Design" (2008), in the order in which curves take them: yellow, the
# faintest on a light ground, comes last.
COLORS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
}
INK, PAPER, RULE = "#22252A", "#FAF9F6", "#D9D7D0"

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
    "axes.prop_cycle": cycler(color=list(COLORS.values())) + cycler(marker=list("osD^vPX*")),
    "svg.fonttype": "path",
}


def use_style() -> None:
    """Give every figure made from here on, with pyplot too, the look of the labs."""
    matplotlib.rcParams.update(STYLE)


def new(title: str | None = None, width: float = 7.2, height: float = 4.2, **subplots: Any) -> tuple[Figure, Any]:
    """A figure of width × height inches and its axes, as plt.subplots gives them: (fig, ax).

    subplots: what `Figure.subplots` takes (nrows, ncols, sharey, …).
    """
    use_style()
    fig = Figure(figsize=(width, height), layout="constrained")
    axes = fig.subplots(**subplots)
    if title and isinstance(axes, Axes):
        axes.set_title(title)
    elif title:
        fig.suptitle(title, x=0.01, ha="left", fontsize=STYLE["axes.titlesize"])
    return fig, axes


def finish(fig: Figure, name: str) -> None:
    """Show the figure as PNG in a notebook, and write `<name>.svg` where LABS_FIGURES names a directory.

    The SVG is the same, byte for byte, for the same figure. Outside a notebook nothing is shown. Below it follow the
    figures of the reader's own machines, where there are any (see beside.py).

    Raises ValueError for a name that is not a plain file name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ValueError(f"a figure's name is made of letters, digits, '_' and '-', not {name!r}")
    directory = os.environ.get("LABS_FIGURES")
    if directory:
        path = Path(directory, f"{name}.svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Salted with the name, so that ids do not collide when two figures stand in one page.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            fig.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    _show(fig, alt=_title(fig) or name)
    for machine, other in getattr(fig, "beside", {}).items():
        finish(other, f"{name}_{machine}")


def _show(fig: Figure, alt: str) -> None:
    # A plain Python process has no notebook to show a figure in, and may have no IPython.
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython
    from IPython.display import Image, display

    if get_ipython() is None:
        return
    # IPython 7, which Colab has, knows no alt=.
    display(Image(png(fig), format="png", metadata={"alt": alt}))
    # %matplotlib would show a figure of pyplot's a second time at the end of the cell.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)


def png(fig: Figure) -> bytes:
    """The figure as PNG in 64 colours, a quarter of the size of what savefig writes."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, format="png")
    image = PIL.Image.open(drawn).convert("RGB")
    # Maximum coverage keeps a colour that few pixels have, such as a marker's; median cut gives it another's.
    few = image.quantize(64, method=PIL.Image.Quantize.MAXCOVERAGE, dither=PIL.Image.Dither.NONE)
    few.save(packed, "png", optimize=True)
    return packed.getvalue()


def _title(fig: Figure) -> str:
    titles = [ax.get_title("left") or ax.get_title() for ax in fig.axes]
    return fig.get_suptitle() or next(filter(None, titles), "")


def set_unit(axis: Axis, unit: str) -> None:
    """Label an axis's ticks in a unit with SI prefixes: set_unit(ax.yaxis, 'B/s') gives '4 TB/s'."""
    axis.set_major_formatter(EngFormatter(unit))


def mark_prediction(ax: Axes, x: float | None, y: float | None, text: str = "your prediction") -> Annotation | None:
    """Draw a predicted point, hollow and labelled, over the measurements. y (or x) None draws nothing.

    Call it last: the label goes where it covers no curve, point or other text. Returns the label, or None; an
    empty text is no label.
    """
    if x is None or y is None:
        return None
    ax.plot([x], [y], marker="D", markersize=10, markerfacecolor="none", markeredgewidth=2,
            color=COLORS["black"], linestyle="none", zorder=5)  # fmt: skip
    return label_points(ax, {text: (x, y)}, style="italic")[0] if text else None
