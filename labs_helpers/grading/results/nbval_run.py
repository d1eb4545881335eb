"""Show the grades as a notebook that strict nbval runs, and nbval's report as JUnit XML: one test per student and
exercise.

Each cell of OUT/graded.ipynb displays a record's entry about one exercise. The cell's stored output is that of an
exercise with full points, so nbval passes a cell exactly if the exercise has full points. No student's code is in the
notebook, and none is run.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output, new_raw_cell

import labs_helpers
from labs_helpers.grading.results.gradebook import OVERRIDE, Record, record_path, write_whole
from labs_helpers.grading.results.graded_cell import full, read, said, why
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.labs import Lab
from labs_helpers.launch.process import ProcessFailed, run

NOTEBOOK, REPORT = "graded.ipynb", "junit.xml"
CELL_S = 60  # that one cell, or the start of the kernel, may take on a busy machine; most take some milliseconds
# No conftest.py, no other plugin and no setting of the reader's takes part.
PYTEST = [
    "-P", "-m", "pytest", "-p", "nbval.plugin", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull,
    "--rootdir=.", "--confcutdir=.", "-o", "junit_logging=no", "--tb=no", "-q", "--nbval",
    "--nbval-current-env", f"--nbval-cell-timeout={CELL_S}", f"--nbval-kernel-startup-timeout={CELL_S}",
]  # fmt: skip
ABOUT = """Lab {number}: {title}

Each cell displays what the record of a student says of an exercise. The output that is stored here is that of an
exercise with all its points. Run the cells, or nbval, to see what each student has."""


def junit(out: Path, records: Sequence[Record], names: Mapping[str, str], lab: Lab) -> list[str]:
    """Write OUT/graded.ipynb, run it under strict nbval, and write OUT/junit.xml, in which a test case fails exactly if
    its exercise lacks points.

    Returns one line for each cell of which nbval and the grade disagree, or one that says why nbval has not run.
    """
    cells = list(_cells(out, records, lab))
    write_whole(out / NOTEBOOK, nbformat.writes(_notebook(cells, names, lab)) + "\n")
    ran, trouble = _run(out, len(cells)) if cells else ([], "")
    if len(ran) != len(cells):
        trouble = trouble or f"nbval has run {len(ran)} of {len(cells)} cells"
        ran = [None] * len(cells)
    suite = ElementTree.Element("testsuite", name=plain(f"lab {lab.number}: {lab.title}"))
    disagree = []
    for cell, case in zip(cells, ran, strict=True):
        student, exercise = plain(cell["student"]), cell["exercise"]
        passed = case is not None and not len(case)
        one = ElementTree.SubElement(
            suite, "testcase", classname=f"{student} {plain(names.get(cell['student'], ''))}".strip(),
            name=plain(f"{exercise.id} {exercise.title}"), time=case.get("time", "0") if case is not None else "0",
        )  # fmt: skip
        if not passed:
            mark = read(out / cell["record"], exercise.id)
            shown = said(mark, cell["instructor"])
            message = why(mark) if cell["instructor"] is None else shown
            ElementTree.SubElement(one, "failure", message=message).text = shown
        if passed != cell["full"]:
            grade, what = ("all" if cell["full"] else "not all"), ("passes" if passed else "fails")
            disagree.append(f"{student}, {exercise.id}: {grade} points, and its cell {what} under nbval")
    write_whole(out / REPORT, ElementTree.tostring(_summed(suite), encoding="unicode", xml_declaration=True) + "\n")
    return [trouble] if trouble else disagree


def _cells(out: Path, records: Sequence[Record], lab: Lab) -> Iterator[dict[str, Any]]:
    for record in records:
        marks = {mark.exercise: mark for mark in record.marks}
        for exercise in lab.exercises():
            mark = marks.get(exercise.id)
            points = mark.points if mark else 0
            yield {
                "student": record.student, "exercise": exercise, "full": (points or 0) >= exercise.points,
                "record": str(record_path(out, record.student).relative_to(out)),
                "instructor": points if mark and mark.status == OVERRIDE else None,
            }  # fmt: skip


def _notebook(cells: Sequence[Mapping[str, Any]], names: Mapping[str, str], lab: Lab) -> Any:
    found = [new_raw_cell(ABOUT.format(number=lab.number, title=lab.title), id="about")]
    for number, cell in enumerate(cells):
        if number == 0 or cell["student"] != cells[number - 1]["student"]:
            found.append(new_raw_cell(plain(f"{names.get(cell['student'], '')} {cell['student']}"), id=f"s{number}"))
        given = f", instructor={float(cell['instructor'])!r}" if cell["instructor"] is not None else ""
        call = f"show({json.dumps(cell['record'])}, {json.dumps(cell['exercise'].id)}{given})"
        output = new_output("stream", name="stdout", text=full(cell["exercise"].points, cell["instructor"]) + "\n")
        source = f"from labs_helpers.grading.results.graded_cell import show\n\n{call}"
        found.append(new_code_cell(source, id=f"c{number}", execution_count=number + 1, outputs=[output]))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=found, metadata={"kernelspec": kernel})


def _run(out: Path, cells: int) -> tuple[list[Any], str]:
    """Return nbval's test cases in the order of the notebook's cells, and why there are none."""
    with tempfile.TemporaryDirectory(prefix="nbval-") as scratch:
        report = Path(scratch, REPORT)
        command = [sys.executable, *PYTEST, f"--junit-xml={report}", NOTEBOOK]
        try:
            run(command, timeout=2 * CELL_S + cells, cwd=out, env=_environment(scratch))
        except ProcessFailed as error:
            if error.returncode != 1 or not report.exists():  # 1: some tests have failed
                return [], f"nbval did not come to its end: {plain(error, 2_000)}"
        return sorted(ElementTree.parse(report).iter("testcase"), key=_number), ""


def _environment(scratch: str) -> dict[str, str]:
    """Return the environment without variables that would load the reader's own plugins into pytest or the kernel."""
    own = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONSTARTUP", "PYTHONPATH"}
    return {name: value for name, value in os.environ.items() if name not in own} | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONSAFEPATH": "1", "IPYTHONDIR": scratch,
        "JUPYTER_RUNTIME_DIR": scratch, "TMPDIR": scratch, "PYTHONPATH": str(Path(labs_helpers.__file__).parents[1]),
    }  # fmt: skip


def _number(case: ElementTree.Element) -> int:
    return int((re.findall(r"\d+", case.get("name", "")) or [-1])[-1])


def _summed(suite: ElementTree.Element) -> ElementTree.Element:
    """Add the sums that readers of JUnit XML expect."""
    failures = len(suite.findall("testcase/failure"))
    sums = {"tests": str(len(suite)), "failures": str(failures), "errors": "0", "skipped": "0"}
    suite.attrib.update(sums)
    whole = ElementTree.Element("testsuites", sums)
    whole.append(suite)
    return whole
