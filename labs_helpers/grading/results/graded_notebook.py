"""A notebook per student that displays the graded cases, with the outputs of the course's own answers stored in it.

Strict nbval runs its cells and compares: a cell passes exactly if the exercise is right in every case and has all its
points. Nothing of a submission is in it, and nothing of one is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from labs_helpers.grading.results.gradebook import Record, keep_only, record_path, write_whole
from labs_helpers.grading.results.graded_cell import REFERENCE, said
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.labs import Lab

FOLDER = "graded"
ABOUT = """{name}, lab {number}: {title}

Each cell below displays what the record of this student says of an exercise. The outputs that are stored here are those
of the course's own answers: run the cells, or nbval, and you see the student's. Nothing of the student's is run."""


def write_graded(
    out: Path, records: Iterable[Record], names: Mapping[str, str], lab: Lab, all_cases: Mapping[str, Sequence[str]]
) -> None:
    """Writes OUT/graded/ID.ipynb for each record, and the record of the reference beside them; notebooks of others that
    are there are removed. all_cases: exercise → the lines of its check."""
    reference = {
        one.id: {"exercise": one.id, "most": one.points, "points": one.points, "status": "right",
                 "cases": list(all_cases[one.id]) if one.id in all_cases else None}
        for one in lab.exercises()
    }  # fmt: skip
    lines = [{"student": "", "reason": ""}, *reference.values()]
    write_whole(out / FOLDER / REFERENCE, "".join(json.dumps(line) + "\n" for line in lines))
    written = set()
    for record in records:
        path = graded_path(out, record.student)
        write_whole(path, nbformat.writes(_notebook(record, names.get(record.student, ""), lab, reference)) + "\n")
        written.add(path.name)
    keep_only(written, out / FOLDER, "*.ipynb")


def graded_path(out: Path, student: str) -> Path:
    """The notebook's file."""
    return out / FOLDER / record_path(out, student).with_suffix(".ipynb").name


def full(record: Record, lab: Lab) -> dict[str, bool]:
    """Exercise → whether it has all its points."""
    points = {mark.exercise: mark.points or 0 for mark in record.marks}
    return {one.id: points.get(one.id, 0) >= one.points for one in lab.exercises()}


def _notebook(record: Record, name: str, lab: Lab, reference: Mapping[str, Mapping[str, Any]]) -> Any:
    whose = f"{plain(name)} ({plain(record.student)})" if name else plain(record.student)
    about = nbformat.v4.new_raw_cell(ABOUT.format(name=whose, number=lab.number, title=lab.title), id="about")
    own = {mark.exercise: mark.points for mark in record.marks if mark.status == "override"}
    cells = [
        _cell(f"../records/{record_path(Path(), record.student).name}", exercise, line, own.get(exercise), number)
        for number, (exercise, line) in enumerate(reference.items(), start=1)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=[about, *cells], metadata={"kernelspec": kernel})


def _cell(record: str, exercise: str, reference: Mapping[str, Any], instructor: float | None, number: int) -> Any:
    """A cell whose stored output is the reference's; of points that the instructor has set, all of them."""
    given = f", instructor={float(instructor)!r}" if instructor is not None else ""
    call = f"show({json.dumps(record, ensure_ascii=False)}, {json.dumps(exercise)}{given})"
    expected = None if instructor is None else max(instructor, reference["most"])
    output = nbformat.v4.new_output("stream", name="stdout", text=said(reference, _as_mark(reference), expected) + "\n")
    return nbformat.v4.new_code_cell(
        f"from labs_helpers.grading.results.graded_cell import show\n\n{call}",
        id=exercise.replace("/", "-"),
        execution_count=number,
        outputs=[output],
    )


def _as_mark(reference: Mapping[str, Any]) -> dict[str, Any]:
    """The reference's line as the mark of a right answer."""
    return {**reference, "cases": reference["cases"] or ()}
