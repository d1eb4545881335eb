"""What a cell of a graded notebook displays: the cases of one exercise with their verdicts, read from a record.

A kernel imports this for each student, so that it imports little itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labs_helpers.grading.results.left_open import still_to_pass
from labs_helpers.grading.results.plain_text import plain

REFERENCE = "reference.jsonl"  # the record of the course's own answers, beside the graded notebooks


def show(record: str, exercise: str, instructor: float | None = None) -> None:
    """Prints what `record`, a file of gradebook's, holds of the exercise. instructor: points that override it."""
    reference = read(Path(REFERENCE), exercise)
    print(said(reference, read(Path(record), exercise), instructor))


def read(record: Path, exercise: str) -> Mapping[str, Any]:
    """The exercise's line of a record; where there is none, why."""
    try:
        head, *lines = (json.loads(line) for line in record.read_text(encoding="utf-8").splitlines())
        why = head["reason"] or "there is nothing of this exercise in the record"
        return next((line for line in lines if line["exercise"] == exercise), {"status": "none", "reason": why})
    except FileNotFoundError:
        return {"status": "none", "reason": "nothing was handed in"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"status": "none", "reason": f"the record cannot be read: {type(error).__name__}"}


def said(reference: Mapping[str, Any], mark: Mapping[str, Any], instructor: float | None = None) -> str:
    """The text of one exercise. It is that of the reference exactly if the mark is right in every case and has all
    points."""
    most = reference["most"]
    if instructor is not None:
        return f"set by the instructor: {instructor:g} of {most:g} points"
    passed, cases = list(mark.get("cases", ())), reference["cases"]
    right = mark["status"] == "right"
    shown = (cases if right and len(passed) == len(cases) else passed) if cases is not None else ()
    lines = [f"✓ {plain(case)}" for case in shown]  # a line may name what the answer did: one that is right has ours
    if not right:
        lines += [why(mark), *(f"○ still to pass: {plain(case)}" for case in still_to_pass(passed, cases or ()))]
    points = mark.get("points")
    return "\n".join([*lines, "no points yet" if points is None else f"{points:g} of {most:g} points"])


def why(mark: Mapping[str, Any]) -> str:
    """What stands in the way of a mark that is not right."""
    return f"{'○' if mark['status'] in ('not attempted', 'review') else '✗'} {plain(mark['reason'], 2_000)}"
