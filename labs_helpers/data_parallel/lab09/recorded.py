"""The machines that have records of data parallelism, and what of it a figure can draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.draw import figures
from labs_helpers.draw.beside import figures_of_yours

if TYPE_CHECKING:
    import pandas


def machines() -> dict[str, pandas.DataFrame]:
    """By machine, as its file is called, all records of the study."""
    return STUDY.recorded()


def draw_recorded(draw: Callable, name: str, only: str = "", **options) -> None:
    """The figure `draw(rows, …)` of each machine that has the records for it; a line where none has.

    name: of the figure's file. only: recorded machines whose name begins so; the reader's are drawn below them."""
    drawn = {}
    for machine, rows in machines().items():
        if not machine.startswith(only):
            continue
        try:
            drawn[machine] = draw(rows, **options)
        except ValueError as error:
            if not str(error).startswith("no records"):
                raise
    for machine, figure in (drawn | figures_of_yours(draw, STUDY.name, **options)).items():
        figures.finish(figure, f"{name}_{machine}")
    if not drawn:
        print(f"No machine has records of this yet; {STUDY.command} makes them.")
