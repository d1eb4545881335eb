"""A study's records by machine: those that come with the course, and those that the reader measured.

Both are drawn side by side and never joined, even where the reader's machine has the name of a recorded one:
'NVIDIA H200 (recorded)' and 'NVIDIA H200, your run'.
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
    """The label of a machine's curve, where `machine` is the 'on.machine' of its records."""
    return machine if machine.endswith(YOURS) else machine + RECORDED


def find(study: str, machine: str) -> Path:
    """The file with a machine's records of a study; it need not exist.

    machine: the machine's label, or the part of its file's name between the dots. It means the recorded machine, or the
    reader's where none of that name is recorded; with ', your run' or '-your-run' behind it, always the reader's.
    """
    name = results.slug(machine)
    own = results.path_for(study, name.removesuffix(results.slug(YOURS)), results.own_dir())
    shipped = results.path_for(study, name)
    return own if own.stem != shipped.stem or (own.is_file() and not shipped.is_file()) else shipped


def of_machine(study: str, machine: str, command: str) -> pandas.DataFrame:
    """One machine's records of a study, found by `find`. The reader's have ', your run' in 'on.machine'.

    Raises FileNotFoundError, which names `command` as the way to make them.
    """
    path = find(study, machine)
    frame = results.load(path, command=command)
    return _marked(frame, path) if path.parent == results.own_dir() else frame


def recorded(study: str) -> dict[str, pandas.DataFrame]:
    """The part of the file name between the dots → the records of a machine that came with the course."""
    return {_machine(path): results.load(path) for path in _files(study, results.results_dir())}


def yours(study: str) -> dict[str, pandas.DataFrame]:
    """The part of the file name between the dots, with '-your-run' → the records of a machine that the reader
    measured.

    Damaged lines, and files without a record that can be read, are left out; a sentence says so, once.
    """
    found = {}
    for path in _files(study, results.own_dir()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged lines: they are told below, in one sentence
            try:
                frame = _marked(results.load(path), path)
            except Exception as error:  # a figure does not fail over a file that belongs to the reader
                _say_once(f"{path} cannot be read and is left out of the figures: {error}")
                continue
        if damaged := frame.attrs["damaged"]:
            _say_once(f"{path} has damaged lines, which are left out of the figures: {', '.join(map(str, damaged))}")
        if len(frame):
            found[f"{_machine(path)}-{results.slug(YOURS)}"] = frame
    return found


def frame(found: list[dict[str, Any]]) -> pandas.DataFrame:
    """Make of a study's records the DataFrame that loading them would give."""
    import pandas

    return pandas.json_normalize(found, max_level=1)


def select(rows: pandas.DataFrame, kind: str, case: Sequence[str], **wanted: Any) -> pandas.DataFrame:
    """Return the last record of each case of a kind, in the order in which they were measured.

    case: the columns that tell one case from another, as far as the records have them. wanted: column → value. Raises
    ValueError, 'no records of the kind …', where there is none.
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
    """The reader's records, each with a machine, which ends in ', your run'."""
    known = frame["on.machine"].fillna(_machine(path)) if "on.machine" in frame else _machine(path)
    frame["on.machine"] = known + YOURS
    return frame


@cache
def _say_once(text: str) -> None:
    print(text)
