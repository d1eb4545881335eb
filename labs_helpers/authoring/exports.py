"""Write a lab's exercises/__init__.py and checks/__init__.py from the files beside them."""

from __future__ import annotations

import re
from pathlib import Path

from labs_helpers.labs import ROOT, Lab

WIDTH = 120  # characters per line, as in pyproject.toml


def export_files(lab: Lab) -> dict[Path, str]:
    """Return path → text of both files of `lab`. Each exN_name.py exports its function `name`."""
    folder = ROOT / lab.package.replace(".", "/")
    return {folder / room / "__init__.py": _text(folder / room, lab) for room in ("exercises", "checks")}


def _text(folder: Path, lab: Lab) -> str:
    init = folder / "__init__.py"
    docstring = re.match(r'""".*?"""\n', init.read_text() if init.exists() else "", re.DOTALL)
    head = docstring[0] if docstring else f'"""The {folder.name} of lab {lab.number}, one file each."""\n'
    imported = [
        (f"{lab.package}.{folder.name}.{file.stem}", file.stem.partition("_")[2]) for file in folder.glob("ex*_*.py")
    ]
    if folder.name == "checks":
        imported.append(("labs_helpers.course.lab_summary", "summary"))
    names, gone = _listed(sorted(name for _, name in imported)), ""
    if lab.retired:
        imported.append(("labs_helpers.course.retired", "retired_in"))
        gone = f'__getattr__ = retired_in("{lab.number}")\n'
    lines = [_import(module, name) for module, name in sorted(imported, key=_naturally)]
    return f"{head}\n" + "\n".join(lines) + f"\n\n{names}\n{gone}"


def _import(module: str, name: str) -> str:
    """Return the import statement, in the layout of `ruff format`."""
    line = f"from {module} import {name}"
    return line if len(line) <= WIDTH else f"from {module} import (\n    {name},\n)"


def _naturally(pair: tuple[str, str]) -> list:
    """Sort ex10 after ex9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", pair[0])]


def _listed(names: list[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    line = f"__all__ = [{', '.join(quoted)}]"
    if len(line) <= WIDTH:
        return line
    return "__all__ = [\n" + "".join(f"    {name},\n" for name in quoted) + "]"
