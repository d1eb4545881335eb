"""Build the course's site from its executed notebooks: make site, or python -m docs.build [folder].

The pages are assembled in build/site/pages with the repository's folder structure, so that relative links work in both.
Sphinx turns them into HTML, with warnings as errors, and every internal link is checked. The build uses no network.
"""

import base64
import hashlib
import importlib
import json
import pkgutil
import re
import shutil
import sys
from pathlib import Path

import nbformat
import yaml
from sphinx.cmd.build import main as sphinx

import labs_helpers
from docs.links import broken, rewritten
from labs_helpers import labs
from labs_helpers.labs import ROOT
from labs_helpers.measure.machine import prepare_triton

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
PAGES, HTML = OUT / "pages", OUT / "html"


def build() -> None:
    """Assemble the pages, build the site, and exit with one sentence per broken link."""
    prepare_triton()
    from docs.results_page import write_results  # the charts import kernels

    for folder in (PAGES, HTML):
        shutil.rmtree(folder, ignore_errors=True)
    (PAGES / "notebooks").mkdir(parents=True)
    names = {path: f"labs_helpers.{path}" for path in sorted(topics())}
    notebooks = [f"notebooks/{lab.notebook}" for lab in labs.LABS]
    published = {"README.md": "index.md"} | dict(zip(notebooks, notebooks, strict=True))
    write_index(published, names)
    alternatives = [write_lab(lab, published) for lab in labs.LABS]
    (PAGES / "alternatives.json").write_text(json.dumps({k: v for each in alternatives for k, v in each.items()}))
    write_glossary()
    write_results(PAGES)
    for topic, package in names.items():
        write_api(topic, package)
    if status := sphinx(["-W", "--keep-going", "-q", "-j", "auto", "-c", str(ROOT / "docs"), str(PAGES), str(HTML)]):
        sys.exit(status)
    if dead := broken(HTML):
        sys.exit("\n".join(dead))
    print(f"{HTML / 'index.html'} is built; all internal links work.")


def write_index(published: dict[str, str], topics: dict[str, str]) -> None:
    """Write the first page: the README, followed by the hidden tables of contents that the sidebar shows."""
    text = rewritten((ROOT / "README.md").read_text(), "README.md", published, PAGES)
    parts = {
        "Labs": [f"notebooks/{Path(lab.notebook).stem}" for lab in labs.LABS],
        "Look up": ["glossary", "results"],
        "Library": [f"api/{topic}" for topic in topics],
    }
    for caption, pages in parts.items():
        text += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"])
    (PAGES / "index.md").write_text(text)


def write_lab(lab: labs.Lab, published: dict[str, str]) -> dict[str, str]:
    """Write a lab's notebook without the output of `reveal`. Return each figure's text alternative, keyed by the
    picture's hash."""
    notebook = nbformat.read(lab.path, as_version=4)
    alternatives = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = rewritten(cell.source, f"notebooks/{lab.notebook}", published, PAGES)
        elif re.search(r"^reveal\(", cell.source, re.MULTILINE):
            cell.outputs = []
        for output in cell.get("outputs", []):
            if alternative := output.get("metadata", {}).get("image/png", {}).get("alt"):
                picture = base64.b64decode(output["data"]["image/png"])
                alternatives[hashlib.sha256(picture).hexdigest()] = alternative
    nbformat.write(notebook, PAGES / "notebooks" / lab.notebook)
    return alternatives


def write_glossary() -> None:
    """Write docs/glossary.yaml as a page."""
    lines = ["# Glossary", "", "```{glossary}"]
    for entry in yaml.safe_load((ROOT / "docs/glossary.yaml").read_text()):
        lab = labs.lab(entry["lab"])
        names = [f"Also called *{entry['also']}*."] if "also" in entry else []
        names += [f"In code: `{entry['code']}`."] if "code" in entry else []
        about = " ".join([*names, f"[Lab {lab.number}](notebooks/{lab.notebook})"])
        lines += [entry["term"], f"  {entry['text']}", "", f"  {about}", ""]
    (PAGES / "glossary.md").write_text("\n".join([*lines, "```", ""]))


def topics() -> list[str]:
    """Return the packages of the library that export public names."""
    found = [module.name for module in pkgutil.iter_modules(labs_helpers.__path__) if module.ispkg]
    return [name for name in found if hasattr(importlib.import_module(f"labs_helpers.{name}"), "__all__")]


def write_api(topic: str, package: str) -> None:
    """Write a page with a topic's public functions and classes, from their docstrings."""
    module = importlib.import_module(package)
    lines = [f"# labs_helpers.{topic}", "", module.__doc__.strip(), "", "```{eval-rst}"]
    for name in module.__all__:
        it = getattr(module, name)
        if callable(it):
            kind, *options = ("autoclass", "   :members:") if isinstance(it, type) else ("autofunction",)
            lines += [f".. {kind}:: {package}.{name}", *options, ""]
    (PAGES / "api").mkdir(exist_ok=True)
    (PAGES / f"api/{topic}.md").write_text("\n".join([*lines, "```", ""]))


if __name__ == "__main__":
    build()
