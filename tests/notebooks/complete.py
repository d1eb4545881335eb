"""The parts of an exercise besides its reference and its check: cells, hints, planted bugs, other right answers."""

from __future__ import annotations

import importlib

from nbformat.notebooknode import NotebookNode

from labs_helpers.authoring.cells import grade_id
from labs_helpers.labs import Lab
from tests.notebooks.labs import by_grade_id
from tests.planted import PlantedBugs

HINTS, BUGS, RIGHT_ANSWERS = 3, 5, 2  # at least


def module_of_bugs(lab: Lab) -> str:
    return f"tests.{lab.topic}.lab{lab.number}.test_planted_bugs"


def planted_in(lab: Lab) -> list[type[PlantedBugs]]:
    """The subclasses of PlantedBugs in tests/<topic>/labNN/test_planted_bugs.py."""
    module = importlib.import_module(module_of_bugs(lab))
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [c for c in classes if issubclass(c, PlantedBugs) and c is not PlantedBugs]


def lacking(exercise, notebook: NotebookNode, planted: list[type[PlantedBugs]]) -> list[str]:
    """What the exercise still lacks, a line each."""
    id, name = grade_id(exercise), exercise.trial.__name__
    cells = by_grade_id(notebook)
    lines = [f"no cell {wanted}: make sync" for wanted in (id, f"{id}-check") if wanted not in cells]
    hints = 0
    if check := cells.get(f"{id}-check"):
        hints = notebook.cells[notebook.cells.index(check) + 1].source.count("<details>")
    if hints < HINTS:
        lines.append(f"{hints} hints in the cell behind its check; {HINTS} are needed, in <details>")
    if not any(name in one.REFERENCES for one in planted):
        lines.append(f"`{name}` is not in the REFERENCES of its lab's planted bugs")
    bugs = {repr(changes) for one in planted for bugged, _, changes, _ in one.BUGS if bugged == name}
    if len(bugs) < BUGS:
        lines.append(f"{len(bugs)} planted bugs; {BUGS} are needed")
    right = {repr(changes) for one in planted for answered, changes in one.DIFFERENT if answered == name}
    if len(right) < RIGHT_ANSWERS:
        lines.append(f"{len(right)} right answers that are written differently; {RIGHT_ANSWERS} are needed")
    return [f"{exercise.id} {exercise.title}: {line}" for line in lines]
