"""The machines that have records of data parallelism, and what of it a figure can draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labs_helpers.data_parallel.study.records import COMMAND, STUDY
from labs_helpers.draw import figures
from labs_helpers.measure import results

if TYPE_CHECKING:
    import pandas


def machines() -> dict[str, pandas.DataFrame]:
    """By machine, as its file is called, all records of the study."""
    files = sorted(results.results_dir().glob(f"{STUDY}.*.jsonl"))
    return {file.name.removeprefix(f"{STUDY}.").removesuffix(".jsonl"): results.load(file) for file in files}


def draw_recorded(draw: Callable, name: str, only: str = "", **options) -> None:
    """The figure `draw(rows, …)` of each machine that has the records for it; a line where none has.

    name: of the figure's file. only: machines whose name begins so."""
    drawn = 0
    for machine, rows in machines().items():
        if not machine.startswith(only):
            continue
        try:
            figure = draw(rows, **options)
        except ValueError as error:
            if not str(error).startswith("no records"):
                raise
            continue
        figures.finish(figure, f"{name}_{machine}")
        drawn += 1
    if not drawn:
        print(f"No machine has records of this yet; {COMMAND} makes them.")
