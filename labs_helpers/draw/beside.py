"""Draw the reader's own records next to those of a recorded machine in the figures of a study."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text

from labs_helpers.measure import records

Chart = Callable[..., Figure]
OF_ONE_MACHINE = ("title", "prediction")  # arguments that apply only to the recorded machine


def beside_yours(study: str, load: Callable[[str], Any] | None = None) -> Callable[[Chart], Chart]:
    """Decorate a chart whose first argument is the records of one machine, or label → records of several.

    For a recorded machine, the chart returns its usual figure. It also draws the reader's records of the same study
    with the same arguments, except OF_ONE_MACHINE, and `figures.finish` shows those figures below. load: see
    `figures_of_yours`.
    """

    def decorate(draw: Chart) -> Chart:
        signature = inspect.signature(draw)

        @wraps(draw)
        def draw_both(*arguments: Any, **options: Any) -> Figure:
            figure: Figure = draw(*arguments, **options)
            call = signature.bind(*arguments, **options)
            name, rows = next(iter(call.arguments.items()))
            several = isinstance(rows, Mapping)
            if any(map(is_recorded, rows.values() if several else [rows])):
                for other in (name, *OF_ONE_MACHINE):
                    call.arguments.pop(other, None)
                same = call.kwargs

                def draw_one(own: Any) -> Figure:
                    one: Figure = draw(**{name: {_label(own): own} if several else own}, **same)
                    return one

                figure.beside = figures_of_yours(draw_one, study, load)  # type: ignore[attr-defined]  # for `finish`
            return figure

        return draw_both

    return decorate


def figures_of_yours(
    draw: Chart, study: str, load: Callable[[str], Any] | None = None, **options: Any
) -> dict[str, Figure]:
    """Return `draw(records, **options)` for each machine that the reader measured, titled with its name in
    `records.yours`.

    `load(machine)` turns the reader's records into the chart's argument; by default, all of them. If a machine lacks
    measurements for the figure, such as a part of the study or everything that needs a GPU, a printed line says so. A
    machine without any record that `load` looks for gets no figure.
    """
    found = {}
    for machine, rows in records.yours(study).items():
        try:
            if not len(chosen := load(machine) if load else rows):
                continue
            _name(figure := draw(chosen, **options), _label(rows))
            figure.draw_without_rendering()  # an unshowable figure fails here, not in the middle of a cell
        except Exception:  # any exception of a chart without the rows or columns that it needs
            figure = None
        if figure is None or getattr(figure, "empty", False):
            print(f"{_label(rows)}: not enough measurements for this figure.")
        else:
            found[machine] = figure
    return found


def is_recorded(rows: Any) -> bool:
    """Tell whether the records are of a machine shipped with the course, and not from the reader or from this
    process."""
    there = hasattr(rows, "columns") and "on.machine" in rows and len(rows) > 0
    return there and not _label(rows).endswith(records.YOURS)


def _name(figure: Figure, machine: str) -> None:
    """Write the machine's name below the title, unless the figure already names it."""
    if not any(machine in text.get_text() for text in figure.findobj(Text)):
        if figure.get_suptitle():
            figure.suptitle(f"{figure.get_suptitle()}\n{machine}", x=0.01, ha="left")
        else:
            figure.axes[0].set_title("\n".join(filter(None, [figure.axes[0].get_title("left"), machine])), loc="left")


def _label(rows: Any) -> str:
    return str(rows["on.machine"].iloc[0])
