"""Run the labs headless: python -m labs_helpers.course.run_labs [02 | notebook ...] --out build

Executes a copy of each notebook in a separate folder, on this machine's hardware. For each lab, OUT gets the executed
notebook, an HTML page, and the figures as SVG under figures/; index.html covers all labs in OUT, including earlier
runs. If a lab fails, its cell and the end of the error are printed; the other labs still run, and the exit status is 1.
"""

import argparse
import os
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbformat.notebooknode import NotebookNode
from tqdm import tqdm

from labs_helpers.course.execute import execute
from labs_helpers.course.index_page import RESULT, Result, write_index
from labs_helpers.draw.alternatives import with_alternatives
from labs_helpers.labs import LABS, lab

# Table rows do not wrap, and the table scrolls: on a phone, numbers would break in the middle.
TABLES_SCROLL = """<style>
.jp-OutputArea-output pre { white-space: pre; word-break: normal; overflow-x: auto; }
.jp-RenderedHTMLCommon table { display: block; max-width: 100%; overflow-x: auto; }
.jp-RenderedHTML th, .jp-RenderedHTML td { white-space: nowrap; }
</style>
"""


def headings(notebook: NotebookNode) -> list[str]:
    """Return, for each cell, the nearest Markdown heading in or above it ('' before the first)."""
    found, current = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            titles = re.findall(r"^#{1,6}\s+(.+?)\s*#*$", cell.source, re.MULTILINE)
            current = titles[-1] if titles else current
        found.append(current)
    return found


class Progress:
    """A line such as 'lab 02 · cell 14/41 · K loop', which is rewritten on a terminal; elsewhere nothing is printed."""

    def __init__(self, lab: str, notebook: NotebookNode):
        self.name = f"lab {lab.partition('_')[0]}"
        self.headings, self.count = headings(notebook), len(notebook.cells)
        look = {"bar_format": "{desc} {bar:20} {elapsed}", "leave": False, "dynamic_ncols": True}
        self.bar = tqdm(total=self.count, disable=None, file=sys.stdout, **look)
        self.where = self.name

    def __call__(self, cell: NotebookNode, cell_index: int) -> None:
        if cell.cell_type != "code":
            return
        parts = [self.name, f"cell {cell_index + 1}/{self.count}", self.headings[cell_index]]
        self.where = " · ".join(part for part in parts if part)
        if not self.bar.disable:
            self.bar.set_description_str(self.where, refresh=False)
            self.bar.update(cell_index - self.bar.n)
            self.bar.refresh()


def run_lab(path: Path, out: Path, cell_timeout: float) -> Result:
    """Execute the notebook at `path`, and write the executed notebook, including the error of a failed cell, to `out`.

    `cell_timeout` is in seconds.
    """
    result, began = Result(path.stem), time.monotonic()
    for old in (out / path.name, out / f"{path.stem}.html"):
        old.unlink(missing_ok=True)
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError) as error:
        result.error = f"{path} is not a notebook: {error}"
        return result
    before = _figures(out)
    result.title = next(filter(None, headings(notebook)), "")
    progress = Progress(path.stem, notebook)
    try:
        with progress.bar:
            if error := execute(notebook, cell_timeout, on_cell=progress):
                result.error = f"{progress.where}\n{error}"
        result.seconds = time.monotonic() - began
        result.figures = [name for when, name in sorted(_figures(out) - before)]
        notebook.metadata[RESULT] = asdict(result)
    finally:
        nbformat.write(notebook, out / path.name)
    (out / f"{path.stem}.html").write_text(to_html(notebook, path.stem), encoding="utf-8")
    return result


def to_html(notebook: NotebookNode, title: str) -> str:
    """Write an HTML page that needs no network, except to render formulas, which otherwise stay LaTeX."""
    exporter = HTMLExporter(embed_images=True, require_js_url="")
    page, _ = exporter.from_notebook_node(with_alternatives(notebook), resources={"metadata": {"name": title}})
    return page.replace("</head>", f"{TABLES_SCROLL}</head>", 1)


def _figures(out: Path) -> set[tuple[int, str]]:
    """Return (time of writing, name) of each figure."""
    return {(file.stat().st_mtime_ns, file.name) for file in (out / "figures").glob("*.svg")}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="run_labs", description="Work through the labs headless.")
    parser.add_argument("notebooks", nargs="*", metavar="LAB", help="02, or a notebook; default: every lab")
    parser.add_argument("--out", type=Path, default=Path("build"), help="default: build")
    parser.add_argument("--cell-timeout", type=float, default=600, metavar="SECONDS", help="default: 600")
    options = parser.parse_args(arguments)
    try:
        notebooks = [lab(name).path if name.isdigit() else Path(name) for name in options.notebooks]
    except ValueError as error:
        parser.error(str(error))
    notebooks = notebooks or [one.path for one in LABS]
    if missing := [str(path) for path in notebooks if not path.is_file()]:
        parser.error(f"no such notebook: {', '.join(missing)}")

    out = options.out.resolve()
    if out in {path.resolve().parent for path in notebooks}:
        parser.error(f"--out {options.out} contains the source notebooks; use another folder")
    (out / "figures").mkdir(parents=True, exist_ok=True)
    os.environ["LABS_FIGURES"] = str(out / "figures")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of this environment, not one of the user's own
    results = []
    try:
        for path in notebooks:
            results.append(run_lab(path.resolve(), out, options.cell_timeout))
            print(_line(results[-1]), flush=True)
    except KeyboardInterrupt:
        print("\nInterrupted.", flush=True)
        return 130
    finally:
        print(f"Index: {write_index(results, out)}")
    return 1 if any(result.error for result in results) else 0


def _line(result: Result) -> str:
    if result.error:
        return f"✗ {result.lab}  {result.seconds:.0f} s\n  " + result.error.replace("\n", "\n  ")
    count = len(result.figures)
    return f"✓ {result.lab}  {result.seconds:.0f} s, {count} figure{'' if count == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
