"""Hidden inputs of lab 11, which the grader alone asks."""
