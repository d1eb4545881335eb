"""Show your points and open exercises in all labs: python -m labs_helpers.course.all_labs

Reads your saved notebooks in my_labs/ and the progress kept there; runs nothing. Prints a table, and writes it with
every exercise to my_labs/progress.html.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Template

from labs_helpers.course.answer_code import code_cells, key_of, predictions_in
from labs_helpers.course.index_page import HEAD
from labs_helpers.course.kept import FILE, MINE, read
from labs_helpers.course.own_copies import read as read_notebook
from labs_helpers.course.own_copies import write_text
from labs_helpers.course.scoreboard import OPEN, RIGHT, points_of
from labs_helpers.course.stub import is_attempted
from labs_helpers.labs import LABS, Lab

EDITED, WRITTEN = "✎", "…"
LEGEND = {RIGHT: "right", EDITED: "edited since its ✓", WRITTEN: "written, but not yet right", OPEN: "open"}
PAGE = Template(
    HEAD
    + """<title>Tile to Cluster: your progress</title>
<h1>Your progress</h1>
<p>{{ when }}. {% for mark, text in legend.items() %}{{ mark }} {{ text }}{{ " · " if not loop.last }}{% endfor %}</p>
{% for row in rows %}
<details{{ " open" if row.begun and row.unfinished }}>
<summary>{{ row.lab.number }} · {{ row.lab.title }}: {{ points(row) }} points{{ row.said }}</summary>
<ul>{% for one in row.exercises %}
<li>{{ one.mark }} {{ one.id }} {{ one.title }}: {{ points(one) }}</li>{% endfor %}</ul>
</details>
{% endfor %}
</html>
""",
    autoescape=True,
)


@dataclass(frozen=True)
class Standing:
    """The state of one exercise in the student's notebook."""

    id: str
    title: str
    most: int
    mark: str

    @property
    def points(self) -> float:
        return points_of(self.most, self.mark)


@dataclass(frozen=True)
class Row:
    """The state of one lab. predictions: (made, total). problem: why the student's notebook cannot be read, or ''."""

    lab: Lab
    exercises: list[Standing]
    predictions: tuple[int, int] = (0, 0)
    begun: bool = False
    problem: str = ""

    @property
    def points(self) -> float:
        return sum(one.points for one in self.exercises)

    @property
    def most(self) -> int:
        return sum(one.most for one in self.exercises)

    @property
    def unfinished(self) -> bool:
        return self.points < self.most

    @property
    def said(self) -> str:
        given, asked = self.predictions
        return self.problem or (f", {given} of {asked} predictions" if self.begun else ", not begun")


def row_of(lab: Lab, mine: Path, kept: dict) -> Row:
    """Return the state of a lab in the folder `mine`. kept: the progress in that folder, from `kept.read`."""
    asked = list(_asked(lab.path))
    names = {name for _, _, _, name in asked}
    own, problem = mine / lab.notebook, ""
    try:
        cells = code_cells(own) if own.is_file() else []
    except (OSError, ValueError) as error:
        cells, problem = [], f", and {own.name} cannot be read: {error}"
    standings = [
        Standing(id, title, most, _mark(id, name, cells, names, kept["exercises"].get(id)))
        for id, title, most, name in asked
    ]
    questions = predictions_in(text for _, text in cells)
    given = sum(questions.values())
    begun = bool(given) or any(one.mark != OPEN for one in standings)
    return Row(lab, standings, (given, len(questions)), begun, problem)


def _asked(shipped: Path) -> Iterator[tuple[str, str, int, str]]:
    """Return (id, title, points, name of the function) for each exercise of a lab's original notebook."""
    title = ""
    for cell in read_notebook(shipped).cells:
        if cell.cell_type == "markdown":
            title = (re.findall(r"^### Exercise \d+ · (.*)$", cell.source, re.MULTILINE) or [title])[-1]
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("grade") and (check := re.match(r"(\w+) = check\.\1\(", cell.source)):
            yield mark["grade_id"].removesuffix("-check").replace("-", "/"), title, int(mark["points"]), check[1]


def _mark(id: str, name: str, cells: list[tuple[str, str]], names: set[str], kept: dict | None) -> str:
    grade_id, marks = id.replace("/", "-"), [mark for mark, _ in cells]
    check = f"{grade_id}-check"
    above = [text for _, text in cells[: marks.index(check) if check in marks else None]]
    if kept:
        return RIGHT if key_of(name, above, names - {name}) == kept["answer"] else EDITED
    try:
        written = any(is_attempted(text, name) for mark, text in cells if mark == grade_id)
    except SyntaxError:
        written = True
    return WRITTEN if written else OPEN


def _points(of: Standing | Row) -> str:
    return f"{of.points:g} of {of.most}"


def main() -> int:
    try:
        kept = read(MINE / FILE)
    except OSError as error:
        print(f"{MINE / FILE} cannot be read: {error.strerror}", file=sys.stderr)
        return 1
    rows = [row_of(lab, MINE, kept) for lab in LABS]
    for row in rows:
        marks = "".join(one.mark for one in row.exercises)
        print(f"{row.lab.number} {row.lab.title:36} {row.points:>4g} / {row.most:<4} {marks:11}{row.said.lstrip(',')}")
    print(f"{'':39} {sum(row.points for row in rows):>4g} / {sum(row.most for row in rows)} points")
    print(" · ".join(f"{mark} {text}" for mark, text in LEGEND.items()))
    if MINE.is_dir():
        page = MINE / "progress.html"
        when = time.strftime("%Y-%m-%d %H:%M")
        write_text(PAGE.render(rows=rows, legend=LEGEND, when=when, points=_points), page)
        print(f"Every exercise: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
