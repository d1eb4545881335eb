"""The interface between a lab and its student: set-up, exercises and checks, hints, predictions, and the summary."""

from labs_helpers.course.lab_setup import setup
from labs_helpers.course.lab_summary import summary
from labs_helpers.course.measured import measured_here
from labs_helpers.course.prediction import predict
from labs_helpers.course.revealed import reveal

__all__ = ["measured_here", "predict", "reveal", "setup", "summary"]
