"""A study's records by machine: those that come with the course, and those that the reader measured.

Figures draw both side by side and never join them, even if the reader's machine has the name of a recorded one: 'NVIDIA
H200 (recorded)' and 'NVIDIA H200, your run'.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.measure import results

if TYPE_CHECKING:
    import pandas

RECORDED, YOURS = " (recorded)", ", your run"


def label(machine: str) -> str:
    """Return the label of a machine's curve. machine: 'on.machine' of its records."""
    return machine if machine.endswith(YOURS) else machine + RECORDED


def find(study: str, machine: str) -> Path:
    """Return the file with a machine's records of a study; it need not exist.

    machine: the machine's label, or the part of its file's name between the dots. It selects the recorded machine, or
    the reader's if no recorded one has that name. With ', your run' or '-your-run' appended it always selects the
    reader's.
    """
    name = results.slug(machine)
    own = results.path_for(study, name.removesuffix(results.slug(YOURS)), results.own_dir())
    shipped = results.path_for(study, name)
    return own if own.stem != shipped.stem or (own.is_file() and not shipped.is_file()) else shipped


def of_machine(study: str, machine: str, command: str) -> pandas.DataFrame:
    """Return one machine's records of a study, found by `find`. The reader's have ', your run' in 'on.machine'.

    Raises FileNotFoundError, which names `command` as the way to produce them.
    """
    path = find(study, machine)
    frame = results.load(path, command=command)
    return _marked(frame, path) if path.parent == results.own_dir() else frame


def recorded(study: str) -> dict[str, pandas.DataFrame]:
    """Return the recorded machines: the part of each file's name between the dots → its records."""
    return {_machine(path): results.load(path) for path in _files(study, results.results_dir())}


def yours(study: str) -> dict[str, pandas.DataFrame]:
    """Return the reader's machines: the part of each file's name between the dots, with '-your-run' → its records.

    Damaged lines and unreadable files are left out; one sentence reports each of them once.
    """
    found = {}
    for path in _files(study, results.own_dir()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damaged lines; one sentence below reports them
            try:
                frame = _marked(results.load(path), path)
            except Exception as error:  # a reader's file must not break a figure
                _say_once(f"{path} cannot be read and is left out of the figures: {error}")
                continue
        if damaged := frame.attrs["damaged"]:
            _say_once(f"{path} has damaged lines, which are left out of the figures: {', '.join(map(str, damaged))}")
        if len(frame):
            found[f"{_machine(path)}-{results.slug(YOURS)}"] = frame
    return found


def frame(found: list[dict[str, Any]]) -> pandas.DataFrame:
    """Convert a study's records to the DataFrame that loading them would return."""
    import pandas

    return pandas.json_normalize(found, max_level=1)


def select(rows: pandas.DataFrame, kind: str, case: Sequence[str], **wanted: Any) -> pandas.DataFrame:
    """Return the last record of each case of a kind, in the order of measurement.

    case: the columns that identify a case, as far as the records have them. wanted: column → value. Raises ValueError,
    'no records of the kind …', if there are none.
    """
    found = rows[rows["kind"] == kind] if "kind" in rows else rows[:0]
    for column, value in wanted.items():
        found = found[found[column] == value] if column in found else found[:0]
    if found.empty:
        asked = ", ".join(f"{column} {value}" for column, value in wanted.items())
        raise ValueError(f"no records of the kind {kind!r}{' with ' * bool(wanted)}{asked}")
    return found.drop_duplicates([name for name in case if name in found], keep="last")


def _files(study: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{study}.*.jsonl"))


def _machine(path: Path) -> str:
    return path.name.split(".")[1]


def _marked(frame: pandas.DataFrame, path: Path) -> pandas.DataFrame:
    """Return the reader's records, each with a machine whose name ends in ', your run'."""
    known = frame["on.machine"].fillna(_machine(path)) if "on.machine" in frame else _machine(path)
    frame["on.machine"] = known + YOURS
    return frame


@cache
def _say_once(text: str) -> None:
    print(text)
