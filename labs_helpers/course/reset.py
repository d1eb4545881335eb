"""Restore the stub and the check of one exercise in a student's copy of a lab, and keep the replaced cells."""

from copy import deepcopy
from datetime import datetime
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_raw_cell

from labs_helpers.course.own_copies import clear, labs, place, read, write
from labs_helpers.labs import retired


def reset(which: str, shipped: Path, mine: Path) -> str:
    """Restore the stub of exercise `which` ('02/3': exercise 3 of lab 02) in the copy in `mine`.

    The old cell stays below the stub, as a raw cell. The check is restored too if it was deleted or changed, and is
    cleared. Returns a text that says what was done and what to do next. Raises ValueError, which lists the
    alternatives, for an unknown lab or exercise.
    """
    lab, original, stub = _find(which, shipped)
    own = mine / lab.name
    if not own.exists():
        place(lab, own)
        return f"{own.name} is a new copy with all stubs"
    notebook = read(own)
    own_code = put_back(stub, notebook, original)
    checks = [put_back(cell, notebook, original) for cell in original.cells if grade_id(cell) == _check_of(stub)]
    if not own_code and not any(checks):
        return f"Exercise {which} in {own} is already the stub"
    write(notebook, own)
    if not own_code:
        return f"Restored the check of exercise {which} in {own}. If the lab is open in JupyterLab, reload it from disk"
    return (
        f"Exercise {which} in {own} is the stub again; your old cell is kept below it. If the lab is open in "
        "JupyterLab: File, Reload Notebook from Disk, then run the stub's cell and the check below it; until "
        "then the running notebook still has your old function"
    )


def _find(which: str, shipped: Path) -> tuple[Path, NotebookNode, NotebookNode]:
    number, _, exercise = which.partition("/")
    numbers = {lab.name[:2]: lab for lab in labs(shipped)}
    lab = numbers.get(number.zfill(2))
    if lab is None:
        raise ValueError(f"RESET={which}: there is no lab {number!r}. The labs are: {', '.join(numbers)}")
    original = read(lab)
    stubs = {grade_id(cell): cell for cell in original.cells if is_exercise(cell)}
    stub = stubs.get(f"{lab.name[:2]}-{exercise}")
    if stub is None and (gone := retired(f"{lab.name[:2]}/{exercise}")):
        raise ValueError(f"RESET={which}: {gone[0]}")
    if stub is None:
        known = ", ".join(grade.replace("-", "/", 1) for grade in stubs) or "none"
        raise ValueError(f"RESET={which}: {lab.name} has no such exercise. Its exercises are: {known}")
    return lab, original, stub


def is_exercise(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("solution"))


def grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _check_of(stub: NotebookNode) -> str:
    return f"{grade_id(stub)}-check"


def put_back(stub: NotebookNode, notebook: NotebookNode, original: NotebookNode) -> bool:
    """Make `stub`, a cell of `original`, the only cell of its name in `notebook`; return False if it already is.

    stub: an exercise's cell, or a check's. A deleted cell returns to its old position.
    """
    cells = notebook.cells
    places = [i for i, cell in enumerate(cells) if cell.cell_type == "code" and grade_id(cell) == grade_id(stub)]
    if [cells[i].source.strip() for i in places] == [stub.source.strip()]:
        return False
    now = datetime.now().strftime("%Y-%m-%d %H:%M")
    for i in places:
        cells[i] = new_raw_cell(f"# What stood here before it was put back, {now}\n{cells[i].source}")
    fresh = deepcopy(stub)
    clear(fresh, *(cell for cell in cells if grade_id(cell) == _check_of(stub)))
    cells.insert(places[0] if places else _place_of(stub, notebook, original), fresh)
    return True


def _place_of(stub: NotebookNode, notebook: NotebookNode, original: NotebookNode) -> int:
    """Return the position after the nearest cell before `stub` that `notebook` still has; otherwise its end."""
    places = {cell.id: i for i, cell in enumerate(notebook.cells)}
    ids = [cell.id for cell in original.cells]
    before = [places[id] for id in ids[: ids.index(stub.id)] if id in places]
    return before[-1] + 1 if before else len(notebook.cells)
