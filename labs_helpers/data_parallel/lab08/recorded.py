"""Recorded machines in this notebook's figures: those that have records of a kind, a plain word where none has."""

from __future__ import annotations

import re
from collections.abc import Callable

from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours, figures_of_yours

COMMANDS = {"wrapper": "wrappers", "bucket": "buckets", "loss_curve": "losses"}  # what measures a kind of another name


def machines(kind: str) -> dict[str, object]:
    """name → records, of the recorded machines that have some of this kind: those with the most GPUs first, then
    CPUs."""
    found = {name: rows for name, rows in STUDY.recorded().items() if kind in set(rows["kind"])}
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def best(kind: str, prefer: str = "gpu"):
    """The records of one machine that has some of `kind`, or None: the one with the most GPUs, or a CPU first."""
    rows = machines(kind)
    return next((rows[one] for one in sorted(rows, key=lambda one: ("cpu" in one) != (prefer == "cpu"))), None)


def show(draw: Callable, kind: str, name: str, prefer: str = "gpu", **options) -> None:
    """`draw(records, **options)` for `best(kind, prefer)`, and below it for the reader's machines. Says so where
    nothing is recorded, or nothing on GPUs."""
    rows = best(kind, prefer)
    if rows is not None:
        figures.finish(beside_yours(STUDY.name)(draw)(rows, **options), name)
    _say_without_gpus(kind)


def show_all(draw: Callable, kind: str, name: str, prediction=None) -> None:
    """`draw(records)` of every machine that has some of `kind`, CPUs first, on which the prediction stands; then of the
    reader's machines."""
    for machine, rows in reversed(machines(kind).items()):
        figures.finish(draw(rows, prediction=prediction if "cpu" in machine else None), f"{name}_{machine}")
    for machine, figure in figures_of_yours(draw, STUDY.name).items():
        figures.finish(figure, f"{name}_{machine}")
    _say_without_gpus(kind)


def _say_without_gpus(kind: str) -> None:
    if not any("cpu" not in machine for machine in machines(kind)):
        print(f"(No record of this on GPUs yet: {STUDY.command} {COMMANDS.get(kind, kind)})")


def _order(machine: str) -> tuple[bool, int, str]:
    count = re.search(r"-x(\d+)$", machine)
    return "cpu" in machine, -int(count[1]) if count else 0, machine
