"""Predictions: numbers that a student writes down before the measurement."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from labs_helpers.course.kept import keep_prediction
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.wrap import wrap


@dataclass
class Prediction:
    """A number predicted before a measurement, `value`, and the measured one, `answer`; each is None while it is
    missing."""

    question: str
    value: float | None = None
    answer: float | None = None
    unit: str = ""
    on: str = ""

    def found(self, answer: float, unit: str = "", on: str = "") -> None:
        """Keep the result for the summary, and print it next to the prediction:

            sectors down a column: you said 64; it is 32 (2 times too high)

        answer: in the unit of the question. unit: written after both numbers, such as '%' or ' kB'. on: the machine, if
        it is not this one: 'on NVIDIA H200 it is 1.9'.
        """
        self.answer, self.unit, self.on = float(answer), unit, on
        keep_prediction(SCORES.lab, self.question, asdict(self))
        print(f"{self.question}: {self}")

    def __str__(self) -> str:
        """Return 'you said 64; it is 32 (2 times too high)', or as much of it as is known."""
        said = "no prediction" if self.value is None else f"you said {_number(self.value)}{self.unit}"
        if self.answer is None:
            return said
        it_is = f"{f'on {self.on} ' * bool(self.on)}it is {_number(self.answer)}{self.unit}"
        if self.value is None:
            return it_is
        if _number(self.value) == _number(self.answer):
            return f"{said}, and {it_is}"
        return f"{said}; {it_is}{_off(self.value, self.answer)}"


def _number(x: float) -> str:
    """Format a number with at least three digits: 2,048, 0.333, 1.5e+09."""
    return f"{x:,.0f}" if x == int(x) and abs(x) < 1e9 else f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.3g}"


def _off(said: float, right: float) -> str:
    """Return ' (2 times too high)' if both numbers are positive and far enough apart."""
    if said <= 0 or right <= 0:
        return ""
    ratio = max(said / right, right / said)
    if ratio < 1.1:
        return " (close)"
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return f" ({times} times too {'high' if said > right else 'low'})"


class _Short:
    """An error that a notebook shows without the frames of this file."""

    def _render_traceback_(self) -> list[str]:
        return wrap(f"✗ {self}").splitlines()


class NotANumber(_Short, TypeError):
    """A prediction that is neither a number nor None."""


class NotFinite(_Short, ValueError):
    """A prediction that is NaN or infinite."""


def predict(question: str, value: float | None) -> Prediction:
    """Keep `value` for the summary and the plot; None means 'not yet' and draws nothing.

    A later cell, with the tag `nbval-ignore-output`, prints the result next to the prediction, and the summary repeats
    it:

        sectors = predict("sectors down a column", None)
        …
        sectors.found(32)  # sectors down a column: you said 64; it is 32 (2 times too high)

    Raises TypeError for anything but a number or None, ValueError for a number that is not finite.
    """
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise NotANumber(f"predict({question!r}, …) takes a number or None, not {value!r}")
        if not math.isfinite(value):
            raise NotFinite(f"predict({question!r}, …) takes a finite number, not {value!r}")
    prediction = SCORES.predictions[question] = Prediction(question, value)
    keep_prediction(SCORES.lab, question, asdict(prediction))
    print(
        f"○ {question}: no prediction yet; put your number in place of None"
        if value is None
        else f"✓ {question}: you predict {value:g}"
    )
    return prediction
