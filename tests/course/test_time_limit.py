"""An endless loop ends with its line, in any thread; what waits and what is being debugged is left alone."""

import signal
import threading
import time
from types import SimpleNamespace

import pytest

from labs_helpers.course import time_limit as module
from labs_helpers.course.exercise import exercise
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.time_limit import TimeLimit, limit_each, time_limit
from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.course.wrap import wrap
from labs_helpers.practice.place import line_of


def count_up(n):
    k = 0
    while k < n:
        if k == 3:
            continue
        k += 1
    return k


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    monkeypatch.setattr(module, "TELL_AFTER_S", 0.05)


def over(seconds, function, *arguments, said=None, files=()):
    with time_limit(seconds, files, (said if said is not None else []).append):
        return function(*arguments)


def test_what_ends_in_time_is_left_alone_and_the_alarm_is_as_before():
    before = signal.getsignal(signal.SIGALRM)
    assert over(5, count_up, 2) == 2 and signal.getsignal(signal.SIGALRM) is before
    assert list(limit_each((i for i in range(3)), seconds=5)) == [0, 1, 2]


def test_an_endless_loop_is_told_of_and_ended():
    said = []
    with pytest.raises(TimeLimit, match=r"within 0\.2 s"):
        over(0.2, count_up, 5, said=said, files={__file__})
    assert len(said) == 1 and ", now in line " in said[0] and "interrupt the kernel" in said[0]


def test_a_jump_back_to_a_loop_has_the_line_before_it():
    """There a frame of Python 3.11 has no line number at times."""
    code = count_up.__code__
    inside = [(start, line) for start, _, line in code.co_lines() if line is not None][-1]
    frame = SimpleNamespace(f_lineno=None, f_code=code, f_lasti=inside[0] + 1)
    assert line_of(frame) == inside[1]
    assert line_of(SimpleNamespace(f_lineno=7)) == 7


def test_of_two_limits_the_shorter_one_holds_inside_and_outside():
    for outer, inner in ((0.2, 5), (5, 0.2)):
        with pytest.raises(TimeLimit, match=r"within 0\.2 s"):
            over(outer, over, inner, count_up, 5)


def test_in_another_thread_too():
    ended = []

    def run():
        try:
            over(0.1, count_up, 5)
        except TimeLimit as error:
            ended.append(error.seconds)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(100)
    assert ended == [0.1]


def test_waiting_is_no_endless_loop_until_it_takes_far_too_long(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 1000)
    over(0.1, time.sleep, 0.2)
    monkeypatch.setattr(module, "PATIENCE", 2)
    with pytest.raises(TimeLimit):
        over(0.1, time.sleep, 30)


def test_in_a_debugger_no_time_is_over(monkeypatch):
    monkeypatch.setattr(module, "_DEBUGGERS", (__file__,))
    end = time.monotonic() + 0.2

    def busy():
        while time.monotonic() < end:
            count_up(2)

    over(0.05, busy)


def test_a_check_names_the_line_and_the_loop(monkeypatch):
    for field in ("exercises", "status"):
        monkeypatch.setattr(SCORES, field, {})
    monkeypatch.setattr(limit_each, "__defaults__", ((), 0.2))

    @exercise("99/1", "counting", points=1, minutes=1, reference=lambda n: n)
    def check(student):
        yield f"{student(2)}"
        yield f"{student(5)}"

    with pytest.raises(Wrong) as caught:
        check(count_up)
    text = str(caught.value)
    elsewhere = describe_error(wrap, pytest.raises(TimeLimit, over, 0.1, count_up, 5).value)
    assert "your code was not running" in elsewhere.found and not elsewhere.causes
    assert "not finished after 0.2 s\n  line " in text and "continue" in text or "if k == 3:" in text
    assert "inside\n  line " in text and ": while k < n:" in text and "a loop that never ends" in text
    assert SCORES.status["99/1"] == "✗"
