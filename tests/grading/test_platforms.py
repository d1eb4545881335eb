"""Test that exports of Canvas and Moodle are returned with the grades and are otherwise unchanged."""

import csv
import io

import pytest

from labs_helpers.grading.marks import Mark
from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.results.gradebook import GRADED, LATE, REVIEW, Record
from labs_helpers.grading.results.platforms import read_sheet, write_sheet
from labs_helpers.labs import LABS

LAB = LABS[0]
# Columns and first rows as Canvas's lib/gradebook_exporter.rb and Moodle's mod/assign/gradingtable.php write them.
CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,Lab 00: Start here (1234),Lab 01 (1235),\
Current Score,Unposted Current Score,Final Score,Unposted Final Score
,,,,,Manual Posting,,,,,
    Points Possible,,,,,100.00,50.00,(read only),(read only),(read only),(read only)
"Smith, Ada",501,s1,ada@x.edu,Course 1,,7.00,88.50,88.50,88.50,88.50
"Lovelace, Bob",502,s2,bob@x.edu,Course 1,3.00,,,,,
"=""=1+1, Eve""",503,s3,@eve,Course 1,,,,,,
"Twin, Di",504,s4,di1,Course 1,,,,,,
"Twin, Di",505,s5,di2,Course 1,,,,,,
"Hill, Fay",506,s6,fay,Course 1,EX,,,,,
"Student, Test",999,,abc,Course 1,,,,,,
'''
MOODLE = """\
Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",\
"Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 111","Ada Smith",ada@x.edu,"Submitted for grading",,60.00,Yes,"Thursday, 1 October 2026, 9:00 PM",-,
"Participant 112","Bob Lovelace",bob@x.edu,"Submitted for grading - Graded",3.00,60.00,Yes,-,-,Mine
"Participant 113",@Eve,eve@x.edu,"No submission",-,60.00,No,-,-,
"""


def record(student, points=5, status=GRADED, **more):
    return Record(student, status, (Mark("00/0", points, 5, "right"),), **more)


@pytest.fixture
def filled(tmp_path):
    """filled(platform, text, records, names, **options): its rows as they come back."""

    def write(platform, text, records, names=None, **options):
        (tmp_path / "export.csv").write_text(text, encoding="utf-8-sig")
        sheet = read_sheet(platform, tmp_path / "export.csv", LAB, **options)
        write_sheet(tmp_path, sheet, records, names or {}, LAB, 0.1)
        return list(csv.reader(io.StringIO((tmp_path / f"grades-{platform}.csv").read_text())))

    return write


def changed(text, rows):
    """(row, column) → new text, of all cells that are others than in the export."""
    before = list(csv.reader(io.StringIO(text)))
    assert [len(row) for row in before] == [len(row) for row in rows]
    return {(y, x): new for y, row in enumerate(rows) for x, new in enumerate(row) if new != before[y][x]}


def test_canvas_gets_points_in_the_column_of_the_lab(filled, capsys):
    records = [record("501"), record("lovelacebob", 2, LATE, late_days=1), record("s3"), record("Twin Di_505"),
               record("999", None, REVIEW), record("506"), record("nobody")]  # fmt: skip
    assert changed(CANVAS, filled("canvas", CANVAS, records, {"501": "Ada Smith"})) == {
        (3, 5): "5", (4, 5): "1.8", (5, 5): "5", (7, 5): "5", (5, 0): '\'="=1+1, Eve"', (5, 3): "'@eve",
    }  # fmt: skip
    said = capsys.readouterr().err
    most = sum(one.points for one in LAB.exercises())
    assert "for 2 graded: 506, nobody" in said and f"the lab has {most} points" in said
    assert not any(
        (3, 5) == place for place in changed(CANVAS, filled("canvas", CANVAS, [record("501")], {"501": "X"}))
    )
    assert (3, 6) in changed(CANVAS, filled("canvas", CANVAS, records, column="Lab 01 (1235)"))
    apart = "LastName,FirstName,ID,SIS Login ID,Section,Lab 0 (7)\nSmith,Ada,501,ada,Course 1,\n"
    assert filled("canvas", apart, [record("smithada")])[1][-1] == "5"


def test_moodle_gets_grades_and_feedback(filled):
    comment = "Good <work>\nCome and see me"
    records = [record("111", comment=comment), record("b", 4, LATE, late_days=1), record("eve@x.edu")]
    assert changed(MOODLE, filled("moodle", MOODLE, records, {"b": "Lovelace, Bob"})) == {
        (1, 4): "5", (1, 9): "Lab 00: 00/0: 5 of 5. Good &lt;work&gt;<br>Come and see me", (2, 4): "3.6",
        (3, 1): "'@Eve",
    }  # fmt: skip


@pytest.mark.parametrize(
    "platform, text, said",
    [
        ("canvas", MOODLE, "is no export of Canvas: it has no column ID, SIS Login ID"),
        ("moodle", "", "is no export of Moodle"),
        ("canvas", CANVAS.replace("Lab 00: Start here", "Homework"), "COLUMN='NAME.*are: Homework .1234.; Lab 01"),
    ],
)
def test_what_is_no_export_is_told(filled, platform, text, said):
    with pytest.raises(BadInbox, match=said):
        filled(platform, text, [])
