"""What a check says of a cell that failed, of a function under another name, and of a kernel that was restarted."""

import re
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from labs_helpers.course import cells
from labs_helpers.course.at_kernel_start import watch_from_the_start
from labs_helpers.course.exercise import exercise
from labs_helpers.course.lab_summary import summary
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.wrap import wrap

GOOD = "def helper(x):\n    return x\n\n\ndef double(x):\n    return 2 * helper(x)\n"
CHECK = "double = check.double(double)"
STUB = "def helper(x):\n    return x\n\n\ndef double(x):\n    ### BEGIN SOLUTION\n    ...\n    ### END SOLUTION\n"


def reference(x):
    return x + x


@pytest.fixture
def run(monkeypatch, capsys):
    """run(cell, …) → what the last cell printed, in a shell whose cells are watched and whose `check` is a lab's."""
    for field in ("exercises", "status", "predictions", "passed"):
        monkeypatch.setattr(SCORES, field, {})
    monkeypatch.setattr(SCORES, "revealed", set())
    monkeypatch.setattr(cells, "CELLS", cells.Cells())
    for module in ("exercise", "lab_summary"):
        monkeypatch.setattr(f"labs_helpers.course.{module}.CELLS", cells.CELLS)
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    shell._showtraceback = lambda kind, error, lines: print("\n".join(lines))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    cells.watch()
    cells.watch()
    assert len(shell.events.callbacks["post_run_cell"]) == 1

    @exercise("99/1", "doubling", points=10, minutes=5, reference=reference)
    def double(student):
        if student(3) != 6:
            raise Wrong("x = 3", f"got {student(3)}")
        yield "x = 3"

    def call(*texts):
        for text in texts:
            capsys.readouterr()
            shell.run_cell(text)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)

    shell.user_ns["check"] = type("checks", (), {"double": staticmethod(double)})
    yield call
    shell.history_manager.end_session()


def test_a_cell_that_python_cannot_read_leaves_an_old_function_that_does_not_count(run):
    assert "✓ 99/1 passed" in run(GOOD, CHECK)
    told = run(GOOD.replace("2 *", "2 2 *"), CHECK)
    assert "✗ 99/1 doubling: the cell above did not run: SyntaxError: invalid syntax" in told
    assert "line 6: return 2 2 * helper(x)" in told and "`double` is still the previous version" in told
    assert SCORES.status["99/1"] == "✗" and "✓ 99/1 passed" in run(GOOD, CHECK)


@pytest.mark.parametrize("leaves", ["quit()", "exit()", "raise SystemExit"])
def test_an_answer_that_ends_the_program_is_wrong_and_the_kernel_stays(run, leaves):
    told = run(GOOD.replace("return 2", f"{leaves}\n    return 2"), CHECK)
    assert "✗ 99/1 doubling: SystemExit" in told and "a function ends with return" in told
    assert "✓ 99/1 passed" in run(GOOD, CHECK)


@pytest.mark.parametrize(("change", "stale"), [("1 / 0\n" + GOOD.replace("2 *", "3 *"), True), (GOOD + "1 / 0", False)])
def test_a_cell_with_an_error_counts_if_it_came_to_the_function(run, change, stale):
    run(GOOD, CHECK)
    assert ("did not run to its end: ZeroDivisionError: division by zero" in run(change, CHECK)) == stale


def test_the_same_function_again_is_said_to_be_the_same(run):
    assert "the last check tried" not in run(GOOD, CHECK) and "the last check tried" in run(CHECK)
    assert "the last check tried" not in run(GOOD, CHECK)


def test_an_old_right_answer_does_not_stand_for_one_under_another_name_or_a_broken_head(run):
    run(GOOD, CHECK)
    told = run(GOOD.replace("double", "twice"), CHECK)
    assert "✗ 99/1 doubling: the cell above defines `twice`; rename it to `double`" in told
    run(GOOD, CHECK)
    assert "the cell above did not run: SyntaxError" in run(GOOD.replace("def double", "de double"), CHECK)
    assert "✓ 99/1 passed" in run(GOOD, "def double_it(x):\n    return x", CHECK)  # an experiment beside it


@pytest.mark.parametrize("name", ["doubled", "twice"])
def test_an_answer_under_another_name_is_told_so(run, name):
    assert "not attempted yet" in run(STUB, CHECK)
    assert f"defines `{name}`; rename it to `double`" in run(GOOD.replace("double", name), CHECK)
    assert "not attempted yet" in run(STUB, "x = 3\ndef other(y):\n    return y", CHECK)


def test_where_nothing_was_defined_the_check_says_which_cell_to_run(run):
    assert "✗ no cell has defined `double` yet.\n  Run the exercise's cell above" in run(CHECK)
    assert "defines `doubles`: rename it to" in run(GOOD.replace("double", "doubles"), CHECK)
    assert "✗ the cell above did not run: SyntaxError" in run(GOOD.replace("(x):", "(x:"), CHECK)


def test_after_a_restart_an_import_that_is_missing_says_what_to_do(run):
    told = run("@triton.jit\ndef kernel(x):\n    pass")
    assert told.startswith("✗ `triton` is not defined. A cell above") and "Run All Above Selected Cell" in told
    assert "each ✓ returns" in " ".join(told.split())


@pytest.mark.parametrize("code", ["<module>", "<cell line: 1>", "helper"])
def test_colabs_older_ipython_calls_a_cell_otherwise(code):
    with pytest.raises(NameError) as caught:
        exec(compile("tl.arange", "cell", "exec").replace(co_name=code))
    assert bool(cells.why_missing(caught.value, caught.tb)) == (code != "helper")


@pytest.mark.parametrize("cell", ["tritn", "def f():\n    return triton\nf()"])
def test_another_name_error_is_left_as_it_is(run, cell):
    assert "Run All Above" not in (told := run(cell)) and "NameError: name 'tri" in told


def test_the_summary_tells_what_has_not_been_checked_since_the_kernel_started(run, capsys):
    summary()
    told = capsys.readouterr().out
    assert "○ 99/1  doubling" in told and "not run since this kernel started" in told
    assert "A restart clears each ✓ but not your code" in told
    run(STUB, CHECK)
    summary()
    assert "since this kernel started" not in capsys.readouterr().out


def test_each_kernel_of_the_environment_watches_from_its_start(tmp_path, monkeypatch):
    place = watch_from_the_start(str(tmp_path))
    assert place == watch_from_the_start(str(tmp_path)) and place.parent.parent.parent == tmp_path / "etc"
    assert [path.name for path in place.parent.iterdir()] == ["tile_to_cluster.py"]
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    exec(place.read_text(), {})
    (tmp_path / "file").touch()
    assert watch_from_the_start(str(tmp_path / "file")) is None  # cannot be written
    monkeypatch.setattr("sys.prefix", sys.base_prefix)
    assert watch_from_the_start(str(tmp_path)) is None  # the system's


def test_long_lines_are_folded_at_words():
    text = "  short\n  " + "word " * 30 + "x" * 120
    assert wrap("  short") == "  short" and wrap(text).splitlines()[0] == "  short"
    assert wrap("word " * 19 + "(12, 0, 0) ends") == "word " * 18 + "word\n  (12, 0, 0) ends"
    folded = wrap(text).splitlines()[1:]
    assert all(len(line) <= 100 or line == "    " + "x" * 120 for line in folded) and folded[1].startswith("    word")
