"""Test that submissions are only read: every file either yields its answers or a message."""

import json
import os

import pytest

from labs_helpers.grading.reading import own_cells, submission
from labs_helpers.grading.reading.notebook_file import MOST_BYTES, Cell, Unreadable, read_cells
from labs_helpers.grading.reading.own_cells import MOST_BROUGHT, whole
from labs_helpers.grading.reading.plain_python import MOST_CHARACTERS, plain_python
from labs_helpers.grading.reading.submission import MOST_CODE, Answer, read_submission, shipped_exercises
from labs_helpers.labs import LABS
from tests.grading.written import solved as all_solved
from tests.grading.written import with_answers

LAB = LABS[0]


@pytest.fixture(scope="module")
def exercises():
    return shipped_exercises(LAB)


@pytest.fixture
def handed_in(tmp_path):
    """handed_in(change): what is read of lab 00's notebook once `change(cells)` has been called on its cells."""

    def read(change=lambda cells: None, **top):
        notebook = json.loads(LAB.path.read_text())
        change(notebook["cells"])
        path = tmp_path / "student.ipynb"
        path.write_text(json.dumps(notebook | top))
        return {answer.shipped.id: answer for answer in read_submission(path, LAB)}

    return read


def cell_of(cells, mark):
    return next(cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == mark)


def solved(one, body="return 1"):
    return one.stub.replace("    ...\n", f"    {body}\n", 1)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_every_lab_as_handed_out_has_all_its_exercises_and_none_is_attempted(lab):
    answers = read_submission(lab.path, lab)
    assert [answer.shipped.id for answer in answers] == [one.id for one in lab.exercises()]
    for answer in answers:
        assert not answer.attempted and not answer.flags and not answer.problem and not answer.before


def test_a_function_written_without_the_kernel_of_its_stub_is_an_attempt():
    lab = next(lab for lab in LABS if lab.number == "02")
    one = next(one for one in shipped_exercises(lab) if one.name == "tile_matmul")
    head, named, _ = one.stub.partition("def tile_matmul(")
    other = f"{head}{named}a, b, *blocks):\n    return torch.matmul(a, b)\n"
    assert "..." in head and not Answer(one, one.stub).attempted and Answer(one, other).attempted


def test_an_answer_comes_with_the_students_own_cells_above_it(handed_in, exercises):
    def change(cells):
        place = cells.index(cell_of(cells, "00-1"))
        cells[place]["source"] = solved(exercises[1]).splitlines(keepends=True)
        own = ["%matplotlib inline\nhelper = 3", "def broken(:", "", "!ls"]
        cells[place:place] = [code(text) for text in own]

    found = handed_in(change)
    answer = found[exercises[1].id]
    assert answer.attempted and "return 1" in answer.source and not answer.flags
    assert answer.before == ("pass\nhelper = 3", "pass")
    assert not found[exercises[0].id].attempted and found[exercises[0].id].before == ()


