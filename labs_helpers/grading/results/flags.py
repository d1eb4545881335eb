"""One sentence for each flag of an answer, the same for the student and the instructor."""

from __future__ import annotations

FLAGS = {
    "check-changed": "The cell of the check was changed. That changes nothing: the course's own check was run.",
    "cell-missing": "The cell of this exercise is not in the notebook.",
    "cell-twice": "The cell of this exercise is in the notebook more than once; the last one with an answer counts.",
    "cell-unmarked": "The cell has lost its mark, as a copied cell does; it was found by the name of its function.",
    "old-version": "The cell is of another version of this lab.",
    "defined-elsewhere": "Its function is defined in another cell too; the marked cell alone is graded.",
    "in-new-cell": "The answer is in a new cell, and not in the exercise's own. It is graded from there.",
    "in-text-cell": "The answer is in a text cell (Markdown), where it cannot be run.",
    "timeout": "It did not end in the time that an exercise has. Is there a loop that never ends?",
    "memory": "It needed more memory than an exercise has.",
    "crashed": "The process that ran it ended in the middle: it ended itself, had no memory left, or touched memory "
    "that is not its own.",
    "hidden-values": "It is right in cases of its check, and wrong for inputs that the check does not show.",
}
SAME, TWINS = "same-as-reference", "twins"
FOR_INSTRUCTORS = FLAGS | {
    SAME: "It is the course's own answer, but for names and comments.",
    TWINS: "Others have the same answer, or nearly so: see 'Answers that are alike' in index.html.",
}
