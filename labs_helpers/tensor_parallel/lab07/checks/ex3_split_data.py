"""Exercise 3 of lab 07: split the data."""

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises


@exercise("07/3", "split the data", points=10, minutes=10, reference=exercises.split_data)
def split_data(student):
    yield "not checked yet"
