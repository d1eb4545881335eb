"""Graded notebooks under strict nbval: JUnit XML says what the grades say, of whomever and whatever they are."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import pytest

from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results import nbval_run
from labs_helpers.grading.results.gradebook import GRADED, MISSING, REVIEW, Record, record_path, save
from labs_helpers.grading.results.graded_cell import read, said
from labs_helpers.grading.results.graded_notebook import full, graded_path, write_graded
from labs_helpers.grading.results.nbval_run import _suite, junit
from labs_helpers.launch.process import run
from tests.notebook_form import faults

EXERCISES = [SimpleNamespace(id=f"00/{i}", title=f"the title of {i}", points=10) for i in range(4)]
LAB = SimpleNamespace(number="00", title="Start here", exercises=lambda: EXERCISES)
CASES = ("three elements", "kept: 2 tensors")
ALL_CASES = {one.id: CASES for one in EXERCISES[:3]}  # of a transfer exercise there may be none
HOSTILE = "\x1b[31m]]></failure>\x00\ud800\u202e<b>&amp;\r'''\"\"\"{x}\\"


def right(number, cases=CASES):
    return Mark(f"00/{number}", 10, 10, "right", cases=cases)


def wrong(number, points=5.0, reason="off by one\nLikely cause: the mask", cases=CASES[:1]):
    return Mark(f"00/{number}", points, 10, "wrong", reason, cases=cases)


ADA = Record("ada", GRADED, (right(0), right(1, ("three elements", "kept: 3 tensors")), wrong(2), right(3, ("x",))))
BOB = Record(f"b/{HOSTILE}", REVIEW, (
    wrong(0, 0, HOSTILE, (HOSTILE,)), replace(wrong(1), points=12.5, status="override"),
    replace(right(2), points=None, status="review", reason="somebody has to look"),
    replace(right(3), points=3, status="override"),
))  # fmt: skip
CY = Record("cy", MISSING, reason="nothing was handed in")


@pytest.fixture
def graded(tmp_path):
    """graded(*records): a folder with their records, as they were before overrides, and the graded notebooks."""

    def write(*records, lab=LAB, all_cases=ALL_CASES):
        for record in records:
            marks = tuple(
                replace(one, status="wrong" if one.status == "override" else one.status) for one in record.marks
            )
            if record.status != MISSING:
                save(tmp_path, replace(record, marks=marks))
        write_graded(tmp_path, records, {BOB.student: f"Bob {HOSTILE}"}, lab, all_cases)
        return tmp_path

    return write


def test_failures_in_the_xml_are_the_exercises_without_all_points(graded):
    out = graded(ADA, BOB, CY)
    (out / "graded" / "conftest.py").write_text("def pytest_collection_modifyitems(items): items.clear()\n")
    (out / "graded" / "test_mine.py").write_text("def test_mine(): pass\n")
    assert junit(out, [CY, ADA, BOB], {BOB.student: f"Bob {HOSTILE}"}, LAB, jobs=1) == []
    (suite,) = ElementTree.parse(out / "junit.xml").getroot()  # which fails where it is not well-formed
    by = {(case.get("classname")[:2], case.get("name")[:4]): case for case in suite}
    assert len(by) == len(suite) == 12 and suite.get("failures") == "8" and suite.get("tests") == "12"
    failed = {key for key, case in by.items() if case.find("failure") is not None}
    passed = {("ad", "00/0"), ("ad", "00/1"), ("ad", "00/3"), ("b/", "00/1")}
    assert set(by) - failed == passed
    assert by["ad", "00/2"].get("name") == "00/2 the title of 2 · ada"
    message = by["ad", "00/2"].find("failure")
    assert message.get("message") == "✗ off by one\nLikely cause: the mask" and "5 of 10 points" in message.text
    assert "nbval: Cell outputs differ" in message.text
    assert by["b/", "00/0"].find("failure").get("message").startswith("✗ \ufffd[31m]]></failure>\ufffd")
    assert "set by the instructor: 3 of 10" in by["b/", "00/3"].find("failure").text
    assert json.loads((out / "graded/reference.jsonl").read_text().splitlines()[1])["cases"] == list(CASES)
    assert by["cy", "00/0"].find("failure").get("message") == "✗ nothing was handed in"
    assert not {"\x1b", "\x00", "\u202e"} & set((out / "junit.xml").read_text())


def test_the_notebooks_are_whole_and_hold_nothing_of_the_students(graded):
    out = graded(ADA, BOB, CY)
    files = sorted((out / "graded").glob("*.ipynb"))
    assert files == sorted(graded_path(out, one.student) for one in (ADA, BOB, CY))
    for path in files:
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        assert [cell.cell_type for cell in book.cells] == ["raw", *["code"] * 4]
        assert "off by one" not in path.read_text() and faults(path) == []
    assert record_path(out, BOB.student).name in nbformat.read(graded_path(out, BOB.student), 4).cells[1].source
    write_graded(out, [ADA], {}, LAB, ALL_CASES)
    assert [path.name for path in (out / "graded").glob("*.ipynb")] == ["ada.ipynb"]


def test_a_cell_displays_what_the_reference_displays_only_of_what_is_right():
    reference = {"most": 10, "cases": list(CASES), "status": "right", "points": 10}
    ours = said(reference, reference)
    assert ours == "✓ three elements\n✓ kept: 2 tensors\n10 of 10 points"

    def shown(status="right", points=10, cases=CASES, reason=""):
        return said(reference, {"status": status, "points": points, "cases": cases, "reason": reason})

    assert shown() == ours == shown(cases=("three elements", "kept: 7 tensors"))
    others = [shown(points=9), shown("wrong"), shown(cases=CASES[:1]), shown("review", None), shown(cases=())]
    assert ours not in others and "no points yet" in others[3]
    assert "✗ why\n○ still to pass: kept: 2 tensors\n4 of 10" in shown("wrong", 4, CASES[:1], "why")


def test_a_record_that_is_broken_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"reason": "the file is empty", "marks": 0}\n')
    (tmp_path / "y.jsonl").write_text("{")
    assert read(tmp_path / "x.jsonl", "00/0")["reason"] == "the file is empty"
    assert "cannot be read" in read(tmp_path / "y.jsonl", "00/0")["reason"]
    assert read(tmp_path / "z.jsonl", "00/0")["reason"] == "nothing was handed in"


def test_where_nbval_and_the_grade_disagree_it_is_said(graded):
    out = graded(ADA)
    case = [ElementTree.Element("testcase", name=f"Cell {number}", time="0.1") for number in range(4)]
    _, said_of = _suite(out, [ADA], {}, LAB, {"ada.ipynb": case})
    assert said_of == ["ada, 00/2: not all points, and its cell passes under nbval"]
    _, said_of = _suite(out, [ADA], {}, LAB, {})
    assert len(said_of) == 4 and "all points, and its cell has not run under nbval" in said_of[0]
    assert full(ADA, LAB) == {"00/0": True, "00/1": True, "00/2": False, "00/3": True}


def test_an_nbval_that_does_not_end_and_a_class_of_nobody_are_told(graded, monkeypatch):
    out = graded(ADA)
    monkeypatch.setattr(nbval_run, "PYTEST", ["-c", "raise SystemExit('no more memory')"])
    (line,) = junit(out, [ADA], {}, LAB)
    assert "nbval did not come to its end" in line and "no more memory" in line
    assert (out / "junit.xml").read_text().count("this cell has not run") == 4
    assert junit(out, [], {}, LAB) == [] and ElementTree.parse(out / "junit.xml").getroot().get("tests") == "0"


def test_a_cell_imports_little():
    program = "import sys, labs_helpers.grading.results.graded_cell; "
    program += "print(*{'torch', 'numpy', 'jinja2'} & set(sys.modules))"
    assert run([sys.executable, "-c", program], timeout=60).strip() == ""
