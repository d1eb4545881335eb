"""Show a figure of the machines that have records for it: the recorded ones, and below them the reader's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours, figures_of_yours

if TYPE_CHECKING:
    import pandas

COMMANDS = {"wrapper": "wrappers", "bucket": "buckets", "loss_curve": "losses"}  # what measures a kind of another name


def machines(kind: str = "") -> dict[str, pandas.DataFrame]:
    """name → records, of the recorded machines that have some of this kind, by default of any: those with the most GPUs
    first, then CPUs."""
    found = {name: rows for name, rows in STUDY.recorded().items() if not kind or kind in set(rows["kind"])}
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def best(kind: str, prefer: str = "gpu") -> pandas.DataFrame | None:
    """The records of one machine that has some of `kind`, or None: the one with the most GPUs, or a CPU first."""
    rows = machines(kind)
    return next((rows[one] for one in sorted(rows, key=lambda one: ("cpu" in one) != (prefer == "cpu"))), None)


def show(draw: Callable[..., Figure], kind: str, name: str, prefer: str = "gpu", **options: Any) -> None:
    """`draw(records, **options)` for `best(kind, prefer)`, and below it for the reader's machines. Says so where
    nothing is recorded, or nothing on GPUs."""
    rows = best(kind, prefer)
    if rows is not None:
        figures.finish(beside_yours(STUDY.name)(draw)(rows, **options), name)
    _say_without_gpus(machines(kind), kind)


def show_all(
    draw: Callable[..., Figure], kind: str, name: str, prediction: Any = None, only: str = "", **options: Any
) -> None:
    """`draw(records, **options)` of every machine that has the records for it, CPUs first, on which the prediction
    stands; then of the reader's machines. only: recorded machines whose name begins so."""
    drawn = {}
    for machine, rows in reversed(machines(kind).items()):
        if machine.startswith(only):
            told = {"prediction": prediction if "cpu" in machine else None} if prediction is not None else {}
            try:
                drawn[machine] = draw(rows, **options, **told)
            except ValueError as error:  # of the kind, but not what is asked for
                if not str(error).startswith("no records"):
                    raise
    for machine, figure in (drawn | figures_of_yours(draw, STUDY.name, **options)).items():
        figures.finish(figure, f"{name}_{machine}")
    _say_without_gpus(drawn, kind)


def draw_recorded(draw: Callable[..., Figure], name: str, only: str = "", **options: Any) -> None:
    """`show_all` of whatever kind of records `draw` looks for."""
    show_all(draw, "", name, only=only, **options)


def _say_without_gpus(drawn: Iterable[str], kind: str) -> None:
    if not any("cpu" not in machine for machine in drawn):
        print(f"(No record of this on GPUs yet: {STUDY.command} {COMMANDS.get(kind, kind)}".rstrip() + ")")


def _order(machine: str) -> tuple[bool, int, str]:
    count = re.search(r"-x(\d+)$", machine)
    return "cpu" in machine, -int(count[1]) if count else 0, machine
