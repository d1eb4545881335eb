"""Test a student's page: its content, what it omits, and that no text of a submission becomes markup."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.grading.jails.memory import MEMORY
from labs_helpers.grading.marks import HIDDEN, Mark
from labs_helpers.grading.reading.submission import CHECK_CHANGED, ELSEWHERE, IN_TEXT, NEW_CELL, OLD, TWICE, UNMARKED
from labs_helpers.grading.reading.submission import MISSING as CELL_MISSING
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.feedback import feedback_page, still_to_pass
from labs_helpers.grading.results.flags import FLAGS, SAME, TWINS
from labs_helpers.grading.results.gradebook import GRADED, LATE, MISSING, OVERRIDE, REVIEW, UNREADABLE, Record
from labs_helpers.grading.results.pages import feedback_link, file_stem
from labs_helpers.grading.results.plain_text import number, plain
from labs_helpers.grading.verdict import CRASHED, TIMEOUT
from tests.grading.html_page import Page, hostile

EXERCISES = [SimpleNamespace(id=f"00/{i}", title=f"the title of {i}", points=10) for i in range(3)]
LAB = SimpleNamespace(number="00", title="Start here", exercises=lambda: EXERCISES, retired=())
CASES = ("three elements", "a full block", "an odd size")
ALL_CASES = {one.id: CASES for one in EXERCISES}
WRONG = Mark("00/1", 3.3, 10, "wrong", "z: row 3:\n  got 1, expected 2\nLikely cause: a block too few", (), CASES[:1])


def page_of(*marks, status=GRADED, sources=None, name="Ada", **more):
    return feedback_page(Record("ada", status, marks, **more), name, sources or {}, ALL_CASES, LAB, 0.1)


def test_it_has_the_points_the_cases_and_the_likely_cause():
    right = Mark("00/0", 10, 10, "right", cases=CASES)
    page = page_of(right, WRONG, sources={"00/1": "def f(x):\n    return x < 1"}, status=LATE, late_days=2)
    text = Page(page).text
    assert "10.64 of 30 points" in " ".join(text.split()) and "2 days late: 13.3 points less 2.66, 10% per day." in text
    assert "Exercise 1 · the title of 1" in text and "    return x < 1" in text
    lines = [line.strip() for line in text.splitlines()]
    assert lines.count("✓three elements") == 2 and lines.count("✓an odd size") == 1 and "○an odd size" in lines
    assert "✗ z: row 3:" in lines and "<strong>Likely cause: a block too few</strong>" in page


def test_cases_still_to_pass_are_those_that_the_check_has_beside_the_ones_that_passed():
    assert still_to_pass((), CASES) == list(CASES) and still_to_pass(CASES, CASES) == []
    assert still_to_pass(("a", "b"), ("a", "a", "b", "c")) == ["a", "c"]
    assert still_to_pass(("kept: 3 tensors",), ("kept: 2 tensors", "c")) == ["c"]  # says what the answer did


@pytest.mark.parametrize("flag", [
    NEW_CELL, IN_TEXT, CHECK_CHANGED, CELL_MISSING, TWICE, UNMARKED, OLD, ELSEWHERE, TIMEOUT, CRASHED, MEMORY, HIDDEN,
])  # fmt: skip
def test_each_flag_is_a_sentence(flag):
    assert FLAGS[flag].replace("'", "&#39;") in page_of(Mark("00/0", 0, 10, "wrong", "x", (flag,)))


def test_what_is_the_instructors_own_is_not_there():
    secret = "SECRET"
    marks = (
        Mark("00/0", 0, 10, "wrong", f"right, but {secret}", (HIDDEN, f"{secret} twin of bob", TWINS, SAME), CASES),
        Mark("00/1", None, 10, "review", f"right, if its check was not deceived: {secret}"),
        Mark("00/2", 0, 10, "crashed", f"the process that ran it died: {secret}", ("crashed",)),
    )
    text = page_of(*marks, status=REVIEW, flags=("not in the class", "3 files, of which the newest is graded"))
    assert secret not in text and "twin" not in text and "own answer" not in text and "not in the class" not in text
    assert "wrong for inputs that the check does not show" in text and "You handed in 3 files" in text
    assert "looks at this answer before it has points" in text and "This is not final" in text


@pytest.mark.parametrize(
    "status, words",
    [(UNREADABLE, "could not be graded: the reason."), (MISSING, "There is no grade: the reason."),
     (gradebook.ERROR, "This is no zero"), (gradebook.WAITING, "is not graded yet")],
)  # fmt: skip
def test_without_a_notebook_it_says_why(status, words):
    text = Page(page_of(status=status, reason="the reason")).text
    assert words in text and "points" not in text


def test_points_that_an_instructor_set_are_told_as_such():
    given = Mark("00/0", 4, 10, OVERRIDE), Mark("00/1", 10, 10, OVERRIDE, "right, if its check was not deceived")
    text = " ".join(Page(page_of(*given, status=UNREADABLE, reason="it is empty")).text.split())
    assert "○ your instructor's points 4 of 10" in text and "✓ your instructor's points 10 of 10" in text
    assert "Still to pass" not in text and "deceived" not in text and text.count("has set these points") == 2


def test_an_endless_loop_is_named():
    endless = Mark(
        "00/0", 0, 10, TIMEOUT, "not finished after 54 s, inside\n  line 3: while True:", (TIMEOUT,), CASES[:1]
    )
    page = " ".join(Page(page_of(endless)).text.split())
    assert (
        "line 3: while True:" in page
        and "loop that never ends" in page
        and "○ an odd size" in page.replace("○a", "○ a")
    )


@settings(max_examples=60)
@given(st.lists(hostile, min_size=8, max_size=8))
def test_nothing_of_a_submission_becomes_a_tag_an_attribute_or_style(words):
    def made(one, two, three, four, five, six, seven, eight):
        mark = Mark("00/0", 3, 10, "wrong", f"{one}\nLikely cause: {two}", (three,), (four, "x"))
        record = Record(five, LATE, (mark,), late_days=1, reason=six, flags=(three,))
        return Page(feedback_page(record, seven, {"00/0": eight}, ALL_CASES, LAB, 0.1))

    plain_words = ["\n".join("x" for _ in plain(word).splitlines()) or "x" for word in words]
    page, harmless = made(*words), made(*plain_words)
    assert set(page.tags) <= set(harmless.tags) | {("strong",), ("span", ("class", "faint"))}
    assert page.text.partition("</title>")[0] and not {"script", "img", "link", "comment"} & {
        tag[0] for tag in page.tags
    }
    assert [tag[0] for tag in page.tags].count("style") == 1
    for word in words[3], words[4]:  # nothing is lost either
        assert " ".join(plain(word, 100).split()) in " ".join(page.text.split())


def test_what_is_long_is_cut():
    page = page_of(
        Mark("00/0", 0, 10, "wrong", "r" * 10**6, (), ("c" * 10**5,) * 500),
        sources={"00/0": "x\n" * 10**6},
        name="n" * 10**6,
    )
    assert len(page) < 200_000 and "the rest is left out" in page
    assert page.count("<li") < 300


def test_texts_show_what_they_are():
    assert plain("a\u202eb\x00\x1b[1m\u00a0c\ud800\r\nd\te") == "a\ufffdb\ufffd\ufffd[1m c\ufffd\nd\te"
    assert plain("می‌خواهم") == "می‌خواهم" and plain("abc", 2).startswith("ab…")
    assert [number(x) for x in (7, 7.5, 66.666, 0, 100)] == ["7", "7.5", "66.67", "0", "100"]


def test_a_students_files_have_the_name_of_the_record():
    assert file_stem("a/b.c") == "a=2f=b.c" and feedback_link("é 1") == "feedback/%C3%A9%3D20%3D1.html"
