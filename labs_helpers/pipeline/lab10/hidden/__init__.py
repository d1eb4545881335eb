"""Hidden inputs of lab 10, which only the grader uses."""

from labs_helpers.pipeline.lab10.hidden import first_half, second_half

__all__ = ["first_half", "second_half"]
