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

# Colab ships these, built for its driver and its front end; another version of one breaks the runtime.
COLABS_OWN = ("torch", "triton", "ipykernel", "numpy", "jupyter-client", "ipython")
# Topics whose students may import mpi4py.MPI themselves.
WITH_RANKS = {"collectives", "tensor_parallel", "data_parallel"}
# Topics whose students write kernels.
WITH_KERNELS = {"first_kernels", "gemm", "attention"}
# Colab is itself what these do.
NOT_ON_COLAB = {"jupyter-server", "jupyterlab", "nbclient", "nbconvert", "nbval"}


def setup(lab: str | int) -> None:
    """Makes this notebook ready for lab `lab` ('02' or 2) and prints what it runs on.

    Without a GPU, chooses Triton's interpreter, which has to happen before Triton is imported. On Colab,
    installs what the course needs beside Colab's own torch, Triton and ipykernel. Raises RuntimeError with the
    way out where Triton cannot run, ValueError for a lab that is not in `labs.LABS`.
    """
    known = labs.lab(lab)  # which refuses an unknown one
    if "COLAB_RELEASE_TAG" in os.environ:
        complete_colab()
    with _quick_imports():
        from labs_helpers.draw import figures
        from labs_helpers.measure import machine, quick_interpreter

        if machine.prepare_triton() and known.topic in WITH_KERNELS:
            quick_interpreter.quicken()
    if not machine.has_gpu():
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else every profile on a CPU writes two lines to stderr
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
    """PyTorch's objects stay: to look for garbage among them, now and later, takes a quarter of the time that this cell
    takes. Where it has been imported already, what is here may be the student's and is looked through as ever."""
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
    """The course's own requirements that are not installed here, as pip takes them."""
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
    """Installs the missing requirements with every package of COLABS_OWN held at the version that is there."""
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
