"""What stays when a kernel ends: each ✓ of the same answer, and the predictions; only for an own notebook."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labs_helpers import labs
from labs_helpers.authoring.references import solved_cell
from labs_helpers.course import all_labs, answer_code, cells, kept
from labs_helpers.course.lab_summary import summary
from labs_helpers.course.own_copies import copy_labs, write, write_text
from labs_helpers.course.prediction import predict
from labs_helpers.course.scoreboard import SCORES
from tests.course.test_cells import CHECK, GOOD, STUB, run  # noqa: F401

HELPED = "def double(x):\n    return 2 * outside(x)\n"


def written(*sources, name="99-1"):
    """A notebook with an exercise, whose code cells are these and then the check."""
    head = new_markdown_cell("### Exercise 1 · Doubling\n\ntext")
    code = [new_code_cell(source, metadata={"nbgrader": {"grade_id": name, "solution": True}}) for source in sources]
    check = new_code_cell(CHECK, metadata={"nbgrader": {"grade_id": f"{name}-check", "grade": True, "points": 10}})
    return new_notebook(cells=[head, *code, check])


@pytest.fixture
def notebook(run, tmp_path, monkeypatch):  # noqa: F811
    """The student's notebook that the kernel belongs to; `run` runs cells in it."""
    path = tmp_path / "my_labs" / "99_lab.ipynb"
    write(written(GOOD), path)
    monkeypatch.setattr(kept, "MINE", path.parent)
    monkeypatch.setattr(kept, "_said", set())
    monkeypatch.setattr(SCORES, "lab", "99")
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


def restart(notebook, *sources):
    """A new kernel, and a notebook that was saved with these cells."""
    SCORES.status.clear(), SCORES.predictions.clear(), SCORES.passed.clear()
    cells.CELLS.run.clear()
    if sources:
        write(written(*sources), notebook)


def told(capsys):
    capsys.readouterr()
    summary()
    return capsys.readouterr().out


def test_a_tick_survives_the_kernel_while_the_answer_is_the_same(run, notebook, capsys):  # noqa: F811
    run(GOOD, CHECK)
    restart(notebook)
    said = told(capsys)
    assert "✓ 99/1" in said and "10 / 10  (✓ of 20" in said and "All done." in said and "forgets" not in said
    restart(notebook, GOOD.replace("(x):\n", "(x):  # a comment\n\n"))
    assert "All done." in told(capsys)


@pytest.mark.parametrize("edited", [GOOD.replace("2 *", "3 *"), GOOD.replace("    return x\n", "    return x + 0\n")])
def test_an_edited_answer_is_open_again_and_so_is_one_whose_helper_was_edited(run, notebook, capsys, edited):  # noqa: F811
    run(GOOD, CHECK)
    restart(notebook, edited)
    said = told(capsys)
    assert "○ 99/1" in said and "(edited since its ✓ of 20" in said and "0 / 10 points" in said
    restart(notebook, GOOD)
    assert "✓ 99/1" in told(capsys)


def test_a_helper_in_another_cell_belongs_to_the_answer(run, notebook, capsys):  # noqa: F811
    outside = "def outside(x):\n    return x\n"
    run(outside, HELPED, CHECK)
    restart(notebook, outside, HELPED)
    assert "✓ 99/1" in told(capsys)
    restart(notebook, outside.replace("x\n", "x * 1\n"), HELPED)
    assert "edited since" in told(capsys)


def test_a_cell_that_was_run_and_not_saved_counts_as_it_was_run(run, notebook, capsys):  # noqa: F811
    run(GOOD, CHECK)
    restart(notebook)
    run(GOOD.replace("2 *", "3 *"))
    assert "edited since" in told(capsys)


def test_other_answers_and_names_that_a_function_binds_itself_are_no_helpers():
    answer = "def double(x):\n    n = 2\n    return n * other(x)\n"
    keys = {
        answer_code.key_of("double", [answer, f"def other(x):\n    return {a}", f"n = {a}"], {"other"}) for a in (1, 2)
    }
    assert len(keys) == 1
    with_value = [f"FACTOR = {a}\ndef double(x):\n    return FACTOR * x" for a in (2, 3)]
    assert len({answer_code.key_of("double", [text]) for text in with_value}) == 2
    assert answer_code.key_of("double", ["def half(x: ..."]) == ""


def test_predictions_stay_and_their_number_is_the_notebook_s(run, notebook, capsys):  # noqa: F811
    book = written(GOOD)
    book.cells += [new_code_cell(f'p = predict("{name}", None)') for name in ("first", "second", "third")]
    write(book, notebook)
    predict("first", 4).found(2, " kB")
    predict("second", 3)
    restart(notebook)
    predict("first", 4)
    said = told(capsys)
    assert "predictions made: 2 of 3" in said and "you said 4" in said
    restart(notebook)
    assert "          first: you said 4 kB; it is 2 kB (2 times too high)" in told(capsys)


@pytest.mark.parametrize(
    "session", ["", "elsewhere/99_lab.ipynb", "my_labs/../99_lab.ipynb", "my_labs/console-1", "99_lab.ipynb"]
)
def test_only_an_own_notebook_in_jupyterlab_keeps_anything(run, notebook, monkeypatch, session):  # noqa: F811
    monkeypatch.setenv("JPY_SESSION_NAME", session and str(notebook.parents[1] / session))
    assert "passed" in run(GOOD, CHECK)
    assert [path.name for path in notebook.parent.iterdir()] == [notebook.name]


