"""Test answers that search for the data by which they are judged, and tables of a check's cases: they find neither
seeds nor references, and get no points."""

from __future__ import annotations

import json

import pytest

from labs_helpers.authoring.references import reference
from labs_helpers.grading.course_answers import course_answers
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.jails.bubblewrap import why_not
from labs_helpers.grading.marks import HIDDEN, marks
from labs_helpers.labs import lab
from tests.grading.hostile import HOSTILE
from tests.grading.written import solved, with_answers

LAB, SEED = lab("02"), 836_124_907_551
FIRST, *OTHERS = LAB.exercises()
READER = """
import gc
def NAME(*given):
    found = [one.get(key) for one in gc.get_objects() if type(one) is dict for key in ("seed", "key")]
    raise ValueError(str([one for one in found if type(one) is int]))
"""

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture(scope="module")
def measured():
    return course_answers(LAB, SEED)


@pytest.fixture
def mark(tmp_path, measured):
    def of(source: str):
        path = tmp_path / "ada.ipynb"
        cell = source.replace("NAME", FIRST.trial.__name__)
        path.write_text(json.dumps(with_answers(LAB, {OTHERS[0].id: solved(LAB)[OTHERS[0].id], FIRST.id: cell})))
        found, right, *_ = marks(path, LAB, measured, SEED)
        assert right.points == right.most
        return found

    return of


def test_who_reads_all_memory_finds_no_seed(mark):
    found = mark(READER)
    assert "ValueError" in found.reason and found.points == 0
    assert not {str(SEED), str(key_of(SEED, FIRST.id))} & {*found.reason.replace("]", " ").replace(",", " ").split()}
    assert str(SEED) not in found.reason


def test_who_looks_for_the_reference_finds_none(mark):
    found = mark(HOSTILE["the reference"])
    assert not found.cases and found.points == 0, found


def test_a_table_of_all_cases_but_one_has_no_points(mark, measured):
    function, seen = reference(LAB, FIRST), {}

    def noted(*given):
        seen[given] = function(*given)
        return seen[given]

    assert len(FIRST.verify(noted)) == len(measured[FIRST.id].cases)
    *known, _ = seen.items()
    found = mark(f"def NAME(*given):\n    return {dict(known)!r}.get(given, (1, 1))\n")
    assert found.cases and found.points == 0 and HIDDEN in found.flags, found
    found = mark(f"def NAME(*given):\n    return {seen!r}[given]\n")
    assert found.points == 0 and found.reason.endswith("raises an error") and "KeyError" not in found.reason
