"""The shipped labs, and what belongs into their exercise cells."""

from __future__ import annotations

import importlib
from pathlib import Path

import nbformat

from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.stub import cell_of

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))

# Where a lab's checks are registered, and the reference of its transfer exercise, which students do not get.
CHECKS = {
    "00": "labs_helpers.first_kernels.lab00.checks.kernels",
    "02": "labs_helpers.gemm.lab02.checks.products",
    "03": "labs_helpers.gemm.lab03.checks.pruning",
    "04": "labs_helpers.attention.lab04.checks.kernels",
    "05": "labs_helpers.attention.lab05.checks.function",
    "06": "labs_helpers.collectives.lab06.checks.first_two",
}
TRANSFER = {
    "00-5": ("tests.first_kernels.lab00.exercises.ex5_rms_norm", "rms_norm"),
    "02-7": ("tests.gemm.lab02.exercises.ex7_silu_matmul", "silu_matmul"),
    "03-7": ("tests.gemm.lab03.exercises.ex7_tune_silu", "tune_silu"),
    "04-6": ("tests.attention.lab04.exercises.ex6_window_attention", "window_attention"),
    "05-5": ("tests.attention.lab05.exercises.ex5_softcap_gradients", "softcap_gradients"),
    "06-8": ("tests.collectives.lab06.exercises.ex8_recursive_halving", "recursive_halving"),
}


def read(path: Path):
    return nbformat.read(path, as_version=4)


def grade_id(cell) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def exercises(notebook) -> dict:
    """grade_id → exercise cell."""
    return {grade_id(cell): cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")}


def exercise(identifier: str):
    """The registered Exercise of a grade_id such as '02-3'."""
    importlib.import_module(CHECKS[identifier[:2]])
    return SCORES.exercises[identifier.replace("-", "/")]


def solved_cell(identifier: str) -> str:
    """The exercise cell with its reference in it."""
    if identifier in TRANSFER:
        module, name = TRANSFER[identifier]
        return cell_of(getattr(importlib.import_module(module), name))
    return cell_of(exercise(identifier).reference)


def solved(notebook):
    """The same notebook with every exercise solved."""
    for identifier, cell in exercises(notebook).items():
        cell.source = solved_cell(identifier)
    return notebook
