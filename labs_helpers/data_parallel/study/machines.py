"""The machines with records of data parallelism, and their figures; a plain word where none has any."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours, figures_of_yours

if TYPE_CHECKING:
    import pandas

COMMANDS = {"wrapper": "wrappers", "bucket": "buckets", "loss_curve": "losses"}  # what measures a kind of another name


def machines(kind: str = "") -> dict[str, pandas.DataFrame]:
    """Return name → records of the recorded machines that have some of this kind, or any: those with the most GPUs
    first, then CPUs."""
    found = {name: rows for name, rows in STUDY.recorded().items() if not kind or kind in set(rows["kind"])}
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def best(kind: str, prefer: str = "gpu") -> pandas.DataFrame | None:
    """Return the records of one machine that has some of `kind`: the one with the most GPUs, or a CPU first."""
    rows = machines(kind)
    return next((rows[one] for one in sorted(rows, key=lambda one: ("cpu" in one) != (prefer == "cpu"))), None)


def show(draw: Callable[..., Any], kind: str, name: str, prefer: str = "gpu", **options: Any) -> None:
    """Show `draw(records, **options)` for `best(kind, prefer)`, and below it for the reader's machines; say so where
    nothing is recorded on GPUs."""
    rows = best(kind, prefer)
    if rows is not None:
        figures.finish(beside_yours(STUDY.name)(draw)(rows, **options), name)
    _say_without_gpus(kind)


def show_all(draw: Callable[..., Any], kind: str, name: str, prediction: Any = None) -> None:
    """Show `draw(records)` of every machine that has some of `kind`, CPUs first, on which the prediction stands; then
    of the reader's machines."""
    found = {
        machine: draw(rows, prediction=prediction if "cpu" in machine else None)
        for machine, rows in reversed(machines(kind).items())
    }
    _finish(found | figures_of_yours(draw, STUDY.name), name)
    _say_without_gpus(kind)


def draw_recorded(draw: Callable[..., Any], name: str, only: str = "", **options: Any) -> None:
    """Show the figure `draw(rows, …)` of each machine that has the records for it; say so where none has.

    name: of the figure's file. only: recorded machines whose name begins so; the reader's are drawn below them.
    """
    drawn = {}
    for machine, rows in machines().items():
        try:
            if machine.startswith(only):
                drawn[machine] = draw(rows, **options)
        except ValueError as error:
            if not str(error).startswith("no records"):
                raise
    _finish(drawn | figures_of_yours(draw, STUDY.name, **options), name)
    if not drawn:
        print(f"No machine has records of this yet; {STUDY.command} makes them.")


def _finish(drawn: dict[str, Any], name: str) -> None:
    for machine, figure in drawn.items():
        figures.finish(figure, f"{name}_{machine}")


def _say_without_gpus(kind: str) -> None:
    if not any("cpu" not in machine for machine in machines(kind)):
        print(f"(No record of this on GPUs yet: {STUDY.command} {COMMANDS.get(kind, kind)})")


def _order(machine: str) -> tuple[bool, int, str]:
    count = re.search(r"-x(\d+)$", machine)
    return "cpu" in machine, -int(count[1]) if count else 0, machine
