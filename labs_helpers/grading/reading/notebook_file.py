"""Read a file from an inbox as a list of cells, or say why it is none. Nothing in it is run or trusted."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_BYTES = 20 * 2**20  # a lab with all its figures has 0.5 MB
MOST_CELLS = 2_000


class Unreadable(ValueError):
    """A file cannot be graded; the message tells its author why."""


@dataclass(frozen=True)
class Cell:
    """A cell. source: with line ends of '\n'. grade_id: from the cell's nbgrader metadata, or ''."""

    code: bool
    source: str
    grade_id: str = ""
    tags: tuple[str, ...] = field(default=())


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of a notebook in nbformat 3 or 4, in order. Unreadable says what else the file is."""
    text = _text(path)
    if not text.strip():
        raise Unreadable("the file is empty")
    try:
        content = json.loads(text)
    except RecursionError:
        raise Unreadable("the file is nested too deeply to be a notebook") from None
    except ValueError as error:
        raise Unreadable(f"the file is not JSON, as a notebook is: {error}") from None
    cells = [_cell(item) for item in _items(content)]
    if not any(cell.code for cell in cells):
        raise Unreadable("the notebook has no code cells")
    return cells


def _text(path: Path) -> str:
    try:
        # A link could name somebody else's file, and a pipe would never end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        what = "the file is a link" if path.is_symlink() else f"the file cannot be read: {error.strerror}"
        raise Unreadable(what) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable("this is not a file")
    with open(descriptor, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Unreadable(f"the file has more than {MOST_BYTES >> 20} MB; clear the outputs and hand it in again")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("the file is not UTF-8 text, as a notebook is") from None


def _items(content: Any) -> list[dict[str, Any]]:
    """Return the cells in the file's own form."""
    if not isinstance(content, dict):
        raise Unreadable("the file is JSON, but not a notebook")
    items = content.get("cells")
    if items is None and isinstance(content.get("worksheets"), list):  # nbformat 3
        sheets = [sheet for sheet in content["worksheets"] if isinstance(sheet, dict)]
        items = [item for sheet in sheets for item in _list(sheet.get("cells"))]
    if not isinstance(items, list):
        raise Unreadable("the file is JSON, but not a notebook: it has no cells")
    if len(items) > MOST_CELLS:
        raise Unreadable(f"the notebook has {len(items):,} cells; more than {MOST_CELLS:,} are not read")
    return [item for item in items if isinstance(item, dict)]


def _cell(item: dict[str, Any]) -> Cell:
    source = item.get("source", item.get("input", ""))  # nbformat 4, 3
    lines = [line for line in source if isinstance(line, str)] if isinstance(source, list) else [source]
    text = "".join(lines) if all(isinstance(line, str) for line in lines) else ""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    mark = metadata.get("nbgrader")
    grade_id = mark.get("grade_id") if isinstance(mark, dict) else ""
    return Cell(
        code=item.get("cell_type") == "code",
        source=text.replace("\r\n", "\n").replace("\r", "\n"),
        grade_id=grade_id if isinstance(grade_id, str) else "",
        tags=tuple(tag for tag in _list(metadata.get("tags")) if isinstance(tag, str)),
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
