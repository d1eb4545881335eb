"""The index page of the labs that were run: status, time and figures."""

from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jinja2 import Template

RESULT = "lab_run"  # key in an executed notebook's metadata: its outcome

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  pre { overflow-x: auto; border-left: 3px solid #d55e00; padding-left: 1rem; }
  img { width: 18rem; max-width: 100%; margin: .3rem; background: #fff; border-radius: 4px; }
</style>
"""
PAGE = Template(
    HEAD
    + """<title>Tile to Cluster: the labs</title>
<h1>The labs</h1>
{% for result in results %}
<h2>{{ result.title or result.lab }}</h2>
<p>{{ "✗ failed" if result.error else "✓ ran through" }} in {{ "%.0f" | format(result.seconds) }} s
  {%- for suffix, text in [("html", "page"), ("ipynb", "notebook")] if exists(result.lab ~ "." ~ suffix) %}
 · <a href="{{ result.lab | urlencode }}.{{ suffix }}">{{ text }}</a>
  {%- endfor %}</p>
  {% if result.error %}
<pre>{{ result.error }}</pre>
  {% endif %}
  {% for figure in result.figures if exists("figures/" ~ figure) %}
    {% set source = "figures/" ~ figure | urlencode %}
<a href="{{ source }}"><img src="{{ source }}" alt="{{ figure.removesuffix(".svg") }}"></a>
  {% endfor %}
{% else %}
<p>No lab was run to its end.</p>
{% endfor %}
</html>
""",
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass
class Result:
    """The outcome of one lab: `error` is empty if it ran to the end; figures are file names in the order of the lab."""

    lab: str
    title: str = ""
    seconds: float = 0.0
    error: str = ""
    figures: list[str] = field(default_factory=list)


def write_index(results: list[Result], out: Path) -> Path:
    """Write index.html into `out` for `results` and the labs of earlier runs that have a page; returns its path."""
    known = {result.lab: result for result in [*_earlier(out), *results]}
    shown = [known[lab] for lab in sorted(known)]
    page = out / "index.html"
    page.write_text(PAGE.render(results=shown, exists=lambda name: (out / name).exists()), encoding="utf-8")
    return page


def _earlier(out: Path) -> list[Result]:
    found = []
    for page in out.glob("*.html"):
        notebook = page.with_suffix(".ipynb")
        if notebook.exists() and (result := nbformat.read(notebook, as_version=4).metadata.get(RESULT)):
            found.append(Result(**result))
    return found