def test_a_process_without_a_notebook_keeps_nothing(notebook, monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    kept.keep_right("99/1", "key")
    assert not (notebook.parent / kept.FILE).exists()


def test_on_colab_it_stays_in_drive_where_that_is_mounted(run, notebook, monkeypatch, tmp_path, capsys):  # noqa: F811
    monkeypatch.delenv("JPY_SESSION_NAME")
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    monkeypatch.setattr(kept, "DRIVE", tmp_path / "MyDrive")
    run(GOOD, CHECK)
    restart(notebook)
    assert "each ✓ is lost" in told(capsys)
    (tmp_path / "MyDrive").mkdir()
    run(GOOD, CHECK)
    restart(notebook)
    assert "✓ 99/1" in told(capsys)
    assert (tmp_path / "MyDrive/Colab Notebooks/tile-to-cluster-progress.json").is_file()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"exercises": {}}', '{"exercises": {"99/1": 3}, "predictions": {}}', '"x"', "\x00" * 9]
)
def test_a_damaged_file_is_set_aside_with_a_sentence(run, notebook, capsys, text):  # noqa: F811
    file = notebook.parent / kept.FILE
    file.write_text(text)
    assert "progress.json was damaged" in " ".join(run(GOOD, CHECK).split())
    (aside,) = notebook.parent.glob("progress.damaged-*.json")
    assert aside.read_text() == text and "99/1" in json.loads(file.read_text())["exercises"]
    restart(notebook)
    assert "✓ 99/1" in told(capsys)


def test_where_nothing_can_be_written_the_lab_goes_on(run, notebook, capsys):  # noqa: F811
    (notebook.parent / kept.FILE).mkdir()  # root may write anywhere, but not into a folder
    said = run(GOOD, CHECK)
    assert "✓ 99/1 passed" in said and "(Is a directory)" in " ".join(said.split())
    assert "Is a directory" not in run(GOOD, CHECK)


def test_two_kernels_lose_nothing_of_each_other(notebook):
    with ThreadPoolExecutor(8) as pool:  # each opens the folder itself, so that each waits for the others' lock
        list(pool.map(lambda i: kept.keep_right(f"99/{i}", "key"), range(40)))
    assert len(json.loads((notebook.parent / kept.FILE).read_text())["exercises"]) == 40
    assert not list(notebook.parent.glob(".*"))


def test_the_summary_links_the_cell_with_the_error_and_the_first_open_exercise(run, notebook, monkeypatch):  # noqa: F811
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda what: shown.append(what.data))
    run(STUB, CHECK)
    summary()
    heading = nbformat.read(notebook, 4).cells[0]
    link = f"[Exercise 1 · Doubling](99_lab.ipynb#cell-id={heading.id})"
    assert shown == [f"Continue with {link}."]
    run("1 / 0")
    summary()
    assert shown[1] == f"The last run stopped with an error in the cell `1 / 0`. Continue with {link}."


def test_make_progress_tells_all_labs_without_running_anything(tmp_path, monkeypatch, capsys):
    mine, lab = tmp_path / "my_labs", labs.lab("00")
    monkeypatch.setattr(all_labs, "MINE", mine)
    assert all_labs.main() == 0
    assert "not begun" in capsys.readouterr().out and not mine.exists()
    copy_labs(labs.NOTEBOOKS, mine)
    own = nbformat.read(mine / lab.notebook, 4)
    marked = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in own.cells}
    answers = {one.id: solved_cell(lab, one) for one in lab.exercises() if one.reference}
    for one in list(answers)[:3]:
        marked[one.replace("/", "-")].source = answers[one]
    nbformat.write(own, mine / lab.notebook)
    first, second, third = list(answers)[:3]
    texts = [cell.source for cell in own.cells if cell.cell_type == "code"]
    name = next(one.trial.__name__ for one in lab.exercises() if one.id == first)
    others = {one.trial.__name__ for one in lab.exercises()} - {name}
    right = {first: answer_code.key_of(name, texts, others), second: "another"}
    write_text(
        json.dumps(kept.new() | {"exercises": {one: {"answer": key, "at": "x"} for one, key in right.items()}}),
        mine / kept.FILE,
    )
    assert all_labs.main() == 0
    points = next(one.points for one in lab.exercises() if one.id == first)
    assert re.search(rf"00 Start here +{points} / \d+ +✓✎…○", capsys.readouterr().out)
    page = (mine / "progress.html").read_text()
    assert f"✓ {first} " in page and f"✎ {second} " in page and f"… {third} " in page
    for other in labs.LABS:
        row = all_labs.row_of(other, mine, kept.new())
        known = {(one.id, one.points) for one in other.exercises()}
        assert {(one.id, one.most) for one in row.exercises} == known and all(one.title for one in row.exercises)
        assert row.predictions[1] > 0


@pytest.mark.parametrize("lab", labs.LABS, ids=lambda lab: lab.number)
def test_no_cell_below_its_check_changes_an_answer_s_key(lab):
    """A check may be run again when the whole notebook has been run; the file is read down to the check alone."""
    solved = {one.id.replace("/", "-"): solved_cell(lab, one) for one in lab.exercises()}
    cells = [(mark, solved.get(mark, text)) for mark, text in answer_code.code_cells(lab.path)]
    texts, marks = [text for _, text in cells], [mark for mark, _ in cells]
    for one in lab.exercises():
        name, others, mark = one.trial.__name__, SCORES.others(one.id), one.id.replace("/", "-")
        above = answer_code.key_of(name, texts[: marks.index(f"{mark}-check")], others)
        assert above and above == answer_code.key_of(name, [solved[mark], *texts], others), one.id
