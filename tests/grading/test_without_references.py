"""Test a hand-out without references: it contains none, an untouched notebook runs to its end, and a solved one is
right."""

import ast
import json
import os
import sys
from dataclasses import replace

import nbformat
import pytest

from labs_helpers import labs
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.stub import BEGIN
from labs_helpers.course.withheld import key
from labs_helpers.grading.handout import recorded_calls, withhold
from labs_helpers.grading.handout.folder import main, make_handout
from labs_helpers.labs import LABS
from labs_helpers.launch.process import run
from tests.grading.test_at_home import rows
from tests.notebooks.labs import shipped, solved

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)


def test_what_stands_in_their_place_is_no_code(tmp_path):
    lab = labs.lab("07")  # whose checks ask no reference, so that nothing has to be recorded
    folder, _ = make_handout([lab], tmp_path, references=False)
    texts = {path.parent.name: path.read_text() for path in folder.rglob("*.py")}
    assert not [room for room, text in texts.items() if f"    {BEGIN}\n" in text and room != "course"]
    files = list(folder.glob("labs_helpers/tensor_parallel/lab07/exercises/ex*.py"))
    expected = [f"07/{number}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 12)]  # 5 is retired, 10 the transfer
    assert len(files) == len(expected)
    for path in files:
        assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    assert "are skipped" in (folder / "README.md").read_text()
    program = "from labs_helpers.labs import LABS; print(*(e.id for e in LABS[0].exercises() if e.withheld))"
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    said = run([sys.executable, "-c", program], timeout=60, cwd=folder, env=env)
    assert said.split() == expected


def test_a_lab_whose_checks_need_code_is_refused(tmp_path, capsys, monkeypatch):
    def cannot(lab):
        raise ValueError(f"checks of lab {lab.number} need the code of this")

    monkeypatch.setattr(withhold, "recorded_calls", cannot)
    assert main(["02", "08", "--no-references", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said == "REFERENCES=no: checks of lab 02 need the code of this; checks of lab 08 need the code of this\n"
    assert not list(tmp_path.iterdir())


MADE_UP = {
    "exercises.py": "def doubled(n):\n    return 2 * n\n\n\ndef adder(n):\n    return lambda m: n + m\n\n\n"
    "def applied(f, n):\n    return f(n)\n",
    "checks/__init__.py": """from labs_helpers.course.exercise import exercise
from made_up_lab import exercises

@exercise("98/1", "twice", points=1, minutes=1, reference=exercises.doubled)
def doubled(student):
    assert student(3) == exercises.doubled(3) == exercises.adder(3)(3) == exercises.applied(student, 3)
    yield "3"
""",
}


def test_what_a_check_cannot_have_recorded(tmp_path, monkeypatch):
    for name, text in MADE_UP.items():
        path = tmp_path / "made_up_lab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made_up = replace(labs.lab("08"), number="98", package="made_up_lab", transfer="made_up_lab.exercises")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(SCORES, "exercises", {})
    monkeypatch.setattr(recorded_calls, "ROOT", tmp_path)
    monkeypatch.setattr(recorded_calls, "lab", lambda number: made_up)
    found = recorded_calls.record("98")
    assert found == {"calls": {"doubled": {key((3,), {}): "6"}}, "not data": ["adder", "applied"]}
    monkeypatch.setattr(recorded_calls, "run", lambda *_, **__: json.dumps(found))
    with pytest.raises(ValueError, match="checks of lab 98 need the code of adder, applied"):
        recorded_calls.recorded_calls(made_up)


def test_a_reference_that_is_named_is_not_asked():
    found = recorded_calls.ASKED.search
    assert found("right = exercises.f(3)") and found("partial(exercises.f, 3)")
    assert not found('@exercise("02/1", reference=exercises.f)')


@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.number >= "08"], ids=lambda lab: lab.number)
def test_checks_of_the_later_labs_call_no_reference(lab):
    """Their values are tensors and functions, which cannot be recorded: `variant` keeps the reference's text."""
    checks = labs.ROOT.joinpath(*lab.package.split("."), "checks")
    assert not [path for path in checks.rglob("*.py") if recorded_calls.ASKED.search(path.read_text())]


def test_mistakes_that_are_changes_of_a_reference_are_still_named(tmp_path):
    folder, _ = make_handout([labs.lab("13")], tmp_path, references=False)
    answer = folder / "answer.py"
    answer.write_text("""def users_that_fit(config, parameters, memory, length, size):
    one = 4 * config.layers * config.key_value_heads * config.head_dim
    return one, memory // (one * config.context), memory // (one * size) // -(-length // size)
""")
    program = "import answer; from labs_helpers.serving.lab13.checks import users_that_fit as check; "
    program += "print(check.tried(answer.users_that_fit))"
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    said = run([sys.executable, "-c", program], timeout=60, cwd=folder, env=env)
    assert "the weights take memory, too" in said


@pytest.mark.soak
@every_lab
def test_untouched_it_runs_to_its_end_and_solved_it_is_right(lab, tmp_path):
    folder, _ = make_handout([lab], tmp_path, references=False)
    for name, notebook in (("untouched", shipped(lab)), ("solved", solved(lab))):
        printed = executed(notebook, name, folder, tmp_path)
        assert all(f"{'○' if name == 'untouched' else '✓'} {one.id} " in printed[-1] for one in lab.exercises())
        assert any("skipped: exercise" in text for text in printed) == (name == "untouched")
    if lab.number not in ("00", "06"):  # one of kernels, one of ranks
        return
    command = [sys.executable, "-m", "labs_helpers.grading.at_home", lab.number, "--file", tmp_path / "solved.ipynb"]
    said = run(command, timeout=900, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)})
    assert {id: points for id, (_, points, _) in rows(said).items()} == {e.id: e.points for e in lab.exercises()}


def executed(notebook, name, folder, out) -> list[str]:
    """What each cell prints in the hand-out; one that raises fails the test."""
    nbformat.write(notebook, out / f"{name}.ipynb")
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--output", f"{name}.run"]
    run([*command, out / f"{name}.ipynb"], timeout=600, cwd=folder, env=env)
    cells = json.loads((out / f"{name}.run.ipynb").read_text())["cells"]
    return ["".join("".join(o.get("text", "")) for o in c["outputs"]) for c in cells if c["cell_type"] == "code"]
