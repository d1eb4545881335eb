"""Inputs that no check shows: a run of an exercise's function over arguments that are drawn from the instructor's seed.

A run is made twice, of the student's function in a jail and of the reference outside of it; what it yields is compared
outside (values.py). A lab's runs are in its own hidden.py or hidden/. A table of the check's own cases does not pass
them, and neither does a function that deceives its check.
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
    """Decorates run(function, draw) of an exercise, as '02/3': it draws arguments, calls the student's function, and
    yields each result: numbers, text, tensors, arrays, and lists, tuples and dicts of them. What the function changes
    in place is yielded too. draw: numpy's Generator, the same for both."""

    def register(run: Run) -> Run:
        _RUNS[exercise] = run
        return run

    return register


def run_of(exercise: str) -> Run | None:
    """That of an exercise, or None where there is none."""
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
    """What an exercise's inputs are drawn from. It tells neither the seed nor the key of another exercise."""
    return int.from_bytes(hashlib.sha256(f"{seed} {exercise}".encode()).digest()[:16])


def generator(seed: int, exercise: str) -> np.random.Generator:
    """What an exercise's run draws from."""
    return np.random.default_rng(key_of(seed, exercise))


def kept(*given: Any) -> Callable[[], bool]:
    """Whether these are the same still when it is asked: a run yields that, and not what was given, which is right in
    every answer that leaves it alone."""
    before = written(given)
    return lambda: bool(written(given) == before)


def normal(draw: np.random.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed numbers, on the CPU."""
    return torch.from_numpy(draw.standard_normal(shape)).to(dtype)


def whole(draw: np.random.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Whole numbers from -3 to 3, whose sums and products every dtype holds exactly as long as they are small."""
    return torch.from_numpy(draw.integers(-3, 4, shape)).to(dtype)
