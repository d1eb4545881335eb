"""Call answers with hidden inputs: arguments drawn from the instructor's seed, which no check shows.

Each exercise has a run, in its lab's hidden.py or hidden/. The grader executes it on the student's function in a jail
and on the reference, and compares the results outside (values.py). An answer that is a table of the check's own cases
fails here, and so does one that deceives its check.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden.values import written
from labs_helpers.labs import LABS

Run = Callable[[Callable[..., Any], np.random.Generator], Iterator[Any]]
_RUNS: dict[str, Run] = {}


def hidden(exercise: str) -> Callable[[Run], Run]:
    """Register the decorated run(function, draw) for '02/3', say. It draws arguments, calls the function, and
    yields each result: numbers, text, tensors, arrays, and lists, tuples and dicts of them, and also arguments that
    the function changes in place. draw: numpy's Generator, with the same seed for student and reference."""

    def register(run: Run) -> Run:
        _RUNS[exercise] = run
        return run

    return register


def run_of(exercise: str) -> Run | None:
    """Return the run of an exercise, or None if it has none."""
    lab = next((lab for lab in LABS if lab.number == exercise.partition("/")[0]), None)
    if lab is None:
        return None
    module = f"{lab.package}.hidden"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:  # a hand-out has none
        if error.name != module:
            raise
    return _RUNS.get(exercise)


def key_of(seed: int, exercise: str) -> int:
    """Return the seed of an exercise's inputs. It reveals neither the instructor's seed nor another exercise's key."""
    return int.from_bytes(hashlib.sha256(f"{seed} {exercise}".encode()).digest()[:16])


def generator(seed: int, exercise: str) -> np.random.Generator:
    """Return the generator from which an exercise's run draws."""
    return np.random.default_rng(key_of(seed, exercise))


def kept(*given: Any) -> Callable[[], bool]:
    """Return a function that says whether these arguments are unchanged. A run yields its reply instead of the
    arguments, which are the same for every answer that does not change them."""
    before = written(given)
    return lambda: bool(written(given) == before)


def normal(draw: np.random.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Draw normally distributed numbers, on the CPU."""
    return torch.from_numpy(draw.standard_normal(shape)).to(dtype)


def whole(draw: np.random.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Draw whole numbers from -3 to 3. Every dtype holds their sums and products exactly while these are small."""
    return torch.from_numpy(draw.integers(-3, 4, shape)).to(dtype)
