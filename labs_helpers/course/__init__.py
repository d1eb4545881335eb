"""How a lab talks to a student: set-up, exercises and their checks, hints, predictions, the summary."""

from labs_helpers.course.predict import predict
from labs_helpers.course.reveal import reveal
from labs_helpers.course.scoreboard import summary
from labs_helpers.course.setup import setup

__all__ = ["predict", "reveal", "setup", "summary"]
