"""The lab's exercises with their state and points, and where to go on."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from labs_helpers.course.answer_code import code_cells, key_of, predictions_in
from labs_helpers.course.cells import CELLS
from labs_helpers.course.kept import FIELDS, kept_here, own_notebook, place
from labs_helpers.course.own_copies import read
from labs_helpers.course.prediction import Prediction
from labs_helpers.course.scoreboard import OPEN, RETIRED, RIGHT, SCORES, points_of
from labs_helpers.course.wrap import wrap
from labs_helpers.labs import LABS, retired


def summary() -> None:
    """Prints the lab's exercises with their state and points, and what is still open.

    A ✓ of an earlier kernel counts while the answer's code is the same, in the notebook as it is saved.
    """
    exercises, kept = SCORES.of_lab(), kept_here()
    cells = _cells_of(own_notebook())
    earned, unfinished = 0.0, []
    for exercise in exercises:
        state, note = _state_of(exercise, kept["exercises"].get(exercise.id), cells)
        points = points_of(exercise.points, state)
        if exercise.id in SCORES.revealed:
            note += "  (reference revealed before an attempt)"
        print(f"{state} {exercise.id}  {exercise.title:<34} {points:>3g} / {exercise.points}{note}")
        earned += points
        unfinished += [exercise] * (state != RIGHT)
    for gone in retired(SCORES.lab):
        print(wrap(f"{RETIRED} {gone}"))
    print(f"{'':8}{'':<34} {earned:>3g} / {sum(e.points for e in exercises)} points")
    _tell_predictions(kept["predictions"].get(SCORES.lab or "", {}))
    print("All done." if not unfinished else "Open: " + ", ".join(e.id for e in unfinished))
    _say_where(unfinished)
    if place() is None and any(e.id not in SCORES.status for e in exercises):
        print("A restart forgets each ✓ and none of your code: Run All brings them back, as the checks run.")
    if place() is None and "COLAB_RELEASE_TAG" in os.environ:
        print("Each ✓ is lost with this machine. Mount your Drive (Files → Mount Drive), and it is kept there.")


def _cells_of(notebook: Path | None) -> list[tuple[str, str]]:
    try:
        return code_cells(notebook) if notebook else []
    except (OSError, ValueError):  # moved, or being written by another program
        return []


def _state_of(exercise, kept: dict | None, cells: list[tuple[str, str]]) -> tuple[str, str]:
    """The mark of an exercise, and a note in brackets: from this kernel's check, else from what is kept."""
    if exercise.id in SCORES.status:
        return SCORES.status[exercise.id], ""
    if kept is None:
        return OPEN, "  (its check has not run since this kernel started)"
    now = key_of(exercise.trial.__name__, _cells_above(exercise.id, cells), SCORES.others(exercise.id))
    if now not in ("", kept["answer"]):
        return OPEN, f"  (edited since its ✓ of {kept['at']}: run its check)"
    return RIGHT, f"  (✓ of {kept['at']})"


def _cells_above(exercise: str, cells: list[tuple[str, str]]) -> list[str]:
    """The texts of the notebook's cells above the exercise's check, and then those that this kernel has run."""
    marks = [mark for mark, _ in cells]
    check = f"{exercise.replace('/', '-')}-check"
    end = marks.index(check) if check in marks else len(cells)
    return [text for _, text in cells[:end]] + CELLS.texts()


def _tell_predictions(kept: dict[str, dict]) -> None:
    """How many of the lab's predictions were given; those that this kernel has not met come from what is kept."""
    asked = predictions_in(text for _, text in _cells_of(own_notebook() or _shipped()))
    known = SCORES.predictions | {
        question: Prediction(**{name: told[name] for name in FIELDS})
        for question, told in kept.items()
        if question in asked
    }
    if not (asked or known):
        return
    given = {q: p for q, p in known.items() if p.value is not None}
    count = len(asked | known)
    mark = RIGHT if len(given) == count else OPEN
    print(f"{mark}       predictions given: {len(given)} of {count} (they have no points)")
    for question in [*asked, *(q for q in given if q not in asked)]:
        if question in given and given[question].answer is not None:
            print(f"          {question}: {given[question]}")


def _shipped() -> Path | None:
    """The lab's own notebook; None where the package alone is installed, as on Colab."""
    return next((lab.path for lab in LABS if lab.number == SCORES.lab and lab.path.is_file()), None)


def _say_where(unfinished: list) -> None:
    """Names the cell that ended a Run All, and the first exercise that is not done: as links, where they work."""
    notebook, last = own_notebook(), CELLS.run[-1] if CELLS.run else None
    said = []
    if last is not None and last.error is not None:
        first = next(iter(last.text.strip().splitlines()), "")
        said.append(f"The last run ended with an error, in the cell {_link(f'`{first}`', notebook, last.id)}.")
    if notebook and unfinished and (heading := first_heading(notebook, [e.id for e in unfinished])):
        said.append(f"Go on with {_link(heading[0], notebook, heading[1])}.")
    if notebook and said:
        from IPython.display import Markdown, display

        display(Markdown(" ".join(said)))
    elif said:
        print(wrap(" ".join(said)))


def _link(text: str, notebook: Path | None, cell: str | None) -> str:
    """JupyterLab takes the reader to the cell with that id."""
    return f"[{text}]({quote(notebook.name)}#cell-id={cell})" if notebook and cell else text


def first_heading(notebook: Path, exercises: list[str]) -> tuple[str, str] | None:
    """The first heading in a notebook that is one of these exercises', and its cell's id; None where there is none."""
    numbers = "|".join(exercise.partition("/")[2] for exercise in exercises)
    try:
        found = (
            (re.search(rf"^### (Exercise ({numbers}) .*)", c.source, re.MULTILINE), c) for c in read(notebook).cells
        )
        return next(((match[1], cell.id) for match, cell in found if match and cell.cell_type == "markdown"), None)
    except (OSError, ValueError, AttributeError):
        return None
