"""Grade submitted notebooks: read them as data (reading/) and run their answers in a jail (jails/).

class_run.py grades a class student by student, marks.py one submission, and verdict.py its answers. Each answer runs in
its own processes (far/). hidden/ draws inputs that no check shows, and results/ keeps and displays the outcome.
handout/ builds what students get.
"""

VERSION = 2  # stored in every record: increase it with any change that may change an answer's points
