"""Generate a notebook's standard cells from the table of labs, the references and pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from labs_helpers.labs import ROOT, Lab

VARIES = "nbval-ignore-output"  # tag of a cell whose output depends on the machine or on the student's progress
_SET_UP = """try:
    from labs_helpers.course import setup
except ModuleNotFoundError:  # on Colab the course is fetched first
    print("Fetching the course from GitHub …", flush=True)
    %pip install -q --no-deps git+{address}
    from labs_helpers.course import setup
setup("{number}")"""
_HINTS = "\n".join(
    f"<details><summary>Hint {n}: {kind}</summary>TODO</details>"
    for n, kind in enumerate(("a question", "where to look", "the idea"), start=1)
)


def set_up(lab: Lab) -> str:
    return _SET_UP.format(address=_address(), number=lab.number)


def badge(lab: Lab) -> str:
    colab = "https://colab.research.google.com"
    page = _address().replace("https://github.com", f"{colab}/github")
    return f"[![Open in Colab]({colab}/assets/colab-badge.svg)]({page}/blob/main/notebooks/{lab.notebook})"


def check_source(exercise) -> str:
    name = exercise.trial.__name__
    return f"{name} = check.{name}({name})"


def number_of(exercise) -> str:
    """Return the number of an exercise: '3' for '02/3'."""
    return exercise.id.partition("/")[2]


def grade_id(exercise) -> str:
    return exercise.id.replace("/", "-")


def stub_mark(exercise) -> dict:
    """Return nbgrader's metadata for an exercise cell."""
    return {**_mark(grade_id(exercise)), "grade": False, "locked": False, "solution": True}


def check_mark(exercise) -> dict:
    """Return nbgrader's metadata for a check cell."""
    mark = _mark(f"{grade_id(exercise)}-check")
    return {**mark, "grade": True, "locked": True, "solution": False, "points": exercise.points}


def _mark(name: str) -> dict:
    return {"grade_id": name, "schema_version": 3, "task": False}


def with_heading(exercise, source: str) -> str:
    """Return `source` with the exercise's heading, and its minutes and points below. ValueError if it has no heading.

    A heading may be shorter than the title ('Transfer' for 'transfer: SiLU(A·B + bias)'); any other heading is
    replaced.
    """
    number, title = number_of(exercise), exercise.title
    found = re.search(rf"^### Exercise {number} · (.+)(?:(\n+)\*\d+ minutes · \d+ points\*$)?", source, re.MULTILINE)
    if not found:
        raise ValueError(f"no heading `### Exercise {number} · …` in the cell before its exercise cell")
    own = found[1] if title.lower().startswith(found[1].lower()) else _capital(title)
    below = f"*{exercise.minutes} minutes · {exercise.points} points*"
    gap = found[2] or "\n\n"
    return f"{source[: found.start()]}### Exercise {number} · {own}{gap}{below}{source[found.end() :]}"


def new_cells(exercise) -> list[NotebookNode]:
    """Return the heading, exercise, check, hints and reveal of a new exercise, with TODOs to fill in. A transfer
    exercise has no reveal."""
    heading = (
        f"### Exercise {number_of(exercise)} · {_capital(exercise.title)}\n\nTODO: what is asked, and what is given."
    )
    made = [
        new_markdown_cell(with_heading(exercise, heading)),
        new_code_cell(metadata={"nbgrader": stub_mark(exercise)}),
        new_code_cell(metadata={"nbgrader": check_mark(exercise)}),
        new_markdown_cell(_HINTS),
    ]
    if exercise.reference is not None:
        made.append(new_code_cell(f"reveal(exercises.{exercise.trial.__name__})", metadata={"tags": [VARIES]}))
    return made


def _capital(title: str) -> str:
    return title[0].upper() + title[1:]


def _address() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
