"""Keep a student's progress after the kernel ends: each ✓ with a hash of its answer, and the predictions.

Progress is kept in my_labs/progress.json for a notebook in my_labs/ that is open in JupyterLab or VS Code, and on Colab
in the Drive folder for notebooks if Drive is mounted. Nothing else writes it: a headless run (nbval, `make run`, `make
refresh`, grading) has no such session. Grading never reads the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import NoneType
from typing import Any

from labs_helpers.course.cells import running_shell
from labs_helpers.course.wrap import wrap
from labs_helpers.labs import ROOT

FILE = "progress.json"
MINE = Path(os.environ.get("LABS_MY_LABS", ROOT / "my_labs"))  # my_labs.py --to names another folder
DRIVE = Path("/content/drive/MyDrive")  # Colab mounts a student's Drive here
ABOUT = (
    "The course records your progress in the labs here. It does not affect grading. Delete this file to reset "
    "your progress."
)
# Of a `Prediction`.
FIELDS = {"question": str, "value": (int, float, NoneType), "answer": (int, float, NoneType), "unit": str, "on": str}
_said: set[str] = set()


def own_notebook() -> Path | None:
    """Return the notebook in my_labs/ that this kernel was started for, or None in any other process."""
    shell = running_shell()
    named = shell and (shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME"))
    if not named or Path(named).suffix != ".ipynb":
        return None
    path = Path(named).resolve()
    return path if path.is_relative_to(MINE.resolve()) else None


def place() -> Path | None:
    """Return the file in which this kernel keeps progress, or None if it keeps none."""
    if own_notebook():
        return MINE / FILE
    if "COLAB_RELEASE_TAG" in os.environ and running_shell() and DRIVE.is_dir():
        return DRIVE / "Colab Notebooks" / f"tile-to-cluster-{FILE}"
    return None


def keep_right(exercise: str, key: str) -> None:
    """Keep the ✓ of an exercise for the answer with that hash."""
    _change(lambda kept: kept["exercises"].update({exercise: {"answer": key, "at": time.strftime("%Y-%m-%d %H:%M")}}))


def keep_prediction(lab: str | None, question: str, told: dict[str, Any]) -> None:
    """Keep a prediction of a lab and the result found. told: the fields of a `Prediction`. The same number again
    keeps the earlier result."""

    def change(kept: dict[str, Any]) -> None:
        of_lab = kept["predictions"].setdefault(lab or "", {})
        if told["answer"] is not None or told["value"] != of_lab.get(question, {}).get("value"):
            of_lab[question] = told

    _change(change)


def kept_here() -> dict[str, Any]:
    """Return the progress of this kernel's notebook, in the form of `read`."""
    return _change(None)


def _change(change: Callable[[dict[str, Any]], None] | None) -> dict[str, Any]:
    """Write the progress after `change`, one process at a time, and return it."""
    if (file := place()) is None:
        return new()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file.parent):
            kept = read(file)
            if change is not None:
                from labs_helpers.course.own_copies import write_text  # nbformat, which may be missing

                change(kept)
                write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", file)
            return kept
    except OSError as error:
        _say_once(f"! Cannot use {file} ({error.strerror}): each ✓ lasts only as long as this kernel.")
        return new()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(file: Path) -> dict[str, Any]:
    """Return the progress in `file`: {"exercises": {id: {"answer": key, "at": time}}, "predictions": {lab: {question:
    …}}}.

    A damaged file is renamed, and a printed line says so.
    """
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        answers = [text for one in kept["exercises"].values() for text in (one["answer"], one["at"])]
        told = [one for lab in kept["predictions"].values() for one in lab.values()]
        fields = [isinstance(one[name], kind) for one in told for name, kind in FIELDS.items()]
        if not all(fields + [isinstance(text, str) for text in answers]):
            raise ValueError("a field is of another type")
        return kept
    except FileNotFoundError:
        return new()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        aside = file.with_name(f"{file.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.json")
        os.replace(file, aside)
        print(
            wrap(
                f"! {file.name} was damaged. It was renamed to {aside.name}, and a new one was started. Your "
                "answers are in the"
            )
        )
        print("  notebooks: Run All restores each ✓.")
        return new()


def new() -> dict[str, Any]:
    return {"about": ABOUT, "exercises": {}, "predictions": {}}


def _say_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        print(wrap(sentence))
