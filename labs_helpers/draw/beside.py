"""The reader's own records in the figures of a study, beside those of a recorded machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text

from labs_helpers.measure import records

Chart = Callable[..., Figure]
OF_ONE_MACHINE = ("title", "prediction")  # arguments that speak of the recorded machine alone


def beside_yours(study: str, load: Callable[[str], Any] | None = None) -> Callable[[Chart], Chart]:
    """Decorate a chart, whose first argument is the records of one machine, or label → records of several.

    Of a recorded machine it returns the figure as before, and has drawn the reader's records of the same study by the
    same arguments, except OF_ONE_MACHINE: `figures.finish` shows those figures below. load: see `figures_of_yours`.
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
    """`draw(records, **options)` of each machine that the reader measured, under its name in `records.yours`.

    load(machine) makes of the reader's records what the chart takes; by default all of them. A line names each machine
    of which no figure can be drawn: too little was measured there, such as a part of the study, or only what runs
    without a GPU. A machine without a record of what `load` looks for gets no figure either.
    """
    found = {}
    for machine, rows in records.yours(study).items():
        try:
            if not len(chosen := load(machine) if load else rows):
                continue
            _name(figure := draw(chosen, **options), _label(rows))
            figure.draw_without_rendering()  # what cannot be shown fails here, not in the middle of a cell
        except Exception:  # whatever a chart raises where rows or columns are missing
            figure = None
        if figure is None or getattr(figure, "empty", False):
            print(f"{_label(rows)}: too little is measured for this figure.")
        else:
            found[machine] = figure
    return found


def is_recorded(rows: Any) -> bool:
    """True for the records of a machine that came with the course: neither the reader's, nor made by this process."""
    there = hasattr(rows, "columns") and "on.machine" in rows and len(rows) > 0
    return there and not _label(rows).endswith(records.YOURS)


def _name(figure: Figure, machine: str) -> None:
    """Write the machine below the title, unless the figure says already where it was measured."""
    if not any(machine in text.get_text() for text in figure.findobj(Text)):
        if figure.get_suptitle():
            figure.suptitle(f"{figure.get_suptitle()}\n{machine}", x=0.01, ha="left")
        else:
            figure.axes[0].set_title("\n".join(filter(None, [figure.axes[0].get_title("left"), machine])), loc="left")


def _label(rows: Any) -> str:
    return str(rows["on.machine"].iloc[0])
