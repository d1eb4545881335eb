"""What an answer gives for the hidden inputs, as it leaves the jail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from labs_helpers.grading.hidden import generator, run_of
from labs_helpers.grading.hidden.values import NoValue, written

MOST = 2**18  # characters of an answer's values


def values(job: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """{"values": […]} for the inputs drawn from job["seed"]; {} where job["exercise"] has none.

    {"raised": …} where the function raises: by the name of a built-in error, because any other word of it could tell
    the inputs.
    """
    run = run_of(job["exercise"])
    if run is None:
        return {}
    try:
        found = [written(value) for value in run(function, generator(job["seed"], job["exercise"]))]
        if len(json.dumps(found)) > MOST:
            raise NoValue(f"more than {MOST} characters of values")
    except Exception as error:
        return {"raised": next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")}
    return {"values": found}
