"""Not attempted, right, wrong: what a check prints, binds and raises."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import pytest

from labs_helpers.collectives.lab06.exercises import ring_allreduce
from labs_helpers.course import exercise as exercises
from labs_helpers.course.exercise import Exercise, exercise, whose
from labs_helpers.course.lab_summary import summary
from labs_helpers.course.prediction import predict
from labs_helpers.course.revealed import reveal
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.stub import stub_of
from labs_helpers.course.verdict import Wrong


def double(x):
    """Twice x."""
    return 2 * x


def stub(x):
    """Twice x."""
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


def right(x):
    return x + x


def wrong(x):
    return x * x


def half(x):
    ### BEGIN SOLUTION
    x = 2 * x
    ...
    ### END SOLUTION


def broken(x):
    return x[0]


def trial(student):
    for x in (2, 3):
        if student(x) != 2 * x:
            raise Wrong(f"x = {x}", f"got {student(x)}, expected {2 * x}\nLikely cause: a square")
        yield f"x = {x}"


@pytest.fixture
def check(monkeypatch):
    """A check of its own scoreboard."""
    for field in ("exercises", "status", "predictions", "passed"):
        monkeypatch.setattr(SCORES, field, {})
    monkeypatch.setattr(SCORES, "revealed", set())
    monkeypatch.setattr(SCORES, "lab", "99")
    return exercise("99/1", "doubling", points=10, minutes=5, reference=double)(trial)


def test_not_attempted_goes_on_with_the_reference(check, capsys):
    assert check(stub) is double
    assert capsys.readouterr().out.startswith("○ 99/1 doubling: not attempted yet")
    assert check(double) is double and "✓" not in capsys.readouterr().out
    assert SCORES.status["99/1"] == "○"


def test_a_stub_after_a_right_answer_is_open(check, capsys):
    check(right)
    capsys.readouterr()
    assert check(stub) is double
    assert capsys.readouterr().out.startswith("○ 99/1 doubling: not attempted yet")


def test_half_an_exercise_of_two_functions_says_which_one_is_open(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(SCORES, "status", {"06/4": "✓"})
    text = Path(ring_allreduce.__code__.co_filename).read_text()
    second = text.index("def ring_allreduce")
    (tmp_path / "half.py").write_text(text[:second] + stub_of(text[second:]))
    monkeypatch.syspath_prepend(tmp_path)
    made = Exercise("06/4", "all-gather, and compose", 10, 15, ring_allreduce, trial)
    assert made(importlib.import_module("half").ring_allreduce) is ring_allreduce
    assert " ".join(capsys.readouterr().out.split()) == (
        "○ 06/4 all-gather, and compose: `ring_allgather` is written; `ring_allreduce` "
        "is still open; the lab goes on with the reference"
    )
    monkeypatch.setattr(SCORES, "status", {})
    made(ring_allreduce)
    assert capsys.readouterr().out.startswith("○ 06/4 all-gather, and compose: not attempted yet")


def test_right_prints_a_line_a_case_and_returns_the_students(check, capsys):
    assert check(right) is right
    assert capsys.readouterr().out == "✓ x = 2\n✓ x = 3\n✓ 99/1 passed: 10 of 10 points\n"
    assert whose(right) == "yours" and whose(double) == "reference"


def test_the_reference_after_a_right_answer_does_not_take_it_back(check):
    check(right)
    check(double)
    assert SCORES.status["99/1"] == "✓"


def test_wrong_raises_and_teaches(check, capsys):
    with pytest.raises(Wrong) as caught:
        check(wrong)
    assert capsys.readouterr().out == "✓ x = 2\n"
    lines = caught.value._render_traceback_()
    assert lines[0] == "✗ 99/1 doubling: x = 3: got 9, expected 6" and lines[1] == "  Likely cause: a square"
    assert "goes on with the reference: `wrong`" in lines[-1]
    assert SCORES.status["99/1"] == "✗"


def test_an_exception_is_told_with_the_students_line(check):
    with pytest.raises(Wrong, match=r"TypeError: 'int' object is not subscriptable\n  line \d+: return x\[0\]"):
        check(broken)


def test_an_interrupt_names_the_line_and_leaves_the_reference(check):
    def stopped(x):
        raise KeyboardInterrupt

    with pytest.raises(Wrong, match=r"interrupted\n  line \d+: raise KeyboardInterrupt\nLikely cause") as caught:
        check(stopped)
    assert "bound to it until this check passes" in str(caught.value)


def test_a_check_that_is_run_again_alone_does_not_forget_what_it_found(check, capsys):
    with pytest.raises(Wrong):
        check(wrong)
    capsys.readouterr()
    assert check(double) is double
    assert capsys.readouterr().out.startswith("✗ 99/1 doubling: `double` is bound to the reference; run your own cell")


def test_half_an_answer_is_told_what_is_left(check):
    with pytest.raises(Wrong, match=r"There is still a `\.\.\.` in half"):
        check(half)


def test_grading_refuses_what_was_not_attempted_whatever_the_environment_says_later(check, monkeypatch):
    monkeypatch.setattr(exercises, "GRADING", True)
    monkeypatch.setenv("LABS_GRADING", "0")
    with pytest.raises(Wrong, match="not attempted"):
        check(stub)


def test_grading_is_what_the_environment_said_when_the_course_was_imported(check, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("imported_while_grading", exercises.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    monkeypatch.setenv("LABS_GRADING", "1")
    spec.loader.exec_module(module)
    assert check(stub) is double and "the lab goes on" in capsys.readouterr().out  # this one was imported before
    monkeypatch.setenv("LABS_GRADING", "0")
    with pytest.raises(Wrong, match="not attempted"):
        module.Exercise("99/1", "doubling", 5, 5, double, trial)(stub)


def test_something_else_than_a_function_is_refused(check):
    with pytest.raises(TypeError, match="takes your function, not 3"):
        check(3)


@pytest.mark.parametrize("answer", [len, partial(right, 3), property(right)])
def test_somebody_elses_function_is_no_answer(check, answer):
    with pytest.raises((Wrong, TypeError), match="define your own function with def|takes your function"):
        check(answer)


def test_a_transfer_exercise_has_no_reference(monkeypatch, capsys):
    check = Exercise("99/2", "transfer", 30, 20, None, trial)
    assert check(stub) is stub and "goes on" not in capsys.readouterr().out
    with pytest.raises(Wrong) as caught:
        check(wrong)
    assert "bound to it" not in str(caught.value)


def test_an_id_is_taken_once_and_a_check_has_to_yield(check):
    with pytest.raises(TypeError, match="yield"):
        exercise("99/3", "", points=1, minutes=1)(lambda student: None)


def test_summary_lists_points_predictions_and_what_is_open(check, capsys):
    exercise("99/2", "more", points=30, minutes=5, reference=stub)(trial)
    check(right)
    predict("speed-up", 2.5)
    predict("bytes", None)
    capsys.readouterr()
    summary()
    out = capsys.readouterr().out
    assert "✓ 99/1  doubling" in out and "10 / 10" in out and "○ 99/2  more" in out and " 0 / 30" in out
    assert "predictions made: 1 of 2 (no points)" in out and "10 / 40 points" in out and "\nOpen: 99/2\n" in out


@pytest.mark.parametrize(
    ("value", "answer", "told"),
    [
        (4096, 2048, "you said 4,096; it is 2,048 (2 times too high)"),
        (0.5, 0.333333, "you said 0.5; it is 0.333 (1.5 times too high)"),
        (3, 45.4, "you said 3; it is 45.4 (15 times too low)"),
        (11, 10.5, "you said 11; it is 10.5 (close)"),
        (2, 2.0001, "you said 2, and it is 2"),
        (-1, 2, "you said -1; it is 2"),
        (None, 1.5e9, "it is 1.5e+09"),
    ],
)
def test_a_prediction_comes_back_with_what_was_found(check, capsys, value, answer, told):
    prediction = predict("tiles", value)
    capsys.readouterr()
    prediction.found(answer)
    assert capsys.readouterr().out == f"tiles: {told}\n"
    summary()
    assert (f"          tiles: {told}\n" in capsys.readouterr().out) == (value is not None)


def test_what_was_found_has_a_unit_and_a_machine(check, capsys):
    predict("share", 40).found(22, "%", on="NVIDIA H200")
    assert capsys.readouterr().out.endswith("share: you said 40%; on NVIDIA H200 it is 22% (1.8 times too high)\n")


def test_reveal_asks_first_and_the_summary_says_so(check, capsys):
    reveal(double)
    assert "has not been attempted" in capsys.readouterr().out and not SCORES.revealed
    reveal(double, now=True)
    out = capsys.readouterr().out
    assert "return 2 * x" in out and SCORES.revealed == {"99/1"}
    summary()
    assert "reference revealed before an attempt" in capsys.readouterr().out
    with pytest.raises(ValueError, match="is not the reference of an exercise"):
        reveal(wrong)


def test_reveal_after_an_attempt_needs_no_now(check, capsys):
    with pytest.raises(Wrong):
        check(wrong)
    reveal(double)
    assert "return 2 * x" in capsys.readouterr().out and not SCORES.revealed


@pytest.mark.parametrize(
    ("value", "error"), [("3", TypeError), (True, TypeError), (float("nan"), ValueError), (float("inf"), ValueError)]
)
def test_a_prediction_is_a_number(value, error):
    with pytest.raises(error, match="predict"):
        predict("?", value)
