"""An exercise and its check: open, wrong or right, and what the check prints and binds in each case."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from labs_helpers.compile.source import plain, reachable, source_of
from labs_helpers.course.answer_code import key_of
from labs_helpers.course.cells import CELLS, running_shell
from labs_helpers.course.kept import keep_right
from labs_helpers.course.scoreboard import OPEN, RIGHT, SCORES, WRONG
from labs_helpers.course.skipping import skip_cells
from labs_helpers.course.stub import BEGIN, attempted, still_open
from labs_helpers.course.time_limit import TimeLimit, limit_each
from labs_helpers.course.verdict.errors import describe_error, files_of
from labs_helpers.course.verdict.picture import picture_of
from labs_helpers.course.verdict.touched import CALLS, with_touched
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.course.withheld import StillOpen, Withheld
from labs_helpers.course.wrap import wrap

# Read once, so that a cell that changes os.environ later has no effect.
GRADING = os.environ.get("LABS_GRADING") == "1"


@dataclass(frozen=True)
class Exercise:
    """An exercise. `trial(student)` yields one line for each case that is right and raises Wrong at the first that is
    not.

    In a notebook, `name = check.name(name)` calls the check. `reference` is None for a transfer exercise, whose
    solution students never get; the check then returns the student's function. withheld: this hand-out does not include
    the reference, so cells that need the exercise are skipped until it is solved.
    """

    id: str
    title: str
    points: int
    minutes: int
    reference: Callable | None
    trial: Callable[[Callable], Iterator[str]]
    kernel: bool = False
    withheld: bool = False

    def __call__(self, student):
        if self.withheld:
            skip_cells()
        if isinstance(student, Withheld):  # the student ran the check again, but not the exercise's cell
            return self._not_attempted(student)
        if not callable(student) and not hasattr(student, "fn"):
            raise TypeError(f"check {self.id} takes your function, not {student!r}")
        if why := CELLS.why_stale(self.trial.__name__, student):
            raise self._wrong(self.trial.__name__, Wrong("", why))
        if not inspect.isfunction(plain(student)):
            what = f"`{self.trial.__name__}` is {student!r:.60}; define your own function with def"
            raise self._wrong(self.trial.__name__, Wrong("", what))
        if student is self.reference or not attempted(student):
            return self._not_attempted(student)
        try:
            for line in self._trials(student):
                print(f"{RIGHT} {line}")
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            shown = not GRADING and running_shell() is not None
            raise self._wrong(plain(student).__name__, _judged(student, error, shown)) from None
        SCORES.status[self.id] = RIGHT
        print(f"{RIGHT} {self.id} passed: {self.points} of {self.points} points")
        if SCORES.passed.get(self.id) is student:
            name = plain(student).__name__
            print(
                f"  This `{name}` is the one that the last check tried. If you have changed its cell, run the "
                "cell first."
            )
        SCORES.passed[self.id] = student
        keep_right(self.id, key_of(plain(student).__name__, CELLS.texts(student), SCORES.others(self.id)))
        return student

    def verify(self, student) -> list[str]:
        """Return all lines of the check without printing them; raise Wrong. For tests and other processes."""
        lines, wrong = self.tried(student)
        if wrong:
            raise wrong
        return lines

    def tried(self, student, pictured: bool = False) -> tuple[list[str], Wrong | None]:
        """Return the lines of the cases that are right, and the Wrong of the first other case, with its picture."""
        lines: list[str] = []
        try:
            for line in self._trials(student):
                lines.append(line)
        except (Exception, TimeLimit, SystemExit) as error:
            wrong = _judged(student, error, pictured)
            wrong.__cause__ = error
            return lines, wrong
        return lines, None

    def _trials(self, student) -> Iterator[str]:
        from labs_helpers.measure.machine import this_machine

        if self.kernel and not this_machine().interpreted:
            # First in the interpreter, which counts every access and survives a stray one, then on the GPU.
            from labs_helpers.course.verdict.interpreted import verify_interpreted

            yield from verify_interpreted(self, student)
        yield from self._lines(student)

    def _lines(self, student) -> Iterator[str]:
        with (
            _kernel_stays(),
            np.errstate(all="ignore"),
        ):  # the interpreter computes in NumPy; the check reports what NumPy would warn about
            yield from limit_each(self.trial(student), files_of(student))

    def _not_attempted(self, student):
        state = SCORES.status.setdefault(self.id, OPEN)
        if GRADING:
            raise Wrong(self.id, "not attempted")
        if self.withheld:
            return self._left_out(student, state)
        if self.reference is None:
            print(wrap(f"{OPEN} {self.id} {self.title}: {self._renamed() or 'not attempted yet'}"))
            return student
        name = plain(self.reference).__name__
        if other := self._renamed():
            print(wrap(f"{OPEN} {self.id} {self.title}: {other}; the lab goes on with the reference"))
        elif student is not self.reference or state == OPEN:
            what = _what_is_open(student, self.reference)
            print(wrap(f"{OPEN} {self.id} {self.title}: {what}; the lab goes on with the reference"))
        else:  # the student ran only the check again, or the exercise's cell raised
            print(
                wrap(
                    f"{state} {self.id} {self.title}: `{name}` is bound to the reference; run your own cell above first"
                )
            )
        return self.reference

    def _left_out(self, student, state: str) -> Withheld:
        """Return what the notebook's name is bound to in a hand-out without references."""
        what = self._renamed() or "not attempted yet"
        if isinstance(student, Withheld) and state != OPEN:
            what = "run your own cell above first"
        print(wrap(f"{state} {self.id} {self.title}: {what}; cells that need it are skipped until then"))
        return Withheld(self.id, self.trial.__name__)

    def _renamed(self) -> str:
        name = self.trial.__name__
        other = CELLS.renamed(name)
        return f"the cell above defines `{other}`; rename it to `{name}`" if other else ""

    def _wrong(self, name: str, wrong: Wrong) -> Wrong:
        SCORES.status[self.id] = WRONG
        rest = ""
        if self.withheld:
            _bind(name, Withheld(self.id, name))
            rest = f"\nUntil this check passes, cells that need `{name}` are skipped."
        if self.reference is not None:
            _bind(name, self.reference)
            rest = f"\nThe lab goes on with the reference: `{name}` is bound to it until this check passes."
        return Wrong(f"{self.id} {self.title}", f"{wrong}{rest}", picture=wrong.picture)


