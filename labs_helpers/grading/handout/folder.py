"""Build a folder and a zip for students: python -m labs_helpers.grading.handout 02 04 [--no-references] [--out
build/handout]

They hold the labs, the modules that these import, the recorded measurements that they draw, the list of packages, and a
README that says how to install, open, check and submit. They leave out tests/, which contains the planted bugs and the
answers of the transfer exercises. The command prints both paths.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from labs_helpers.grading.handout import student_pages
from labs_helpers.grading.handout.needs import needs_of
from labs_helpers.grading.handout.withhold import withhold
from labs_helpers.labs import LABS, ROOT, SOURCES, Lab, lab

AS_THEY_ARE = ("pyproject.toml", "setup.py", "constraints.txt", "environment.yml", "LICENSE", ".gitignore")
DEVCONTAINER = ".devcontainer/devcontainer.json"  # the way in on macOS


def make_handout(labs: list[Lab], out: Path, references: bool = True) -> tuple[Path, Path]:
    """Write out/tile-to-cluster-02-04 (for all labs: tile-to-cluster) and its zip, and return both. An older hand-out
    there is replaced as a whole.

    Raises FileExistsError if that folder holds something that no hand-out contains, such as somebody's my_labs/.
    ValueError names the labs that cannot be handed out without references.
    """
    name = "-".join(["tile-to-cluster", *(one.number for one in labs if len(labs) < len(LABS))])
    folder = out / name
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".handout-", dir=out) as scratch:
        new = Path(scratch, name)
        _write(labs, new, references)
        packed = shutil.make_archive(str(Path(scratch, "packed")), "zip", scratch, name)
        if folder.exists():
            if others := {path.name for path in folder.iterdir()} - {path.name for path in new.iterdir()}:
                held = f"{folder} holds {', '.join(sorted(others))}, which no hand-out has"
                raise FileExistsError(f"{held}: move that away, or name another folder with OUT=")
            folder.rename(Path(scratch, "old"))
        new.rename(folder)
        return folder, Path(packed).replace(out / f"{name}.zip")


def _write(labs: list[Lab], folder: Path, references: bool) -> None:
    notebooks = {one.number: json.loads(one.path.read_text()) for one in labs}
    code = [cell for book in notebooks.values() for cell in book["cells"] if cell["cell_type"] == "code"]
    needs = needs_of(labs, ["".join(cell["source"]) for cell in code])
    for path in [*needs.files, *needs.results, *needs.scripts, *map(Path, AS_THEY_ARE), Path(DEVCONTAINER)]:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    if not references:
        withhold(folder, labs)
    (folder / "results").mkdir(exist_ok=True)  # a package's folder, also where nothing was recorded
    points = {number: sum(map(_points, book["cells"])) for number, book in notebooks.items()}
    (folder / "README.md").write_text(student_pages.readme(labs, points, references))
    pages = [cell for book in notebooks.values() for cell in book["cells"] if cell["cell_type"] == "markdown"]
    lessons = "\n".join("".join(cell["source"]) for cell in pages)
    (folder / "Makefile").write_text(student_pages.makefile((ROOT / "Makefile").read_text(), lessons))
    table = folder / "labs_helpers/labs.py"
    table.write_text(student_pages.table_of(table.read_text(), labs))
    for cell in pages:
        cell["source"] = _with_links("".join(cell["source"]), folder).splitlines(keepends=True)
    for cell in code:  # the outputs would give every prediction away
        cell["outputs"], cell["execution_count"] = [], None
    (folder / "notebooks").mkdir()
    for one in labs:
        text = json.dumps(notebooks[one.number], indent=1, ensure_ascii=False)
        (folder / "notebooks" / one.notebook).write_text(text + "\n")


def _with_links(text: str, folder: Path) -> str:
    """A cell's text, whose links to files that are not handed out lead to the course's own."""

    def target(link: re.Match[str]) -> str:
        return link[0] if (folder / link[2]).is_file() else f"{link[1]}{SOURCES}/{link[2]}"

    return re.sub(r"""(\]\(|href=")\.\./([\w./-]+)""", target, text)


def _points(cell: dict[str, Any]) -> int:
    return int(cell["metadata"].get("nbgrader", {}).get("points", 0))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="handout", description="Make a folder and a zip of labs for students.")
    parser.add_argument("labs", nargs="*", metavar="LAB", help="02; default: every lab")
    parser.add_argument("--out", type=Path, default=Path("build/handout"), help="where to; default: build/handout")
    parser.add_argument("--no-references", action="store_true", help="what needs an open exercise is then skipped")
    given = parser.parse_args(arguments)
    try:
        chosen = [one for one in LABS if one in [lab(number) for number in given.labs]] or list(LABS)
    except ValueError as error:
        parser.error(str(error))
    try:
        folder, packed = make_handout(chosen, given.out, references=not given.no_references)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder}/\n{packed}  ({packed.stat().st_size / 2**20:.1f} MB)")
    return 0
