"""Execute labs and store their outputs: python -m labs_helpers.authoring.refresh [02 …]

Each notebook runs from top to bottom in its own kernel. Its outputs and execution counts go into notebooks/, with a
hash of the sources they came from; nothing else changes there. If a lab fails, the command names its cell and its
error, leaves its file alone, and exits with status 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from copy import deepcopy

from labs_helpers.authoring.executed import keep_outputs
from labs_helpers.compile.report import WITHOUT_TRITON_3_2
from labs_helpers.course import own_copies
from labs_helpers.course.execute import execute
from labs_helpers.course.run_labs import Progress
from labs_helpers.labs import LABS, ROOT, Lab, lab


def refresh(lab: Lab, cell_timeout: float) -> str:
    """Execute the lab's notebook and store its outputs. `cell_timeout` is in seconds. Return '' or the reason why
    nothing was stored: the cell that failed and the end of its error, or what this machine lacks."""
    notebook = own_copies.read(lab.path)
    run = deepcopy(notebook)
    own_copies.clear(*run.cells)
    progress = Progress(lab.path.stem, run)
    with progress.bar:
        if error := execute(run, cell_timeout, on_cell=progress):
            return f"{progress.where}\n{error}"
    if any(WITHOUT_TRITON_3_2 in output.get("text", "") for cell in run.cells for output in cell.get("outputs", [])):
        return f"its outputs would be poorer than those that are stored: {WITHOUT_TRITON_3_2}"
    keep_outputs(run, notebook)
    own_copies.write(notebook, lab.path)
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="refresh", description="Execute labs and store their outputs.")
    parser.add_argument("labs", nargs="*", metavar="LAB", help="02; default: every lab")
    parser.add_argument("--cell-timeout", type=float, default=600, metavar="SECONDS", help="default: 600")
    options = parser.parse_args(arguments)
    try:
        chosen = [lab(number) for number in options.labs] or LABS
    except ValueError as error:
        parser.error(str(error))
    os.environ["LABS_RECORDS"] = os.devnull  # stored outputs show only the recorded machines
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of this environment, not one of the user's
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # of this tree
    if not os.environ.get("OMP_NUM_THREADS", "set"):  # libgomp would complain about an empty value in the outputs
        del os.environ["OMP_NUM_THREADS"]
    failed = False
    for one in chosen:
        began = time.monotonic()
        error = refresh(one, options.cell_timeout)
        failed |= bool(error)
        took = f"{one.path.stem}  {time.monotonic() - began:.0f} s"
        print(f"✗ {took}\n{error}" if error else f"✓ {took}, {one.path.stat().st_size / 1000:.0f} KB", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
