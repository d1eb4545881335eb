"""Text alternatives of figures in pages made from notebooks.

A figure's text travels in its output's metadata, as IPython's `Image(alt=…)` puts it there. JupyterLab shows it through
the renderer in jupyterlab/ beside this file; nbconvert's and Sphinx's templates show none, so pages are made from
notebooks in which the figures are <img> tags.
"""

from __future__ import annotations

from copy import deepcopy
from html import escape
from pathlib import Path

from nbformat.notebooknode import NotebookNode

LABEXTENSIONS = Path(__file__).with_name("jupyterlab")  # for JupyterLab's extra_labextensions_path


def with_alternatives(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which each PNG that has a text alternative is an HTML output with both."""
    copy = deepcopy(notebook)
    for cell in copy.cells:
        for output in cell.get("outputs", []):
            text = output.get("metadata", {}).get("image/png", {}).get("alt")
            if text and "image/png" in output.data:
                image = "".join(output.data.pop("image/png").split())
                output.data["text/html"] = f'<img alt="{escape(text)}" src="data:image/png;base64,{image}">'
    return copy
