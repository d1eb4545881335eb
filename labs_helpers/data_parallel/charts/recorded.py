"""Show a figure for each machine with records: first the recorded machines, then the reader's own."""

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

COMMANDS = {
    "wrapper": "wrappers",
    "bucket": "buckets",
    "loss_curve": "losses",
}  # the command of a kind, where the two names differ


def machines(kind: str = "") -> dict[str, pandas.DataFrame]:
    """Return name → records of the recorded machines that have this kind of records, by default any kind.

    Machines with the most GPUs come first, CPUs last.
    """
    found = {name: rows for name, rows in STUDY.recorded().items() if not kind or kind in set(rows["kind"])}
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def best(kind: str, prefer: str = "gpu") -> pandas.DataFrame | None:
    """Return one machine's records that include `kind`, or None. prefer: 'gpu' (the most GPUs) or 'cpu'."""
    rows = machines(kind)
    return next((rows[one] for one in sorted(rows, key=lambda one: ("cpu" in one) != (prefer == "cpu"))), None)


def show(draw: Callable[..., Figure], kind: str, name: str, prefer: str = "gpu", **options: Any) -> None:
    """Show `draw(records, **options)` for `best(kind, prefer)`, and below it for the reader's machines.

    Prints the measuring command if no GPU has such records.
    """
    rows = best(kind, prefer)
    if rows is not None:
        figures.finish(beside_yours(STUDY.name)(draw)(rows, **options), name)
    _say_without_gpus(machines(kind), kind)


def show_all(
    draw: Callable[..., Figure], kind: str, name: str, prediction: Any = None, only: str = "", **options: Any
) -> None:
    """Show `draw(records, **options)` for every machine with the records for it: CPUs, GPUs, then the reader's.

    prediction: drawn in the CPUs' figures. only: a prefix that limits the recorded machines by name.
    """
    drawn = {}
    for machine, rows in reversed(machines(kind).items()):
        if machine.startswith(only):
            told = {"prediction": prediction if "cpu" in machine else None} if prediction is not None else {}
            try:
                drawn[machine] = draw(rows, **options, **told)
            except ValueError as error:  # the kind is there, but not the records that `draw` needs
                if not str(error).startswith("no records"):
                    raise
    for machine, figure in (drawn | figures_of_yours(draw, STUDY.name, **options)).items():
        figures.finish(figure, f"{name}_{machine}")
    _say_without_gpus(drawn, kind)


def draw_recorded(draw: Callable[..., Figure], name: str, only: str = "", **options: Any) -> None:
    """Call `show_all` with any kind of records that `draw` needs."""
    show_all(draw, "", name, only=only, **options)


def _say_without_gpus(drawn: Iterable[str], kind: str) -> None:
    if not any("cpu" not in machine for machine in drawn):
        print(f"(No record of this on GPUs yet: {STUDY.command} {COMMANDS.get(kind, kind)}".rstrip() + ")")


def _order(machine: str) -> tuple[bool, int, str]:
    count = re.search(r"-x(\d+)$", machine)
    return "cpu" in machine, -int(count[1]) if count else 0, machine
