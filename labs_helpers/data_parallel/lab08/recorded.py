"""Recorded machines in this notebook's figures: those that have records of a kind, a plain word where none has."""

from __future__ import annotations

import re
from collections.abc import Callable

from labs_helpers.data_parallel.study.records import COMMAND, STUDY
from labs_helpers.draw import figures
from labs_helpers.measure import results


def machines(kind: str) -> dict[str, object]:
    """name → records, of the machines that have some of this kind: those with the most GPUs first, then CPUs."""
    found = {}
    for path in results.results_dir().glob(f"{STUDY}.*.jsonl"):
        rows = results.load(path)
        if kind in set(rows["kind"]):
            found[path.name.removeprefix(f"{STUDY}.").removesuffix(".jsonl")] = rows
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def show(draw: Callable, kind: str, name: str, most: int = 2, **options) -> None:
    """`draw(records, **options)` for the machine with the most GPUs that has records of `kind`, and for a CPU.

    most: figures. Says so where nothing is recorded yet.
    """
    rows = machines(kind)
    gpus, cpus = ([one for one in rows if ("cpu" in one) == is_cpu] for is_cpu in (False, True))
    for machine in (gpus[:1] + cpus[:1])[:most]:
        figures.finish(draw(rows[machine], **options), f"{name}_{machine}")
    if not gpus:
        print(f"Nothing of the kind '{kind}' is recorded on GPUs yet. On some: {COMMAND}")


def _order(machine: str) -> tuple[bool, int, str]:
    count = re.search(r"-x(\d+)$", machine)
    return "cpu" in machine, -int(count[1]) if count else 0, machine
