"""Write down an answer's results for the hidden inputs, so that they can leave the jail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.grading.hidden import run_of
from labs_helpers.grading.hidden.values import NoValue, written

MOST = 2**18  # characters of an answer's values


def values(job: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return {"values": […]} for the inputs drawn from job["key"] (`key_of`); {} if job["exercise"] has none.

    If the function raises, "values" are the results before that, and "raised" names the built-in error. More of the
    error's text could reveal the inputs.
    """
    run = run_of(job["exercise"])
    if run is None:
        return {}
    found, size = list[Any](), 0
    try:
        for value in run(function, np.random.default_rng(job["key"])):
            text = written(value)
            size += len(json.dumps(text)) + 2
            if size > MOST:
                raise NoValue(f"more than {MOST} characters of values")
            found.append(text)
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # lab 03 interrupts an answer
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
        return {"values": found, "raised": kind}
    return {"values": found}
