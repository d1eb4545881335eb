"""Strict nbval over the graded notebooks, as JUnit XML with a test per student and exercise."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import labs_helpers
from labs_helpers.grading.results.gradebook import Record, record_path, write_whole
from labs_helpers.grading.results.graded_cell import REFERENCE, read, said, why
from labs_helpers.grading.results.graded_notebook import FOLDER, full, graded_path
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.labs import Lab
from labs_helpers.launch.process import ProcessFailed, run

CELL_S = 60  # for one cell, and for the start of a kernel: the machine may be busy
NOTEBOOK_S = 10  # of all of them, on the average: it takes about one
# No conftest.py, no other plugin and no setting of the reader's has a say.
PYTEST = [
    "-P", "-m", "pytest", "-p", "nbval.plugin", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull,
    "--rootdir=.", "--confcutdir=.", "-o", "python_files=", "-o", "junit_logging=no", "--tb=no", "-vv", "--nbval",
    "--nbval-current-env", f"--nbval-cell-timeout={CELL_S}", f"--nbval-kernel-startup-timeout={CELL_S}",
]  # fmt: skip
DIFFER = "Cell outputs differ"  # nbval's words
_COLOUR = re.compile(r"(?:#x1B|\x1b)\[\d+m")  # as JUnit XML has it, and as a terminal


def junit(out: Path, records: Sequence[Record], names: Mapping[str, str], lab: Lab, jobs: int = 2) -> list[str]:
    """Runs OUT/graded/ under strict nbval, `jobs` notebooks at once, and writes OUT/junit.xml: a test case per student
    and exercise, failed exactly where points are missing.

    Returns what is wrong with that, a line each and none unless something is broken: a cell of which nbval and the
    grade are of different opinions, or nbval itself where it does not come to its end.
    """
    told, trouble = _told(out / FOLDER, len(records), jobs) if records else ({}, "")
    suite, disagreements = _suite(out, records, names, lab, told)
    text = ElementTree.tostring(_whole(suite), encoding="unicode")
    write_whole(out / "junit.xml", f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')
    return [trouble] if trouble else disagreements


def _told(folder: Path, notebooks: int, jobs: int) -> tuple[dict[str, list[ElementTree.Element]], str]:
    """A notebook's file name → nbval's test cases of it, in the order of its cells; and why there are none."""
    with tempfile.TemporaryDirectory(prefix="nbval-") as scratch:
        raw = Path(scratch, "junit.xml")
        several = ["-p", "xdist.plugin", "-n", str(jobs), "--dist", "loadfile"]
        command = [sys.executable, *PYTEST, *(several if jobs > 1 and find_spec("xdist") else []), "."]
        try:
            limit = 2 * CELL_S + NOTEBOOK_S * notebooks
            run([*command, f"--junit-xml={raw}"], timeout=limit, cwd=folder, env=_environment(scratch))
        except ProcessFailed as error:
            if error.returncode != 1 or not raw.exists():  # 1: some tests have failed
                return {}, f"nbval did not come to its end: {plain(error, 2_000)}"
        found: dict[str, list[ElementTree.Element]] = {}
        for case in ElementTree.parse(raw).iter("testcase"):
            found.setdefault(case.get("classname", ""), []).append(case)
    # From which number on nbval counts cells differs between its releases.
    return {name: sorted(cases, key=_number) for name, cases in found.items()}, ""


def _environment(scratch: str) -> dict[str, str]:
    """Without what would load something of the reader's into pytest or a kernel."""
    own = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONSTARTUP", "PYTHONPATH"}
    return {name: value for name, value in os.environ.items() if name not in own} | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONSAFEPATH": "1", "IPYTHONDIR": scratch,
        "JUPYTER_RUNTIME_DIR": scratch, "TMPDIR": scratch, "PYTHONPATH": str(Path(labs_helpers.__file__).parents[1]),
    }  # fmt: skip


def _number(case: ElementTree.Element) -> int:
    digits = re.findall(r"\d+", case.get("name", ""))
    return int(digits[-1]) if digits else -1


def _suite(
    out: Path,
    records: Iterable[Record],
    names: Mapping[str, str],
    lab: Lab,
    told: Mapping[str, list[ElementTree.Element]],
) -> tuple[ElementTree.Element, list[str]]:
    """The cases under the names of students and exercises, and where they disagree with the grades."""
    suite = ElementTree.Element("testsuite", name=plain(f"lab {lab.number}: {lab.title}"))
    disagreements = []
    for record in sorted(records, key=lambda one: one.student):
        cases = told.get(graded_path(out, record.student).name, [])
        expected = full(record, lab)
        if len(cases) != len(expected):
            cases = [ElementTree.Element("testcase")] * len(expected)
        for exercise, case, all_points in zip(lab.exercises(), cases, expected.values(), strict=True):
            student, name = plain(record.student), plain(names.get(record.student, ""))
            title = f"{exercise.id} {exercise.title} · {student}"
            one = ElementTree.SubElement(
                suite, "testcase", classname=f"{student} ({name})" if name else student, name=plain(title),
                time=case.get("time", "0"),
            )  # fmt: skip
            ran = case.get("name") is not None
            passed = ran and not list(_troubles(case))
            if not passed:
                _explain(one, out, record, exercise.id, case)
            if passed != all_points or not ran:
                what = ("passes" if passed else "fails") if ran else "has not run"
                grade = "all" if all_points else "not all"
                disagreements.append(f"{student}, {exercise.id}: {grade} points, and its cell {what} under nbval")
    return suite, disagreements


def _troubles(case: ElementTree.Element) -> Iterator[ElementTree.Element]:
    return (part for part in case if part.tag in ("failure", "error", "skipped"))


def _explain(one: ElementTree.Element, out: Path, record: Record, exercise: str, case: ElementTree.Element) -> None:
    """Adds the failure: in short what the check said, in full what the cell displays, and what nbval says to it."""
    reference = read(out / FOLDER / REFERENCE, exercise)
    mark = read(record_path(out, record.student), exercise)
    own = next((m.points for m in record.marks if m.exercise == exercise and m.status == "override"), None)
    shown = said(reference, mark, own)
    nbval = "\n".join(plain(_COLOUR.sub("", part.text or ""), 10_000) for part in _troubles(case))
    if DIFFER in nbval:  # what is displayed says it better than a comparison with what is not
        nbval = DIFFER
    failure = ElementTree.SubElement(one, "failure", message=why(mark) if own is None else shown)
    failure.text = f"{shown}\n\nnbval: {nbval or 'this cell has not run'}"


def _whole(suite: ElementTree.Element) -> ElementTree.Element:
    """With the sums that readers of JUnit XML look for."""
    failures = sum(case.find("failure") is not None for case in suite)
    sums = {"tests": str(len(suite)), "failures": str(failures), "errors": "0", "skipped": "0"}
    sums["time"] = f"{sum(float(case.get('time', '0')) for case in suite):.3f}"
    suite.attrib.update(sums)
    whole = ElementTree.Element("testsuites", sums)
    whole.append(suite)
    return whole
