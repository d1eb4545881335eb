"""Find what labs need of the course by reading imports and names: packages, recorded measurements and MPI programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs_helpers.labs import LABS, ROOT, Lab

HOUSE = ROOT / "labs_helpers"
FOUNDATIONS = ("course", "practice", "measure", "compile", "draw", "launch")  # every lab needs them
OFFICE = "grading"  # students only get what checks their own notebook
NOT_PYTHON = re.compile(r"^(\s*)[%!].*", re.MULTILINE)  # lines of a cell that only IPython understands
NO_TOPIC = (*FOUNDATIONS, OFFICE, "labs.py", "moved.py", "public.py", "__init__.py")
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints"}
HIDDEN = ("hidden", "hidden.py")  # a lab's inputs that only the grader uses


@dataclass(frozen=True)
class Needs:
    """Paths below the course's folder, sorted. files: of labs_helpers."""

    files: list[Path]
    results: list[Path]
    scripts: list[Path]


def needs_of(labs: Iterable[Lab], cells: Iterable[str]) -> Needs:
    """Return what labs need. cells: the sources of the labs' code cells. These labs and the topics they need come
    whole; of other labs only the imported modules come."""
    rooms = [HOUSE / name for name in FOUNDATIONS] + [_package(lab) for lab in labs]
    alone = [HOUSE / name for name in ("__init__.py", "labs.py", f"{OFFICE}/__init__.py", f"{OFFICE}/at_home.py")]
    waiting = [*alone, *(file for room in rooms for file in _files(room))]
    for cell in cells:
        waiting += _read(NOT_PYTHON.sub(r"\1pass", cell))[0]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += (one for one in _topic(file) if one not in found)
            if file.suffix == ".py":
                waiting += _read_file(file)[0]
    topics = {file for file in found if _room(file) not in NO_TOPIC}
    words = {word for file in topics if file.suffix == ".py" for word in _read_file(file)[1]}
    records = [path for path in sorted((ROOT / "results").iterdir()) if path.name.partition(".")[0] in words]
    return Needs(
        sorted(file.relative_to(ROOT) for file in found),
        [file.relative_to(ROOT) for path in records for file in _files(path) if file.suffix != ".lock"],
        [path.relative_to(ROOT) for path in _scripts({_room(file) for file in topics})],
    )


def _topic(file: Path) -> list[Path]:
    """Return what accompanies a file of a topic's library: the rest of that library."""
    if _room(file) in NO_TOPIC or _in_a_lab(file):
        return []
    return _library(_room(file))


@cache
def _library(topic: str) -> list[Path]:
    return [file for file in _files(HOUSE / topic) if not _in_a_lab(file)]


def _scripts(rooms: set[str]) -> list[Path]:
    """Return the MPI programs whose topics are all included; none if no program is about these topics."""
    programs = sorted((ROOT / "mpi_scripts").glob("*.py"))
    about = {path: {_room(file) for file in _read_file(path)[0]} - {*FOUNDATIONS} for path in programs}
    fitting = [path for path in programs if about[path] <= rooms]
    return fitting if any(about[path] for path in fitting) else []


@cache
def _read_file(path: Path) -> tuple[list[Path], set[str]]:
    return _read(path.read_text())


def _read(source: str) -> tuple[list[Path], set[str]]:
    """Return (the files of labs_helpers that a module imports, each with the __init__.py files above it; the words
    that occur in it as complete strings, or before the first '.' or '/' of one)."""
    names, words = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(re.split(r"[./]", node.value, maxsplit=1)[0])
    house = [name.split(".")[1:] for name in sorted(names) if name.startswith("labs_helpers.")]
    return [file for parts in house for file in _on_the_way(parts)], words


def _on_the_way(parts: list[str]) -> Iterator[Path]:
    for length in range(1, len(parts) + 1):
        path = HOUSE.joinpath(*parts[:length])
        if (path / "__init__.py").is_file():
            yield path / "__init__.py"
        elif path.with_suffix(".py").is_file():
            yield path.with_suffix(".py")
            return


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.is_file() and not _left_out(file)]


def _room(file: Path) -> str:
    """Return a file's package or module in labs_helpers: 'gemm' for labs_helpers/gemm/plan.py, 'labs.py' for
    labs_helpers/labs.py."""
    return file.relative_to(HOUSE).parts[0]


def _left_out(file: Path) -> bool:
    of_lab = (file.relative_to(_package(lab)).parts[0] for lab in LABS if file.is_relative_to(_package(lab)))
    return bool(LEFT_OUT & {*file.parts}) or next(of_lab, "") in HIDDEN


def _in_a_lab(file: Path) -> bool:
    return any(file.is_relative_to(_package(lab)) for lab in LABS)


def _package(lab: Lab) -> Path:
    return ROOT.joinpath(*lab.package.split("."))
