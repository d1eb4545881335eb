"""The output of a cell of OUT/graded.ipynb: one exercise of one student, read from the student's record.

The notebook's kernel imports this, so it imports little itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labs_helpers.grading.results.plain_text import plain


def show(record: str, exercise: str, instructor: float | None = None) -> None:
    """Print the entry of the file `record` about the exercise. instructor: points that replace those of the record."""
    print(said(read(Path(record), exercise), instructor))


def read(record: Path, exercise: str) -> Mapping[str, Any]:
    """Return the exercise's line of a record, or why there is none."""
    try:
        head, *lines = (json.loads(line) for line in record.read_text(encoding="utf-8").splitlines())
        none = {"status": "none", "reason": head["reason"] or "the record holds nothing of this exercise"}
        return next((line for line in lines if line["exercise"] == exercise), none)
    except FileNotFoundError:
        return {"status": "none", "reason": "nothing was handed in"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"status": "none", "reason": f"the record cannot be read: {type(error).__name__}"}


def full(most: float, instructor: float | None = None) -> str:
    """Return the text of an exercise that has all its points."""
    if instructor is not None:
        return f"{max(most, instructor):g} points, set by the instructor"
    return f"✓ right in every case: {most:g} points"


def said(mark: Mapping[str, Any], instructor: float | None = None) -> str:
    """Return the text of an exercise. It is `full` exactly if the exercise has all its points."""
    points, most = mark.get("points", 0), mark.get("most", 0)
    if instructor is not None:
        return f"{instructor:g} points, set by the instructor"
    if mark["status"] == "right" and points is not None and points >= most:
        return full(most)
    lines = [f"✓ {plain(case)}" for case in mark.get("cases", ())]
    return "\n".join([*lines, why(mark), "no points yet" if points is None else f"{points:g} of {most:g} points"])


def why(mark: Mapping[str, Any]) -> str:
    """Return why a mark lacks points."""
    return f"{'○' if mark['status'] in ('not attempted', 'review') else '✗'} {plain(mark['reason'], 2_000)}"
