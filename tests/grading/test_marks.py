"""Test the points of whole submissions: solved, untouched, and partly wrong labs."""

import json

import pytest

from labs_helpers.grading import marks as module
from labs_helpers.grading.cases import own_answers
from labs_helpers.grading.course_answers import CourseAnswer, CourseAnswerFails, course_answers
from labs_helpers.grading.hidden.values import written
from labs_helpers.grading.jails.bubblewrap import why_not
from labs_helpers.grading.marks import HIDDEN, OPEN
from labs_helpers.grading.reading.own_cells import OwnCells
from labs_helpers.grading.verdict import FAILED, RIGHT, TIMEOUT, WRONG, Verdict
from labs_helpers.labs import LABS

LAB = LABS[0]


def solution(lab, exercise):
    return own_answers(lab)[exercise.id]


def marks(path, lab, judge=None, measure=None):
    """Without a course_answer, but for those in `measure`."""
    given = (path, lab, measure or {}, 7)
    return module.marks(*given, judge=judge) if judge else module.marks(*given)


@pytest.fixture
def hand_in(tmp_path):
    """hand_in(lab, {exercise's id: source}): the file of a submission."""

    def write(lab, sources, own=()):
        notebook = json.loads(lab.path.read_text())
        for cell in notebook["cells"]:
            mark = cell["metadata"].get("nbgrader", {}).get("grade_id", "").replace("-", "/", 1)
            cell["source"] = sources.get(mark, cell["source"])
        notebook["cells"][:0] = [{"cell_type": "code", "source": text, "metadata": {}} for text in own]
        path = tmp_path / "ada.ipynb"
        path.write_text(json.dumps(notebook))
        return path

    return write


def believing(answers, imports, limits, seeds=()):
    return [Verdict(RIGHT, ("a case",)) for _ in answers]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_solved_labs_have_all_points_and_untouched_ones_none(hand_in, lab):
    """That their checks find them right in a jail is looked at below, and of every lab in the soak."""
    solved = marks(hand_in(lab, {one.id: solution(lab, one) for one in lab.exercises()}), lab, judge=believing)
    assert [mark.points for mark in solved] == [one.points for one in lab.exercises()]
    untouched = marks(lab.path, lab, judge=believing)
    assert {(mark.points, mark.status) for mark in untouched} == {(0, OPEN)}


def test_each_answer_costs_its_own_points_and_says_why(hand_in):
    one, two, three, four, *_ = LAB.exercises()
    sources = {
        one.id: "def f(:",
        two.id: solution(LAB, two) + "\nimport os\nplace = os.sep",
        three.id: solution(LAB, three),
        four.id: solution(LAB, four),
    }
    said = {three.id: Verdict(WRONG, (), "the sum is off"), four.id: Verdict(FAILED, (), "KeyError: 1")}

    together = []

    def judge(answers, imports, limits, seeds=()):
        together.append([answer.shipped.id for answer in answers])
        return [said.get(answer.shipped.id, Verdict(RIGHT)) for answer in answers]

    found = {mark.exercise: mark for mark in marks(hand_in(LAB, sources), LAB, judge=judge)}
    assert (found[one.id].points, found[one.id].reason) == (0, "SyntaxError in line 1: invalid syntax")
    assert (found[two.id].points, found[two.id].reason) == (two.points, "")  # whatever it imports
    assert (found[three.id].points, found[three.id].reason) == (0, "the sum is off")
    assert together == [[two.id, three.id, four.id]]
    assert found[four.id].points is None and found[four.id].reason == "the check itself failed: KeyError: 1"


def test_a_students_own_cells_count_where_the_answer_reads_them(hand_in):
    one = LAB.exercises()[0]
    own = ["import os\nos.listdir('.')", "def half(x):\n    return x // two\ntwo = 2\nprint(half(3))"]
    plain = solution(LAB, one)
    seen = []

    def judge(answers, imports, limits, seeds=()):
        seen.append(answers[0].before)
        return [Verdict(RIGHT)]

    assert marks(hand_in(LAB, {one.id: plain}, own), LAB, judge=judge)[0].points == one.points
    using = plain + "\n\ndef other():\n    return half(4)\n"
    assert marks(hand_in(LAB, {one.id: using}, own), LAB, judge=judge)[0].points == one.points
    assert seen == [(), ("def half(x):\n    return x // two", "two = 2")]


def test_cells_nested_without_end_cost_the_answer_that_reads_them(hand_in):
    one, two = LAB.exercises()[:2]
    own = ["deep = " + "not " * 900 + "1"]
    reading = solution(LAB, one) + "\n\ndef other():\n    return deep\n"
    sources = {one.id: reading, two.id: solution(LAB, two)}
    found = marks(hand_in(LAB, sources, own), LAB, judge=believing)
    assert found[0].points == 0 and "nested too deeply" in found[0].reason and found[1].points == two.points


