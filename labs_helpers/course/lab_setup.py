"""The set-up cell: one line at the top of every lab."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from labs_helpers import labs
from labs_helpers.course.at_kernel_start import watch_from_the_start
from labs_helpers.course.cells import watch
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.labs import SOURCES
from labs_helpers.launch import singleton
from labs_helpers.launch.process import run

# Colab's builds of these match its driver and front end; another version breaks the runtime.
COLABS_OWN = ("torch", "triton", "ipykernel", "numpy", "jupyter-client", "ipython")
# Topics in which students may import mpi4py.MPI themselves.
WITH_RANKS = {"collectives", "tensor_parallel", "data_parallel", "pipeline", "clinic"}
# Topics in which students write kernels.
WITH_KERNELS = {"first_kernels", "gemm", "attention", "quantization"}
# Colab itself replaces these.
NOT_ON_COLAB = {"jupyter-server", "jupyterlab", "nbclient", "nbconvert", "nbval"}


def setup(lab: str | int) -> None:
    """Prepare this notebook for lab `lab` ('02' or 2), and print the hardware that it runs on.

    Without a GPU, selects Triton's interpreter, which must happen before the import of Triton. On Colab, installs the
    packages that the course needs in addition to Colab's torch, Triton and ipykernel. Raises RuntimeError with
    instructions if Triton cannot run, and ValueError for a lab that is not in `labs.LABS`.
    """
    known = labs.lab(lab)  # raises for an unknown lab
    if "COLAB_RELEASE_TAG" in os.environ:
        complete_colab()
    with _quick_imports():
        from labs_helpers.draw import figures
        from labs_helpers.measure import machine, quick_interpreter

        if machine.prepare_triton() and known.topic in WITH_KERNELS:
            quick_interpreter.quicken()
    if not machine.has_gpu():
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # otherwise every profile on a CPU writes two lines to stderr
    figures.use_style()
    if known.topic in WITH_RANKS:
        singleton.leave_nothing()
    watch()
    watch_from_the_start()
    SCORES.lab = known.number
    here = machine.this_machine()
    print(f"Lab {known.number} · ran on {here}")
    if "COLAB_RELEASE_TAG" in os.environ:
        print(f"Links to files of the course open in JupyterLab; on Colab, find the files at {SOURCES}")
    if here.tensor_core_warning:
        print(here.tensor_core_warning)


@contextmanager
def _quick_imports() -> Iterator[None]:
    """Exclude PyTorch's objects from garbage collection: to scan them, now and later, takes a quarter of this cell's
    time. If PyTorch was imported before, existing objects may be the student's and are scanned as usual."""
    if "torch" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def missing_requirements() -> list[str]:
    """Return the course's requirements that are not installed here, in pip's format."""
    from packaging.requirements import Requirement

    missing = []
    for text in importlib.metadata.requires("tile-to-cluster") or []:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{requirement.name}{requirement.specifier}")
    return missing


def _name_of(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0]


def complete_colab() -> None:
    """Install the missing requirements, and hold every package of COLABS_OWN at its installed version."""
    missing = [text for text in missing_requirements() if _name_of(text) not in NOT_ON_COLAB]
    if not missing:
        return
    names = ", ".join(re.match(r"[\w-]+", text)[0] for text in missing)
    print(f"Installing, once per machine, in about a minute: {names} …", flush=True)
    held = []
    for name in COLABS_OWN:
        try:
            held.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        print(f"Installing {', '.join(map(_name_of, missing))}: about a minute, once per machine.", flush=True)
        constraints.write("\n".join(held))
        constraints.flush()
        run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", constraints.name, *missing], timeout=600
        )
