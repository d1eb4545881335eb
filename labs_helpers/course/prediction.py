"""Predictions: a number written down before the measurement that answers it."""

from __future__ import annotations

import math

from labs_helpers.course.scoreboard import SCORES, Prediction
from labs_helpers.course.wrap import wrap


class _Short:
    """Shown in a notebook without the frames of this file."""

    def _render_traceback_(self) -> list[str]:
        return wrap(f"✗ {self}").splitlines()


class NotANumber(_Short, TypeError):
    """A prediction that is neither a number nor None."""


class NotFinite(_Short, ValueError):
    """A prediction that is NaN or infinite."""


def predict(question: str, value: float | None) -> Prediction:
    """Keeps `value` for the summary and for the plot; None means 'not yet' and draws nothing.

    What was found is said beside it where it is known, in a cell that may print what it likes
    (`nbval-ignore-output`), and comes back in the summary:

        sectors = predict("sectors down a column", None)
        …
        sectors.found(32)  # sectors down a column: you said 64; it is 32 (2 times too high)

    Raises TypeError for anything that is not a number, ValueError for one that is not finite.
    """
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise NotANumber(f"predict({question!r}, …) takes a number or None, not {value!r}")
        if not math.isfinite(value):
            raise NotFinite(f"predict({question!r}, …) takes a finite number, not {value!r}")
    prediction = SCORES.predictions[question] = Prediction(question, value)
    print(
        f"○ {question}: no prediction yet; put your number in place of None"
        if value is None
        else f"✓ {question}: you predict {value:g}"
    )
    return prediction
