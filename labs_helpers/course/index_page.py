"""The page over all labs that were run: status, time, figures."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from urllib.parse import quote

import nbformat

RESULT = "lab_run"  # in an executed notebook's metadata: how it went

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tile to Cluster: the labs</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
  pre {{ overflow-x: auto; border-left: 3px solid #d55e00; padding-left: 1rem; }}
  img {{ width: 18rem; max-width: 100%; margin: .3rem; background: #fff; border-radius: 4px; }}
</style>
<h1>The labs</h1>
{sections}
</html>
"""


@dataclass
class Result:
    """How one lab went: `error` is empty if it ran through; figures are file names, in the order of the lab."""

    lab: str
    title: str = ""
    seconds: float = 0.0
    error: str = ""
    figures: list[str] = field(default_factory=list)


def write_index(results: list[Result], out: Path) -> Path:
    """Write index.html into `out` for `results` and the labs of earlier runs that have a page; returns its path."""
    known = {result.lab: result for result in [*_earlier(out), *results]}
    sections = "\n".join(_section(known[lab], out) for lab in sorted(known)) or "<p>No lab was run to its end.</p>"
    page = out / "index.html"
    page.write_text(PAGE.format(sections=sections), encoding="utf-8")
    return page


def _earlier(out: Path) -> list[Result]:
    found = []
    for page in out.glob("*.html"):
        notebook = page.with_suffix(".ipynb")
        if notebook.exists() and (result := nbformat.read(notebook, as_version=4).metadata.get(RESULT)):
            found.append(Result(**result))
    return found


def _section(result: Result, out: Path) -> str:
    links = [
        f'<a href="{quote(name)}">{text}</a>'
        for name, text in ((f"{result.lab}.html", "page"), (f"{result.lab}.ipynb", "notebook"))
        if (out / name).exists()
    ]
    status = "✗ failed" if result.error else "✓ ran through"
    lines = [f"<h2>{escape(result.title or result.lab)}</h2>"]
    lines.append(f"<p>{' · '.join([f'{status} in {result.seconds:.0f} s', *links])}</p>")
    if result.error:
        lines.append(f"<pre>{escape(result.error)}</pre>")
    for name in filter(lambda name: (out / "figures" / name).exists(), result.figures):
        source = f"figures/{quote(name)}"
        lines.append(f'<a href="{source}"><img src="{source}" alt="{escape(Path(name).stem)}"></a>')
    return "\n".join(lines)
