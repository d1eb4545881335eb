"""Exercise 8 of lab 07: row-parallel."""

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises


@exercise("07/8", "row-parallel", points=15, minutes=15, reference=exercises.row_parallel_linear)
def row_parallel_linear(student):
    yield "not checked yet"
