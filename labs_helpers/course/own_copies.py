"""Manage a student's copies of the labs, which a newer version of the course never overwrites."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import nbformat
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import KERNEL_NAME, get_kernel_dict
from nbformat.notebooknode import NotebookNode

SHIPPED = "shipped_version"  # in a copy's metadata: the version it was copied from; it survives a renaming


def labs(folder: Path) -> list[Path]:
    """Return the notebooks NN_topic.ipynb in `folder`, in teaching order. Raises FileNotFoundError if there are
    none."""
    found = sorted(path for path in folder.glob("[0-9][0-9]_*.ipynb") if not path.name.endswith(".new.ipynb"))
    if not found:
        raise FileNotFoundError(f"there is no lab (NN_topic.ipynb) in {folder}")
    return found


def copy_labs(shipped: Path, mine: Path) -> list[str]:
    """Copy the labs in the folder `shipped` that are missing in the folder `mine`.

    An existing copy is left untouched; if its lab has changed since, the new version is added as NN_topic.new.ipynb.
    Returns one line per new or changed lab.
    """
    said = []
    for lab in labs(shipped):
        own = mine / lab.name
        if not own.exists():
            place(lab, own)
            said.append(f"{own.name} is new")
        elif version_of_copy(own) not in (None, version(lab)):
            said.append(_place_beside(lab, own))
    return said


def _place_beside(lab: Path, own: Path) -> str:
    newer = own.with_suffix(".new.ipynb")
    if not newer.exists():
        place(lab, newer)
    elif version_of_copy(newer) != version(lab):
        return (
            f"{lab.name} has changed again. To get the new version, rename or delete {newer.name}, which is an "
            "earlier one"
        )
    return f"{lab.name} has changed since you copied it. Your copy is untouched; the new version is {newer.name}"


def place(lab: Path, target: Path) -> None:
    """Write a copy of `lab` to `target`, marked with its version and cleared as if no cell had been run.

    The outputs would reveal the results to predict.
    """
    notebook = read(lab)
    clear(*notebook.cells)
    notebook.metadata.update(this_kernel(), **{SHIPPED: version(lab)})
    write(notebook, target)


def clear(*cells: NotebookNode) -> None:
    """Remove outputs and execution counts from the code cells among `cells`."""
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def this_kernel() -> dict:
    """Return the metadata that JupyterLab writes for this environment's kernel. With different metadata, JupyterLab
    would mark a lab as changed when it is opened."""
    spec = get_kernel_dict()
    return {
        "kernelspec": {"display_name": spec["display_name"], "language": spec["language"], "name": KERNEL_NAME},
        "language_info": dict(IPythonKernel.language_info),
    }


def version(lab: Path) -> str:
    """Return a hash of the cells' sources. Outputs do not count, because every run of the lab changes them."""
    cells = [(cell.cell_type, cell.source, cell.metadata) for cell in read(lab).cells]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def version_of_copy(own: Path) -> str | None:
    """Return the version that a copy came from; None if it is not recorded or the copy cannot be read."""
    try:
        return read(own).metadata.get(SHIPPED)
    except ValueError:
        return None


def read(path: Path) -> NotebookNode:
    """Return the notebook in `path`. Raises ValueError with its name if the file is not a notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise ValueError(f"{path} is damaged and not a readable notebook: {error}") from error


def write(notebook: NotebookNode, target: Path) -> None:
    write_text(nbformat.writes(notebook) + "\n", target)


def write_text(text: str, target: Path) -> None:
    """Write the whole file or, if the disk is full or the user interrupts, leave the old one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}", suffix=".part")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.chmod(part, target.stat().st_mode if target.exists() else 0o644)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
