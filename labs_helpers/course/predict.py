"""Predictions: a number written down before the measurement that answers it."""

from __future__ import annotations

import math

from labs_helpers.course.scoreboard import SCORES, Prediction


def predict(question: str, value: float | None) -> Prediction:
    """Keeps `value` for the summary and for the plot; None means 'not yet' and draws nothing.

    Raises TypeError for anything that is not a number, ValueError for one that is not finite.
    """
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"predict({question!r}, …) takes a number or None, not {value!r}")
        if not math.isfinite(value):
            raise ValueError(f"predict({question!r}, …) takes a finite number, not {value!r}")
    prediction = SCORES.predictions[question] = Prediction(question, value)
    print(f"○ {question}: no prediction yet; put your number in place of None" if value is None
          else f"✓ {question}: you predict {value:g}")
    return prediction