def exercise(id: str, title: str, *, points: int, minutes: int, reference=None, kernel: bool = False):
    """Turn the generator that proves an exercise right into its check; see Exercise.

    kernel: the answer runs Triton kernels, so on a GPU the check tries it in the interpreter first.
    """

    def register(trial) -> Exercise:
        if not inspect.isgeneratorfunction(trial):
            raise TypeError(f"the check of {id} must yield a line for each case")
        withheld = isinstance(reference, Withheld)
        made = Exercise(id, title, points, minutes, None if withheld else reference, trial, kernel, withheld)
        if id in SCORES.exercises and SCORES.exercises[id].trial.__module__ != trial.__module__:
            raise ValueError(f"exercise {id} is defined twice")
        SCORES.exercises[id] = made
        return made

    return register


def _judged(student, error: BaseException, pictured: bool) -> Wrong:
    """Turn `error`, raised during a trial of `student`, into a Wrong that also names unfinished parts and has a
    picture."""
    if isinstance(error, StillOpen) and not _in_answer(student, error):
        return Wrong("", "the answer is wrong, and the check cannot say more because this hand-out has no references")
    wrong = describe_error(student, error)
    if places := still_open(student):
        wrong = Wrong(wrong.case, f"{wrong.message}\nThere is still a `...` in {', '.join(places)}.")
    with suppress(Exception):  # a verdict without its picture is better than no verdict
        wrong.picture = with_touched(picture_of(error), error) if pictured else None
    CALLS.clear()
    return wrong


def _in_answer(student, error: BaseException) -> bool:
    """Tell whether code of the answer itself is in the error's traceback."""
    files = files_of(student)
    return any(frame.filename in files for frame in traceback.extract_tb(error.__traceback__))


def _what_is_open(student, reference) -> str:
    """Return 'not attempted yet', or which function is open if others of the same cell are written."""
    own = plain(student)
    if student is reference:
        return "not attempted yet"
    parts = {
        name: plain(own.__globals__.get(name))
        for name, part in reachable(reference).items()
        if part is not reference and BEGIN in source_of(part)
    }
    written = [
        f"`{name}`"
        for name, part in parts.items()
        if inspect.isfunction(part)
        and part is not own
        and part.__code__.co_filename == own.__code__.co_filename
        and attempted(own.__globals__[name])
    ]
    if not written:
        return "not attempted yet"
    return f"{' and '.join(written)} {'are' if len(written) > 1 else 'is'} written; `{own.__name__}` is still open"


def whose(function) -> str:
    """Return 'reference' or 'yours', the label of `function` in a figure's legend."""
    return "reference" if any(function is e.reference for e in SCORES.exercises.values()) else "yours"


def _bind(name: str, value) -> None:
    """Bind `name` to `value` in the notebook: an assignment whose right side raises would keep the old value."""
    if shell := running_shell():
        shell.user_ns[name] = value


@contextmanager
def _kernel_stays() -> Iterator[None]:
    """Make a notebook's exit() and quit() raise SystemExit, as in Python; IPython's versions would end the kernel."""
    if shell := running_shell():
        shell.ask_exit = sys.exit  # shadows the method until the attribute is deleted
    try:
        yield
    finally:
        if shell:
            vars(shell).pop("ask_exit", None)
