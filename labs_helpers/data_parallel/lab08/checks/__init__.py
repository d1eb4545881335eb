"""The checks of lab 08, a file an exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.scoreboard import summary
from labs_helpers.data_parallel.lab08.checks.ex1_double import double
from labs_helpers.data_parallel.lab08.checks.ex2_scale_and_add import scale_and_add

__all__ = ["double", "scale_and_add", "summary"]
