"""Grading of submitted notebooks: read as data (reading/), run in a jail (jails/), and judged outside of it.

class_run.py takes a class student by student, marks.py a submission, verdict.py its answers. hidden/ draws what no
check shows, trust/ says which answers need no look, results/ keeps it and draws it. handout/ is for students.
"""