def test_what_is_needed_is_found_through_others():
    cells = ["a = 1\nb = a\nc = 3", "import math\nfrom x import y as z", "d += 1\nprint(d)"]
    needed = OwnCells().needed
    assert needed(cells, "b; z") == ("a = 1", "b = a", "from x import y as z")
    assert needed(cells, "math.pi + d") == ("import math", "d += 1") and needed(cells, "e") == ()
    assert needed(["try: import a as b\nexcept: b = 1", "with c as d: pass\nif (e := 2): pass"], "b; d + e")[1:]


def test_cases_that_were_right_have_their_share_of_the_points(hand_in):
    one, two, three, four, *_ = LAB.exercises()
    sources = {each.id: solution(LAB, each) for each in (one, two, three)} | {four.id: "def row_sum(X): return 1"}
    path = hand_in(LAB, sources)
    measure = {one.id: CourseAnswer(("a", "b", "c"), None, "") for one in LAB.exercises()}

    def judge(answers, imports, limits, seeds=()):
        return [Verdict(TIMEOUT if one.shipped.id == four.id else WRONG, ("a",), "no") for one in answers]

    found = marks(path, LAB, judge, measure)
    assert [mark.points for mark in found[:4]] == [*(round(each.points / 3, 1) for each in (one, two, three)), 0]
    assert [mark.flags for mark in found[:4]] == [(), (), (), (TIMEOUT,)]
    assert marks(path, LAB, lambda *given, **named: [Verdict(WRONG, ("a",) * 9) for _ in given[0]], measure)[
        0
    ].points == round(one.points * 2 / 3, 1)


def test_other_values_for_hidden_inputs_have_no_points(hand_in):
    one, two, *_ = LAB.exercises()
    path = hand_in(LAB, {each.id: solution(LAB, each) for each in (one, two)})
    measure = {each.id: CourseAnswer(("a",), [written(1.0)], "") for each in (one, two)}
    for value, said in ((2.0, "other values"), ("x", "another value"), ({"pickle": 1}, "gives KeyError: 'dtype'")):

        def judge(answers, imports, limits, seeds=(), value=value):
            text = value if isinstance(value, dict) else written(value)
            return [Verdict(RIGHT, ("a",), values=[[text]])] * len(answers)

        found, *_ = marks(path, LAB, judge, measure)
        assert (found.points, found.status, found.flags) == (0, WRONG, (HIDDEN,)) and said in found.reason

    def raising(answers, imports, limits, seeds=()):
        return [
            Verdict(RIGHT, ("a",), values=[[written(1.0)]], raised="OSError" * (each.shipped.id == two.id))
            for each in answers
        ]

    first, second, *_ = marks(path, LAB, raising, measure)
    assert first.points == one.points and (second.points, second.flags) == (0, (HIDDEN,))
    assert second.reason.endswith("raises an error")


def test_who_is_right_for_nothing_but_cases_of_the_check_has_no_share(hand_in):
    one, two, *_ = LAB.exercises()
    path = hand_in(LAB, {one.id: solution(LAB, one), two.id: solution(LAB, two)})
    right = [written(value) for value in (10_007, 20_011, 0.3)]
    measure = {each.id: CourseAnswer(("a", "b", "c"), right, "", [written(1)] * 3) for each in (one, two)}
    given = {one.id: [written(3)], two.id: right[:2]}

    def judge(answers, imports, limits, seeds=()):
        return [Verdict(WRONG, ("a",), "no", [given[each.shipped.id]], "KeyError") for each in answers]

    table, honest, *_ = marks(path, LAB, judge, measure)
    assert (table.points, table.flags, table.status) == (0, (HIDDEN,), WRONG) and "1 of 3 cases" in table.reason
    assert (honest.points, honest.flags, honest.reason) == (round(two.points / 3, 1), (), "no")


def test_where_the_courses_own_answers_do_not_pass_nobody_is_graded():
    def judge(answers, imports, limits, seeds=()):
        return [Verdict(RIGHT, ("a",)) for _ in answers[1:]] + [Verdict(FAILED, (), "no Triton here")]

    with pytest.raises(
        CourseAnswerFails, match=f"answer to {LAB.exercises()[-1].id} is found failed here: no Triton here"
    ):
        course_answers(LAB, 7, judge=judge)
    with pytest.raises(CourseAnswerFails, match="for hidden inputs it raises TypeError"):
        course_answers(
            LAB, 7, judge=lambda answers, *given, **seed: [Verdict(RIGHT, raised="TypeError")] * len(answers)
        )


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.soak
@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_solved_labs_pass_in_the_jail(hand_in, lab):
    measure = course_answers(lab, 7)
    assert all(one.cases and one.values for one in measure.values())
    path = hand_in(lab, {one.id: solution(lab, one) for one in lab.exercises()})
    found = marks(path, lab, measure=measure)
    assert [(mark.points, mark.reason) for mark in found] == [(one.points, "") for one in lab.exercises()]