def code(source, **metadata):
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def counted(monkeypatch, module, name):
    """How often the module calls its function of that name with what."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda given: calls.append(given) or function(given))
    return calls


def test_each_own_cell_is_parsed_once_for_all_exercises(handed_in, exercises, monkeypatch):
    own = [f"a{n} = a{n - 1}" for n in range(1, 300)]

    def change(cells):
        for one in exercises:
            cell_of(cells, one.grade_id)["source"] = solved(one, "return a299")
        cells[:0] = [code(text) for text in ("a0 = 1", *own)]

    parsed, looked_at = counted(monkeypatch, submission, "plain_python"), counted(monkeypatch, own_cells, "names_bound")
    found = whole(handed_in(change).values())
    assert [answer.before for answer in found] == [("a0 = 1", *own)] * len(exercises)
    assert parsed.count(own[7]) == 1 and len(looked_at) == 300


def test_more_code_than_anybody_writes_is_not_read(handed_in, exercises):
    def change(cells):
        cells[:0] = [code(f"a{n} = '{'x' * (size - 10)}'") for n in range(MOST_CODE // size + 1)]

    size = MOST_CHARACTERS - 1
    with pytest.raises(Unreadable, match=f"characters in all; more than {MOST_CODE:,} are not read"):
        handed_in(change)
    size = MOST_CODE  # a cell that is no cell costs nothing
    assert not any(answer.attempted for answer in handed_in(change).values())


def test_an_answer_that_needs_more_than_anybody_writes_costs_its_own_points(handed_in, exercises):
    def change(cells):
        cell_of(cells, exercises[0].grade_id)["source"] = solved(exercises[0], "return a0 + a1")
        cell_of(cells, exercises[1].grade_id)["source"] = solved(exercises[1], "return a0")
        cells[:0] = [code(f"a{n} = '{'x' * (MOST_BROUGHT - 100)}'") for n in range(2)]

    one, two, *_ = whole(handed_in(change).values())
    assert "characters of the notebook's own cells" in one.problem and one.before == ()
    assert not two.problem and len(two.before) == 1


def test_cells_deleted_doubled_renamed_and_reordered_are_found_and_flagged(handed_in, exercises):
    one, two, three, four = exercises[:4]

    def change(cells):
        cells.remove(cell_of(cells, one.grade_id))
        doubled = cell_of(cells, two.grade_id)
        cells.append(dict(doubled, source=solved(two, "return 2")))
        cells.append(dict(doubled))  # a stub after it
        unmarked = cell_of(cells, three.grade_id)
        unmarked["metadata"], unmarked["source"] = {}, solved(three, "return 3")
        cell_of(cells, f"{four.grade_id}-check")["source"] = "check = print"
        cells.reverse()

    found = handed_in(change)
    assert found[one.id].flags == ("cell-missing",) and found[one.id].source == "" and not found[one.id].attempted
    assert found[two.id].flags == ("cell-twice",) and "return 2" in found[two.id].source
    assert found[three.id].flags == ("cell-unmarked",) and "return 3" in found[three.id].source
    assert found[four.id].flags == ("check-changed",)


def test_what_stands_beside_the_function_makes_no_stub_of_it(handed_in, exercises):
    def change(cells):
        body = f"import math\n\n\ndef {exercises[0].name}(*given):\n    return math.pi\n"
        cell_of(cells, exercises[0].grade_id)["source"] = body
        cell_of(cells, exercises[1].grade_id)["source"] = (
            f"import math\n\n\ndef {exercises[1].name}(*given):\n    ...\n"
        )
        cell_of(cells, exercises[2].grade_id)["source"] = "from somewhere import answer"

    found = handed_in(change)
    assert [found[exercises[n].id].attempted for n in (0, 1, 2)] == [True, False, True]


def test_of_several_answers_the_last_counts(handed_in, exercises):
    def change(cells):
        cell = cell_of(cells, exercises[0].grade_id)
        cells += [dict(cell, source=solved(exercises[0], f"return {n}")) for n in (1, 2)]

    assert "return 2" in handed_in(change)[exercises[0].id].source


def test_an_answer_in_a_new_cell_is_graded_from_there_and_noted(handed_in, exercises):
    """Below the untouched stub, above it, or split into two cells; not where the marked cell holds an answer too."""
    one, two, three, four, five = exercises[:5]

    def change(cells):
        def put(exercise, offset, source):
            cells.insert(cells.index(cell_of(cells, exercise.grade_id)) + offset, code(source))

        put(one, 1, solved(one))
        put(one, 1, one.stub)
        cell_of(cells, two.grade_id)["source"] = "def helper():\n    return 1\n"
        put(two, 2, solved(two, "return helper()"))
        cell_of(cells, three.grade_id)["source"] = solved(three)
        put(three, 1, solved(three, "return 2"))
        cell_of(cells, four.grade_id)["source"] = f"{four.name} = print"
        put(four, 0, solved(four))
        put(five, 0, solved(five))

    found = handed_in(change)
    for exercise in (one, two, five):
        answer = found[exercise.id]
        assert answer.flags == ("in-new-cell",) and answer.attempted and not answer.problem
        assert "return" in answer.source
    assert "def helper():\n    return 1\n" in found[two.id].before
    assert found[three.id].flags == ("defined-elsewhere",) and "return 1" in found[three.id].source
    assert not found[four.id].flags and not found[four.id].problem


@pytest.mark.parametrize("form", ["```python\n{}\n```", "My answer:\n\n{}"])
def test_an_answer_in_a_text_cell_is_said(handed_in, exercises, form):
    one, two = exercises[:2]
    texts = [{"cell_type": "markdown", "metadata": {}, "source": form.format(solved(each))} for each in (one, two)]

    def change(cells):
        cell_of(cells, two.grade_id)["source"] = solved(two)
        cells += texts

    found = handed_in(change)
    assert found[one.id].flags == ("in-text-cell",) and "in a text cell" in found[one.id].problem
    assert not found[two.id].flags


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_a_solved_lab_has_nothing_odd(lab, tmp_path):
    (tmp_path / "solved.ipynb").write_text(json.dumps(with_answers(lab, all_solved(lab))))
    for answer in read_submission(tmp_path / "solved.ipynb", lab):
        assert answer.attempted and not answer.flags and not answer.problem
    assert sum(len(cell.source) for cell in read_cells(lab.path) if cell.code) < MOST_CODE / 10


def test_another_labs_notebook_is_told_once(tmp_path):
    (tmp_path / "x.ipynb").write_bytes(LABS[4].path.read_bytes())
    with pytest.raises(Unreadable, match="this is lab 04's notebook, and not lab 00's"):
        read_submission(tmp_path / "x.ipynb", LAB)


def test_an_older_lab_and_no_python_are_said(handed_in, exercises):
    def change(cells):
        cell_of(cells, exercises[0].grade_id)["source"] = exercises[0].stub.replace('"""', '"""Once: ', 1)
        cell_of(cells, exercises[1].grade_id)["source"] = "def f(:\n"

    found = handed_in(change)
    assert found[exercises[0].id].flags == ("old-version",)
    assert found[exercises[1].id].problem.startswith("SyntaxError in line 1") and found[exercises[1].id].attempted


def test_line_ends_byte_order_marks_and_foreign_metadata_do_not_matter(handed_in, tmp_path):
    def change(cells):
        for cell in cells:
            cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")
            cell["metadata"] |= {"id": "x", "colab": {"base_uri": 3}, "tags": ["raises-exception", 7]}

    found = handed_in(change, nbformat_minor=0, metadata={"colab": None})
    assert all(not answer.flags and not answer.attempted for answer in found.values())
    path = tmp_path / "bom.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + LAB.path.read_bytes())
    assert len(read_cells(path)) == len(read_cells(LAB.path))


def test_the_format_before_is_read(tmp_path):
    path = tmp_path / "old.ipynb"
    sheet = {"cells": [{"cell_type": "code", "input": ["a = 1\n", "b"]}, {"cell_type": "heading", "source": "H"}, 3]}
    path.write_text(json.dumps({"nbformat": 3, "worksheets": [sheet, None, {}]}))
    assert read_cells(path) == [Cell(True, "a = 1\nb"), Cell(False, "H")]


BROKEN = {
    "empty": ("", "the file is empty"),
    "not json": ("{", "the file is not JSON"),
    "a list": ("[]", "is JSON, but not a notebook"),
    "no cells": ('{"cells": {}}', "it has no cells"),
    "no code": ('{"cells": [{"cell_type": "markdown", "source": "x"}]}', "has no code cells"),
    "deep": ("[" * 100_000, "is nested too deeply"),
    "a number without end": ('{"cells": ' + "9" * 10_000 + "}", "the file is not JSON"),
    "too many": (json.dumps({"cells": [{}] * 2_001}), "2,001 cells"),
    "an odd number": ('{"cells": 1e999}', "it has no cells"),
    "no number": ("NaN", "not a notebook"),
    "sheets without cells": ('{"worksheets": [1, {"cells": 3}]}', "has no code cells"),
    "nothing": ("\0" * 100, "the file is not JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_is_told(tmp_path, name):
    path = tmp_path / "broken.ipynb"
    path.write_text(BROKEN[name][0])
    with pytest.raises(Unreadable, match=BROKEN[name][1]):
        read_cells(path)


def test_files_that_are_none_are_told(tmp_path):
    (tmp_path / "link.ipynb").symlink_to(LAB.path)
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / "latin.ipynb").write_bytes(b'{"cells": "\xe9"}')
    with open(tmp_path / "large.ipynb", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    expected = {"link": "is a link", "pipe": "not a file", "folder": "not a file|is a directory", "latin": "not UTF-8",
                "large": "more than 20 MB", "absent": "No such file"}  # fmt: skip
    for name, words in expected.items():
        with pytest.raises(Unreadable, match=words):
            read_cells(tmp_path / f"{name}.ipynb")


@pytest.mark.parametrize("cell", [
    None, 3, "x", [], {"cell_type": "code", "source": 3}, {"cell_type": "code", "source": [1, None]},
    {"cell_type": "code", "metadata": []}, {"cell_type": [], "metadata": {"nbgrader": 1, "tags": "x"}},
    {"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": ["00-1"]}}},
])  # fmt: skip
def test_cells_of_any_shape_are_passed_over(handed_in, cell):
    found = handed_in(lambda cells: cells.insert(0, cell))
    assert all(not answer.flags for answer in found.values())


@pytest.mark.parametrize("source", [
    "-" * 40_000 + "1", "1+" * 20_000 + "1", "(" * 1_000, "a" + ".b" * 20_000, "a\0b", "x" * (MOST_CHARACTERS + 1),
    "lambda:" * 5_000 + "1", "raise " + "not " * 10_000 + "1", "!ls\n" * 10_000 + "def f(:",
])  # fmt: skip
def test_sources_made_to_break_a_parser_are_a_problem_in_words(handed_in, exercises, source):
    def change(cells):
        cell_of(cells, exercises[0].grade_id)["source"] = source

    answer = handed_in(change)[exercises[0].id]
    assert answer.problem and answer.attempted and answer.shipped.id == exercises[0].id


def test_ipythons_lines_keep_their_place():
    assert plain_python("def f():\n    %time x\n    !ls\n    return 1\nf?\n")[0].splitlines() == [
        "def f():", "    pass", "    pass", "    return 1", "pass",
    ]  # fmt: skip
    text = 'x = """\n%d\n"""'
    assert plain_python(text) == (text, "")  # within a string
