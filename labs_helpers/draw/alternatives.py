"""Text alternatives of figures on pages made from notebooks.

The text is stored in the metadata of the figure's output, like the alt of IPython's `Image(alt=…)`. JupyterLab shows it
through the renderer in jupyterlab/ in this folder. The templates of nbconvert and Sphinx ignore it, so pages are made
from notebooks in which each figure is an <img> tag.
"""

from __future__ import annotations

from copy import deepcopy
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat.notebooknode import NotebookNode

LABEXTENSIONS = Path(__file__).with_name("jupyterlab")  # for JupyterLab's extra_labextensions_path


def with_alternatives(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which each PNG with a text alternative becomes an HTML output that contains both."""
    copy = deepcopy(notebook)
    for cell in copy.cells:
        for output in cell.get("outputs", []):
            text = output.get("metadata", {}).get("image/png", {}).get("alt")
            if text and "image/png" in output.data:
                image = "".join(output.data.pop("image/png").split())
                output.data["text/html"] = f'<img alt="{escape(text)}" src="data:image/png;base64,{image}">'
    return copy
