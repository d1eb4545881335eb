"""Bring notebooks and README in line with table and references: python -m labs_helpers.authoring.sync [--check] [02 …]

Written anew are the __init__.py of a lab's exercises and checks; a notebook's first heading, its badge, its minutes and
its set-up cell; of each exercise its minutes and points, its stub, its check, and the metadata of both; in README.md
the table of labs, and its picture. Prose, outputs, execution counts and
cell ids stay. An exercise without cells gets them below its heading, or with one behind the exercise before it; what
is to be written there (question, hints) stands as TODO.

Prints a line for each change, and with --check makes none. The exit status is 1 where a cell is missing or doubled,
and with --check where anything would change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from nbformat.notebooknode import NotebookNode, from_dict

from labs_helpers.authoring import cells, readme, readme_picture
from labs_helpers.authoring.exports import export_files
from labs_helpers.authoring.places import insert, only
from labs_helpers.authoring.references import solved_cell
from labs_helpers.course import own_copies
from labs_helpers.course.reset import grade_id
from labs_helpers.course.stub import stub_of
from labs_helpers.labs import LABS, ROOT, Lab, lab


def sync(lab: Lab, notebook: NotebookNode) -> list[str]:
    """Changes `notebook` in place and returns a line for each change. ValueError: all that is in its way."""
    try:
        exercises = lab.exercises()
    except (AttributeError, ImportError, SyntaxError) as error:
        raise ValueError(f"{lab.package}.checks is not to be imported: {type(error).__name__}: {error}") from error
    if moved := _renumbered(exercises, notebook):
        raise ValueError("\n".join(moved))
    changes, faults = [], _unknown(exercises, notebook)
    for part in [_top(lab, notebook), *(_exercise(lab, e, exercises[:i], notebook) for i, e in enumerate(exercises))]:
        try:
            changes += part
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ValueError("\n".join(faults))
    return changes


def _top(lab: Lab, notebook: NotebookNode) -> Iterator[str]:
    first = notebook.cells[0]
    lines = first.source.split("\n")
    badges = [i for i, line in enumerate(lines) if line.startswith("[![Open in Colab]")]
    if not lines[0].startswith("# ") or len(badges) != 1:
        raise ValueError("the first cell has to begin with `# number · title`, and to have one line with Colab's badge")
    lines[0], lines[badges[0]] = f"# {lab.number} · {lab.title}", cells.badge(lab)
    text = re.sub(r"^About \d+ minutes\b", f"About {lab.minutes} minutes", "\n".join(lines), flags=re.MULTILINE)
    yield from _write(first, text, "heading, badge and minutes")
    set_up = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if set_up is None or "setup(" not in set_up.source:
        raise ValueError("the first code cell has to be the set-up cell, which calls `setup`")
    yield from _write(set_up, cells.set_up(lab), "set-up cell", tags=[cells.VARIES])


def _exercise(lab: Lab, exercise, earlier: list, notebook: NotebookNode) -> Iterator[str]:
    id = cells.grade_id(exercise)
    stub, check = only(id, notebook), only(f"{id}-check", notebook)
    if stub is check is None:
        stub, check = insert(exercise, earlier, notebook)
        yield f"{exercise.id}: new cells; write what stands as TODO, then `make refresh LABS={lab.number}`"
    if stub is None:
        raise ValueError(f"{exercise.id}: its exercise cell (grade_id {id}) is missing; it stands before its check")
    if check is None:
        raise ValueError(f"{exercise.id}: its check cell (grade_id {id}-check) is missing; it stands after {id}")
    heading = notebook.cells[notebook.cells.index(stub) - 1]
    try:
        headed, solution = cells.with_heading(exercise, heading.source), stub_of(solved_cell(lab, exercise))
    except ValueError as error:
        raise ValueError(f"{exercise.id}: {error}") from error
    yield from _write(heading, headed, f"{exercise.id}: heading, minutes and points")
    yield from _write(stub, solution, f"{exercise.id}: stub", mark=cells.stub_mark(exercise))
    source, mark = cells.check_source(exercise), cells.check_mark(exercise)
    yield from _write(check, source, f"{exercise.id}: check cell", tags=[cells.VARIES], mark=mark)


def _unknown(exercises: list, notebook: NotebookNode) -> list[str]:
    known = {id for e in exercises for id in (cells.grade_id(e), f"{cells.grade_id(e)}-check")}
    left = [id for id in map(grade_id, notebook.cells) if id and id not in known]
    return [f"no exercise is registered for the cell {id}: remove it, or register its check" for id in left]


def _renumbered(exercises: list, notebook: NotebookNode) -> list[str]:
    """Check cells that still name the function of another exercise: its text and hints stand round them."""
    own = {cells.check_source(e): e for e in exercises}
    return [
        f"the cell {cells.grade_id(e)}-check holds the check of what is exercise {other.id} now: give the cells of the "
        "exercises that moved (and their headings) their new numbers first"
        for e in exercises
        if (cell := only(f"{cells.grade_id(e)}-check", notebook))
        and (other := own.get(cell.source.strip(), e)) is not e
    ]


def _write(cell: NotebookNode, source: str, what: str, tags=None, mark=None) -> Iterator[str]:
    """Source, and of a code cell the tags and nbgrader's metadata, a list and a dict or none; yields `what` if that
    changes anything."""
    metadata = dict(cell.metadata)
    if cell.cell_type == "code":
        own = {"tags": tags, "nbgrader": mark}
        metadata = {k: v for k, v in {**metadata, **own}.items() if k not in own or v}
    if (cell.source, cell.metadata) != (source, metadata):
        cell.source, cell.metadata = source, from_dict(metadata)
        yield what


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="sync", description="Bring notebooks and README in line with the table.")
    parser.add_argument("labs", nargs="*", metavar="LAB", help="02; default: every lab")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where something would change")
    options = parser.parse_args(arguments)
    try:
        chosen = [lab(number) for number in options.labs] or LABS
    except ValueError as error:
        parser.error(str(error))
    jobs = {one.package: lambda one=one: _sync_exports(one, options.check) for one in chosen}
    jobs |= {f"notebooks/{one.notebook}": lambda one=one: _sync_notebook(one, options.check) for one in chosen}
    jobs["README.md"] = lambda: _sync_readme(options.check)
    changed = failed = False
    for name, job in jobs.items():
        try:
            for line in job():
                changed = True
                print(f"{name}: {line}")
        except (OSError, ValueError) as error:
            failed = True
            print("\n".join(f"✗ {name}: {line}" for line in str(error).splitlines()), file=sys.stderr)
    if changed and options.check:
        print("Nothing of this was changed: that is for `make sync`.")
    elif not changed and not failed:
        print("Nothing to change.")
    return int(failed or (options.check and changed))


def _sync_notebook(lab: Lab, check: bool) -> list[str]:
    notebook = own_copies.read(lab.path)
    changes = sync(lab, notebook)
    if changes and not check:
        own_copies.write(notebook, lab.path)
    return changes


def _sync_exports(lab: Lab, check: bool) -> list[str]:
    changed = {path: text for path, text in export_files(lab).items() if not path.exists() or path.read_text() != text}
    for path, text in changed.items():
        if not check:
            path.write_text(text)
    return [str(path.relative_to(ROOT)) for path in changed]


def _sync_readme(check: bool) -> list[str]:
    path = ROOT / "README.md"
    old = path.read_text()
    new = readme.with_table(old, LABS)
    if new != old and not check:
        path.write_text(new)
    return ["the table of labs"] * (new != old) + readme_picture.write(check)


if __name__ == "__main__":
    sys.exit(main())
