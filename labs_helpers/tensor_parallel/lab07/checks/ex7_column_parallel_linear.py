"""Exercise 7 of lab 07: column-parallel."""

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises


@exercise("07/7", "column-parallel", points=15, minutes=20, reference=exercises.column_parallel_linear)
def column_parallel_linear(student):
    yield "not checked yet"
