"""Grading of submitted notebooks: read as data (reading/), run in a jail (jails/), and judged outside of it.

class_run.py takes a class student by student, marks.py a submission, verdict.py its answers. hidden/ draws what no
check shows, trust/ says which answers need no look, results/ keeps it and draws it. handout/ is for students.
"""

VERSION = 1  # of grading, kept in every record: raise it with a change that may give an answer other points
