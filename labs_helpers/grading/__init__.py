"""Grading of submitted notebooks: they are read as data (reading/) and run in a jail (jails/).

class_run.py grades a class student by student, marks.py a submission, verdict.py its answers. Each answer runs in
processes of its own (far/), hidden/ draws inputs that no check shows, and results/ keeps and draws the outcome.
handout/ makes what students get.
"""

VERSION = 2  # of grading, kept in every record: raise it with a change that may give an answer other points
