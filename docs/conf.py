"""Sphinx's settings; docs/build.py writes the pages."""

import inspect
import json
import re
from pathlib import Path

from docutils import nodes

project = "Tile to Cluster"
copyright = "the authors of Tile to Cluster"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = project
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
nb_execution_mode = "off"
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None)
]  # the static figure is shown instead
myst_heading_anchors = 4
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88


def as_rst(app, what, name, obj, options, lines):
    """Convert a docstring to reStructuredText: it is plain text with `code` in single backticks, and indented parts
    are code."""
    text = inspect.cleandoc("\n".join(lines))
    text = re.sub(r"([*|_])", r"\\\1", text)
    text = re.sub(r"`([^`\n]+)`", lambda code: f"``{code[1]}``".replace("\\", ""), text)
    lines[:] = re.sub(r"\n\n(?= )", "\n\n::\n\n", text).splitlines()


def name_pictures(app, document):
    """Add the text alternatives from the notebooks' outputs; myst-nb names each picture by the hash of its bytes."""
    known = json.loads(Path(app.srcdir, "alternatives.json").read_text())
    for image in document.findall(nodes.image):
        image["alt"] = known.get(Path(image["uri"]).stem, image.get("alt", ""))


def setup(app):
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("doctree-read", name_pictures)
