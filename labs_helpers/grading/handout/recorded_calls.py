"""Record the calls that a lab's checks make to its references, and their results:

    python -m labs_helpers.grading.handout.recorded_calls 02

This prints {"calls": {name: {key: value as Python}}, "not data": [the name of each reference that exchanges something
other than data with a check]}. The references are replaced before the checks are imported; each check then runs once.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from labs_helpers.course.withheld import key
from labs_helpers.labs import ROOT, Lab, lab
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import prepare_triton

# `reference=exercises.f` names a reference without calling it, and the hand-out keeps the text of those in `variant`.
ASKED = re.compile(r"(?<!reference=)(?<!variant\()(?<!variants\()\bexercises\.[a-z]")


class NotData(TypeError):
    """A value other than numbers, strings, and tuples, lists and dicts of them."""


def recorded_calls(chosen: Lab) -> dict[str, dict[str, str]]:
    """Return name of a reference → key of its arguments → its value as Python, for every call that the lab's checks
    make.

    ValueError names the references that a check needs as code. This runs the checks, in another process, if they call
    any reference.
    """
    checks = ROOT.joinpath(*chosen.package.split("."), "checks")
    if not any(ASKED.search(path.read_text()) for path in checks.rglob("*.py")):
        return {}
    command = [sys.executable, "-m", "labs_helpers.grading.handout.recorded_calls", chosen.number]
    env = os.environ | {"PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu"}
    found = json.loads(run(command, timeout=300, env=env).splitlines()[-1])
    if found["not data"]:
        raise ValueError(f"checks of lab {chosen.number} need the code of {', '.join(found['not data'])}")
    return dict(found["calls"])


def record(number: str) -> dict[str, Any]:
    chosen = lab(number)
    exercises = importlib.import_module(f"{chosen.package}.exercises")
    functions = {name: value for name, value in vars(exercises).items() if isinstance(value, FunctionType)}
    calls: dict[str, dict[str, str]] = {name: {} for name in functions}
    not_data = set()

    def recording(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            value = function(*arguments, **keywords)
            try:
                _data([_plain(given) for given in (*arguments, *keywords.values())])
                calls[name][key(arguments, keywords)] = repr(_data(value))
            except NotData:
                not_data.add(name)
            return value

        return call

    for name, function in functions.items():
        setattr(exercises, name, recording(name, function))
    for exercise in chosen.exercises():
        name = exercise.trial.__name__
        exercise.verify(functions.get(name) or getattr(importlib.import_module(chosen.transfer), name))
    checks = ROOT.joinpath(*chosen.package.split("."), "checks")
    texts = "".join(path.read_text() for path in checks.rglob("*.py"))
    not_data = {name for name in not_data if f"isinstance(exercises.{name}, Withheld)" not in texts}  # else it copes
    return {"calls": {name: found for name, found in calls.items() if found}, "not data": sorted(not_data)}


def _plain(argument: Any) -> Any:
    """Return a value that `key` can write out: arrays and data classes count as data too."""
    if isinstance(argument, np.ndarray):
        return argument.tolist()
    if dataclasses.is_dataclass(argument) and not isinstance(argument, type):
        return dataclasses.asdict(argument)
    return argument


def _data(value: Any) -> Any:
    """Return the value with Python's numbers in place of NumPy's. NotData for anything else."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return type(value)(map(_data, value))
    if isinstance(value, dict):
        return {name: _data(one) for name, one in value.items()}
    raise NotData(type(value).__name__)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    prepare_triton()
    print(json.dumps(record(sys.argv[1])))
