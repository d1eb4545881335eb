"""A lab without references: what an open exercise holds up is skipped with a line, and everything else runs."""

import ast
import linecache
import pickle

import pytest
from IPython.core.interactiveshell import InteractiveShell

from labs_helpers.course import skipping
from labs_helpers.course.cell_names import read
from labs_helpers.course.exercise import Exercise
from labs_helpers.course.revealed import reveal
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.course.withheld import StillOpen, Withheld, key
from labs_helpers.launch import process

HALF = Withheld("99/1", "half", {key((8,), {}): 4})


@pytest.fixture
def notebook(monkeypatch):
    """notebook(cell, …): what these cells print; notebook.names: what they have bound; a failed one raises."""
    shell = InteractiveShell()
    shell.user_ns["__name__"] = "__main__"
    monkeypatch.setattr(skipping, "running_shell", lambda: shell)
    skipping.skip_cells()
    skipping.skip_cells()

    def run(*cells):
        for cell in cells:
            result = shell.run_cell(cell)
            result.raise_error()
        return result.result

    run.names = shell.user_ns
    shell.user_ns |= {"half": Withheld("99/1", "half"), "process": process}
    yield run
    assert len(shell.ast_transformers) == 1
    InteractiveShell.clear_instance()


SKIPPED = "○ skipped: exercise 99/1, `half`, is still open\n"


def test_what_needs_it_is_skipped_and_what_needs_that(notebook, capsys):
    notebook(
        "before = 2\nx = half(4)\nimport math\ndef third(n): return n / 3", "y = x + 1", "title = 'y'\nprint(title, y)"
    )
    assert capsys.readouterr().out == 3 * SKIPPED
    notebook("x = third(math.pi * before / 2)", "title = 'now'\nprint(title, round(x, 2))")
    assert capsys.readouterr().out == "now 1.05\n"


def test_what_it_would_have_filled_waits_too(notebook, capsys):
    notebook("n, maps, rows = 2, {}, []\nfor size in (1, 2):\n    maps[size] = half(size)\n    rows.append(n)")
    for name in ("maps", "rows"):
        notebook(f"print({name})")
    notebook("print(n)")
    assert capsys.readouterr().out == 3 * SKIPPED + "2\n"


def test_functions_wait_only_when_they_are_called(notebook, capsys):
    notebook("def quarter(n):\n    return half(half(n))", "def eighth(n):\n    return quarter(half(n))")
    assert capsys.readouterr().out == ""
    notebook("list(map(eighth, [8]))")
    assert capsys.readouterr().out == SKIPPED
    assert notebook("def half(n):\n    return n / 2", "eighth(8)") == 1


def test_a_library_that_needs_a_reference_ends_its_cell_alone(notebook, capsys, monkeypatch):
    monkeypatch.setattr(process, "half", HALF, raising=False)
    notebook("def use(f):\n    return f()", "from labs_helpers.launch.process import half as theirs")
    notebook("kept = 3\nvalue = use(lambda: theirs(7))\nvalue")
    said = "○ skipped: the reference of exercise 99/1, `half`, is not in this hand-out\n"
    assert capsys.readouterr().out == said
    notebook("process.half(8)", "print(value)")
    assert capsys.readouterr().out == 2 * said
    assert HALF(8) == 4


def test_cells_that_need_nothing_are_as_they_were(notebook, capsys):
    assert notebook("n = 2\nn + 1") == 3 and notebook("n = 5") is None and notebook("import os") is None
    with pytest.raises(ZeroDivisionError):
        notebook("1 / 0")


def test_on_ranks_too(notebook, capsys):
    sent = []

    class Magic:
        def run_cell_magic(self, *words):
            sent.append(words)

    notebook.names |= {"view": {"losses": 1}, "get_ipython": Magic}
    px = "get_ipython().run_cell_magic('px', '', {body!r})"
    notebook(px.format(body="losses = half(2)"), "print(view['losses'])")
    assert capsys.readouterr().out == 2 * SKIPPED and not sent
    notebook(px.format(body="losses = 3\nprint(losses)"), "print(view['losses'])")
    assert capsys.readouterr().out == "1\n" and len(sent) == 1


def test_names_are_the_notebooks_own():
    assert read(ast.parse("a = b\na + c\nfor d in d_all:\n    d")) == {"b", "c", "d_all"}
    assert read(ast.parse("x = x + 1\ndef f(y):\n    z = y\n    return z + w")) == {"x", "w"}
    assert read(ast.parse("half = check.half(half)")) == read(ast.parse("reveal(exercises.half)")) == set()


def cases(student):
    if student(2) != 1:
        raise Wrong("2", f"got {student(2)}")
    if student(8) != HALF(8):
        raise Wrong("8", f"got {student(8)}, not {HALF(8)}")
    yield "2 and 8"
    if student(10) != HALF(10):
        raise Wrong("10", "never known")


def wrong(n):
    return 1


def open_one(n): ...


def test_a_check_without_its_reference(capsys, monkeypatch):
    monkeypatch.setattr(SCORES, "status", {})
    cases.__name__ = "half"
    one = Exercise("99/1", "half of it", 5, 1, None, cases, withheld=True)
    found = one(open_one)
    assert isinstance(found, Withheld) and found.recorded is None
    assert capsys.readouterr().out == (
        "○ 99/1 half of it: not attempted yet; cells that need it are skipped until then\n"
    )
    with pytest.raises(Wrong, match="8: got 1, not 4\nUntil this check passes, cells that need `wrong` are skipped"):
        one(wrong)
    assert isinstance(one(found), Withheld) and "✗ 99/1 half of it: run your own cell" in capsys.readouterr().out
    names = {}
    exec(compile("def half(n):\n    return n / 2\n", "<answer>", "exec"), names)
    linecache.cache["<answer>"] = 0, None, ["def half(n):\n", "    return n / 2\n"], "<answer>"
    lines, said = one.tried(names["half"])
    assert lines == ["2 and 8"] and "this hand-out has no references" in str(said)
    reveal(HALF)
    assert "This hand-out does not include the references" in capsys.readouterr().out


def test_it_raises_wherever_it_is_used_and_goes_to_other_processes():
    for use in (lambda: HALF(3), lambda: HALF[(1,)], lambda: Withheld("99/1", "half")(8)):
        with pytest.raises(StillOpen):
            use()
    again = pickle.loads(pickle.dumps(HALF.error()))
    assert (str(again), again.reference) == (str(HALF.error()), True)
