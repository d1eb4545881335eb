"""The summary of a lab: its exercises with their state and points, and the next open one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from labs_helpers.course.answer_code import code_cells, key_of, predictions_in
from labs_helpers.course.cells import CELLS
from labs_helpers.course.kept import FIELDS, kept_here, own_notebook, place
from labs_helpers.course.prediction import Prediction
from labs_helpers.course.scoreboard import OPEN, RETIRED, RIGHT, SCORES, points_of
from labs_helpers.course.wrap import wrap
from labs_helpers.labs import LABS, retired


def summary() -> None:
    """Print the lab's exercises with their state and points, and list the open ones.

    A ✓ from an earlier kernel counts as long as the answer's code in the saved notebook is unchanged.
    """
    exercises, kept = SCORES.of_lab(), kept_here()
    cells = _cells_of(own_notebook())
    earned, unfinished, width = 0.0, [], max((len(exercise.id) for exercise in exercises), default=4)
    for exercise in exercises:
        state, note = _state_of(exercise, kept["exercises"].get(exercise.id), cells)
        points = points_of(exercise.points, state)
        if exercise.id in SCORES.revealed:
            note += "  (reference revealed before an attempt)"
        print(f"{state} {exercise.id:<{width}}  {exercise.title:<34} {points:>3g} / {exercise.points}{note}")
        earned += points
        unfinished += [exercise] * (state != RIGHT)
    for gone in retired(SCORES.lab):
        print(wrap(f"{RETIRED} {gone}"))
    print(f"{'':{width + 4}}{'':<34} {earned:>3g} / {sum(e.points for e in exercises)} points")
    _tell_predictions(kept["predictions"].get(SCORES.lab or "", {}))
    print("All done." if not unfinished else "Open: " + ", ".join(e.id for e in unfinished))
    _say_where(unfinished)
    if place() is None and any(e.id not in SCORES.status for e in exercises):
        print("A restart clears each ✓ but not your code: Run All brings them back when the checks run.")
    if place() is None and "COLAB_RELEASE_TAG" in os.environ:
        print("When this machine goes away, each ✓ is lost. Mount your Drive (Files → Mount Drive) to keep them there.")


def _cells_of(notebook: Path | None) -> list[tuple[str, str]]:
    try:
        return code_cells(notebook) if notebook else []
    except (OSError, ValueError):  # moved, or being written by another program
        return []


def _state_of(exercise, kept: dict | None, cells: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the mark of an exercise and a note in parentheses, from this kernel's check or from the progress file."""
    if exercise.id in SCORES.status:
        return SCORES.status[exercise.id], ""
    if kept is None:
        return OPEN, "  (its check has not run since this kernel started)"
    now = key_of(exercise.trial.__name__, _cells_above(exercise.id, cells), SCORES.others(exercise.id))
    if now not in ("", kept["answer"]):
        return OPEN, f"  (edited since its ✓ of {kept['at']}: run its check)"
    return RIGHT, f"  (✓ of {kept['at']})"


def _cells_above(exercise: str, cells: list[tuple[str, str]]) -> list[str]:
    """Return the notebook's cells above the exercise's check, followed by those that this kernel ran."""
    marks = [mark for mark, _ in cells]
    check = f"{exercise.replace('/', '-')}-check"
    end = marks.index(check) if check in marks else len(cells)
    return [text for _, text in cells[:end]] + CELLS.texts()


def _tell_predictions(kept: dict[str, dict]) -> None:
    """Print how many of the lab's predictions the student made, including those in the progress file."""
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
    print(f"{mark}       predictions made: {len(given)} of {count} (no points)")
    for question in [*asked, *(q for q in given if q not in asked)]:
        if question in given and given[question].answer is not None:
            print(f"          {question}: {given[question]}")


def _shipped() -> Path | None:
    """Return the lab's original notebook, or None if only the package is installed, as on Colab."""
    return next((lab.path for lab in LABS if lab.number == SCORES.lab and lab.path.is_file()), None)


def _say_where(unfinished: list) -> None:
    """Print the cell that stopped a Run All and the first open exercise, as links where links work."""
    notebook, last = own_notebook(), CELLS.run[-1] if CELLS.run else None
    said = []
    if last is not None and last.error is not None:
        first = next(iter(last.text.strip().splitlines()), "")
        said.append(f"The last run stopped with an error in the cell {_link(f'`{first}`', notebook, last.id)}.")
    if notebook and unfinished and (heading := first_heading(notebook, [e.id for e in unfinished])):
        said.append(f"Continue with {_link(heading[0], notebook, heading[1])}.")
    if notebook and said:
        from IPython.display import Markdown, display

        display(Markdown(" ".join(said)))
    elif said:
        print(wrap(" ".join(said)))


def _link(text: str, notebook: Path | None, cell: str | None) -> str:
    """Return a Markdown link to the cell with that id, which JupyterLab follows."""
    return f"[{text}]({quote(notebook.name)}#cell-id={cell})" if notebook and cell else text


def first_heading(notebook: Path, exercises: list[str]) -> tuple[str, str] | None:
    """Return the notebook's first heading of one of these exercises, with its cell's id; None if there is none."""
    from labs_helpers.course.own_copies import read  # nbformat, which first aid may find missing

    numbers = "|".join(exercise.partition("/")[2] for exercise in exercises)
    try:
        found = (
            (re.search(rf"^### (Exercise ({numbers}) .*)", c.source, re.MULTILINE), c) for c in read(notebook).cells
        )
        return next(((match[1], cell.id) for match, cell in found if match and cell.cell_type == "markdown"), None)
    except (OSError, ValueError, AttributeError):
        return None
