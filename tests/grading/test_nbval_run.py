"""Test that the grades as a notebook pass through strict nbval to JUnit XML unchanged, with any names and texts."""

import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import pytest

from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results import nbval_run
from labs_helpers.grading.results.gradebook import GRADED, MISSING, REVIEW, Record, save
from labs_helpers.grading.results.graded_cell import full, read, said
from labs_helpers.grading.results.nbval_run import NOTEBOOK, junit
from labs_helpers.launch.process import run
from tests.notebook_form import faults

EXERCISES = [SimpleNamespace(id=f"00/{i}", title=f"the title of {i}", points=10) for i in range(4)]
LAB = SimpleNamespace(number="00", title="Start here", exercises=lambda: EXERCISES)
HOSTILE = "\x1b[31m]]></failure>\x00\ud800\u202e<b>&amp;\r'''\"\"\"{x}\\"


def right(number):
    return Mark(f"00/{number}", 10, 10, "right", cases=("three elements",))


def wrong(number, points=5.0, reason="off by one\nLikely cause: the mask", cases=("three elements",)):
    return Mark(f"00/{number}", points, 10, "wrong", reason, cases=cases)


ADA = Record("ada", GRADED, (right(0), right(1), wrong(2), right(3)))
BOB = Record(f"b/{HOSTILE}", REVIEW, (
    wrong(0, 0, HOSTILE, (HOSTILE,)), replace(wrong(1), points=12.5, status="override"),
    replace(right(2), points=None, status="review", reason="somebody has to look"),
    replace(right(3), points=3, status="override"),
))  # fmt: skip
CY = Record("cy", MISSING, reason="nothing was handed in")


@pytest.fixture
def ran(tmp_path):
    """ran(*records): what `junit` returns of them; their records are as they were before overrides."""

    def write(*records):
        for record in records:
            marks = (replace(one, status="wrong") if one.status == "override" else one for one in record.marks)
            if record.status != MISSING:
                save(tmp_path, replace(record, marks=tuple(marks)))
        return junit(tmp_path, records, {BOB.student: f"Bob {HOSTILE}"}, LAB)

    return write


def test_failures_in_the_xml_are_the_exercises_without_all_points(ran, tmp_path):
    (tmp_path / "conftest.py").write_text("def pytest_collection_modifyitems(items): items.clear()\n")
    assert ran(ADA, BOB, CY) == []
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()  # which fails where it is not well-formed
    by = {(case.get("classname")[:2], case.get("name")[:4]): case.find("failure") for case in suite}
    assert len(by) == len(suite) == 12 and suite.get("failures") == "8" and suite.get("tests") == "12"
    passed = {("ad", "00/0"), ("ad", "00/1"), ("ad", "00/3"), ("b/", "00/1")}
    assert {key for key, failure in by.items() if failure is None} == passed
    message = by["ad", "00/2"]
    assert message.get("message") == "✗ off by one\nLikely cause: the mask"
    assert message.text.startswith("✓ three elements") and message.text.endswith("5 of 10 points")
    assert by["b/", "00/0"].get("message").startswith("✗ \ufffd[31m]]></failure>\ufffd")
    assert by["b/", "00/3"].text == "3 points, set by the instructor"
    assert by["cy", "00/0"].get("message") == "✗ nothing was handed in"
    assert not {"\x1b", "\x00", "\u202e"} & set((tmp_path / "junit.xml").read_text())
    book = nbformat.read(tmp_path / NOTEBOOK, as_version=4)
    nbformat.validate(book)
    assert [cell.cell_type for cell in book.cells] == ["raw", *["raw", *["code"] * 4] * 3]
    assert "off by one" not in (tmp_path / NOTEBOOK).read_text() and faults(tmp_path / NOTEBOOK) == []


def test_a_cell_displays_what_a_right_answer_displays_only_where_all_points_are():
    def shown(status="right", points=10, reason="why", cases=("a",)):
        return said({"status": status, "points": points, "most": 10, "cases": cases, "reason": reason})

    assert shown() == full(10) and said({}, 10) == full(10, 10) == full(10, 3) != said({}, 3)
    others = [shown(points=9), shown("wrong"), shown("review", None), shown("wrong", 4)]
    assert full(10) not in others and others[2] == "✓ a\n○ why\nno points yet" and others[3].endswith("4 of 10 points")


def test_a_record_that_is_broken_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"reason": "the file is empty", "marks": 0}\n')
    (tmp_path / "y.jsonl").write_text("{")
    assert read(tmp_path / "x.jsonl", "00/0")["reason"] == "the file is empty"
    assert "cannot be read" in read(tmp_path / "y.jsonl", "00/0")["reason"]


def test_where_nbval_and_the_grade_disagree_or_it_does_not_run_it_is_said(ran, monkeypatch):
    cases = [ElementTree.Element("testcase", name=f"Cell {number}") for number in range(4)]
    monkeypatch.setattr(nbval_run, "_run", lambda *given: (cases, ""))
    assert ran(ADA) == ["ada, 00/2: not all points, and its cell passes under nbval"]
    cases.pop()
    assert ran(ADA) == ["nbval has run 3 of 4 cells"]
    monkeypatch.undo()
    monkeypatch.setattr(nbval_run, "PYTEST", ["-c", "raise SystemExit('no more memory')"])
    (line,) = ran(ADA)
    assert "nbval did not come to its end" in line and "no more memory" in line


def test_a_cell_imports_little():
    program = "import sys, labs_helpers.grading.results.graded_cell; "
    program += "print(*{'torch', 'numpy', 'jinja2'} & set(sys.modules))"
    assert run([sys.executable, "-c", program], timeout=60).strip() == ""
