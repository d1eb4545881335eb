"""Grading of submitted notebooks: read as data here, run in a jail, judged outside of it."""
