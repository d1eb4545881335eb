"""Test the page of a class: its numbers, the items to review, and that no text of a submission becomes markup."""

import re
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.class_page import bars, class_page, gist
from labs_helpers.grading.results.gradebook import GRADED, LATE, MISSING, OVERRIDE, REVIEW, UNREADABLE, Record
from labs_helpers.grading.results.pages import feedback_link
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.grading.results.twins import Alike, Shared
from tests.grading.html_page import Page, hostile

EXERCISES = [SimpleNamespace(id=f"00/{i}", title=f"the title of {i}", points=10) for i in range(2)]
LAB = SimpleNamespace(number="00", title="Start here", exercises=lambda: EXERCISES)
ALL_CASES = {one.id: ("three elements", "an odd size") for one in EXERCISES}


def right(number):
    return Mark(f"00/{number}", 10, 10, "right", cases=ALL_CASES["00/0"])


def wrong(number, reason, points=5.0):
    return Mark(f"00/{number}", points, 10, "wrong", reason, cases=("three elements",))


def page_of(records, names=(), alike=(), pairs=(), penalty=0.1):
    return class_page(records, dict(names), LAB, alike, pairs, penalty)


def test_it_counts_students_and_says_how_each_exercise_went():
    records = [
        Record("ada", GRADED, (right(0), right(1))),
        Record("bob", LATE, (right(0), wrong(1, "row 3: got 1\nLikely cause: a block too few")), late_days=1),
        Record("cy", REVIEW, (right(0), Mark("00/1", None, 10, "review", "look at line 2", ("cell-twice",)))),
        Record("dee", GRADED, (right(0), wrong(1, "row 7: got 2\nLikely cause: a block too few"))),
        Record("eve", GRADED, (Mark("00/0", 0, 10, "not attempted"), wrong(1, "NameError: x1", 0))),
        Record("fay", MISSING, reason="nothing was handed in"),
        Record("gus", UNREADABLE, reason="the file is empty"),
    ]
    page = Page(page_of(records, {"ada": "Ada L.", "fay": "Fay"}))
    text = " ".join(page.text.split())
    for words in (
        "3 graded", "1 late", "1 review", "1 missing", "1 unreadable", "Of 5 students: mean 11.7, median 13.5 of 20",
        "00/0 the title of 0 80 % 8 of 10 1", "00/1 the title of 1 20 % 5 of 10 0",
        "2 × ✗ a block too few 1 × ✗ NameError: x1 1 has no points yet.",
        "cy 00/1 The cell of this exercise is in the notebook more than once; the last one with an answer counts. "
        "look at line 2. Read it, and write yes, no or 0 to 10 points into the "
            "column accept of review.csv.",
        "gus the file is empty", "ada Ada L. graded 10 10 20",
        "bob late 10 5 1 13.5", "fay Fay missing –",
    ):  # fmt: skip
        assert words in text, words
    links = {dict(tag[1:])["href"] for tag in page.tags if tag[0] == "a"}
    pages = {feedback_link(record.student) for record in records if record.status != MISSING}
    assert links == {"grades.csv", "review.csv", "junit.xml"} | pages
    assert page.text.index("Ada L.") < page.text.index("What needs a look") < page.text.index("Answers that are alike")
    assert "cell-twice" not in page.text


def test_an_instructors_points_are_no_mistake_and_who_is_counted_is_said():
    records = [
        Record("ada", GRADED, (right(0), Mark("00/1", 10, 10, OVERRIDE, "right, if its check was not deceived"))),
        Record("gus", UNREADABLE, (Mark("00/1", 4, 10, OVERRIDE),), reason="the file is empty"),
        Record("x9", GRADED, (wrong(0, "NameError"), wrong(1, "NameError")), flags=(gradebook.UNKNOWN,)),
        Record("hal", UNREADABLE, reason="the file is empty"),
    ]
    text = " ".join(Page(page_of(records)).text.split())
    assert "Of 2 students: mean 12, median 12 of 20" in text and "Left out are those who are missing or not" in text
    assert "×" not in text and "gus unreadable 0 4 4" in text and "hal unreadable –" in text


def test_reasons_are_the_same_but_for_their_numbers():
    assert gist(wrong(0, "row 3, column 1.5: x")) == gist(wrong(0, "row 12, column 2: x"))
    assert gist(wrong(0, "row 3\nLikely cause: a")) == gist(wrong(0, "column 1\nLikely cause: a")) == "a"
    assert gist(wrong(0, "")) == "no reason is given"


def test_groups_and_pairs_are_told_without_a_judgement():
    records = [Record("ada", GRADED, (right(0), right(1))), Record("bob", GRADED, (right(0), right(1)))]
    many = tuple(f"s{i}" for i in range(25))
    alike = [Alike("00/1", ("ada", "bob"), False, 0.87), Alike("00/1", many, True, telling=False)]
    page = page_of(records, alike=alike, pairs=[Shared("ada", "bob", ("00/0", "00/1"), 1, 2)])
    text = " ".join(Page(page).text.split())
    assert "00/1 2 ada, bob 87% of what is neither the course's own nor written by many is the same" in text
    assert "ada, bob 2 2 1 00/0, 00/1" in text
    assert "00/1 25 s0, s1," in text and "s19 and 5 more" in text and "s20" not in text and "too short" in text
    assert "How that came about is not said by this" in text
    assert not re.search("cheat|plagiar|copied", text) and "None but the course's own." in page_of(records)


def test_an_empty_class_has_a_page_too():
    for records in ([], [Record("ada", gradebook.ERROR, reason="KeyError: 1")]):
        assert "Nobody has points yet." in page_of(records)


def test_the_histogram_counts_everybody_once():
    assert [count for _, count, _ in bars([0, 9.99, 10, 95, 99, 100, 100], 100)] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 4]
    assert [count for _, count, _ in bars([-1, 120], 100)] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert bars([50] * 3, 80)[6] == (48, 3, 100) and bars([], 80)[0] == (0, 0, 0)


@settings(max_examples=40)
@given(st.lists(hostile, min_size=6, max_size=6))
def test_nothing_of_a_submission_becomes_a_tag_an_attribute_or_style(words):
    def made(one, two, three, four, five, six):
        marks = (Mark("00/0", 3, 10, "wrong", f"{one}\nLikely cause: {two}", (three,), (four,)), right(1))
        records = [Record(five, GRADED, marks, flags=(three,)), Record("ada", UNREADABLE, reason=six)]
        alike, shared = [Alike("00/0", (five, "ada"), True)], [Shared(five, "ada", (six,), 1, 2)]
        return Page(page_of(records, {five: six}, alike, shared)), feedback_link(five)

    (page, link), (harmless, other) = made(*words), made(*"abcdef")
    assert set(re.sub("x", "", str(tag)) for tag in page.tags if ("href", link) not in tag) <= {
        re.sub("x", "", str(tag)) for tag in harmless.tags if ("href", other) not in tag
    }
    assert re.fullmatch(r"feedback/[\w.%~-]+\.html", link) and "/.." not in link
    assert [tag[0] for tag in page.tags].count("style") == 1
    assert " ".join(plain(words[4], 60).split()) in " ".join(page.text.split())


def test_what_is_long_is_cut():
    marks = tuple(Mark(one.id, None, 10, "review", "r" * 10**5, ("f" * 10**5,)) for one in EXERCISES)
    page = page_of([Record(f"{i:0100}" + "s" * 10**4, REVIEW, marks) for i in range(5)], {"x": "n" * 10**5})
    assert len(Page(page).text) < 20_000
