"""Check results before timing them: different ways to compute the same thing, timed in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import MeasurementError, measure_rounds


def time_what_is_right(
    calls: Mapping[str, Callable[[], Any]],
    check: Callable[[str, Any], float],
    about: Mapping[str, Any],
    *,
    graphs: Iterable[bool] = (False,),
    failed: Callable[[str, Exception], None] | None = None,
    rounds: int,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Return one record per call and way of timing. A call that fails or is wrong gets a record with an `error` and no
    time.

    check(name, result): returns the result's relative error, or raises if the result is wrong. about: fields of every
    record. graphs: the ways of timing: calls with a cold L2 (False), or replayed from CUDA graphs (True). failed(name,
    error): called instead of recording the error; it raises, or returns to leave the call out. settings: of
    `measure_rounds`.
    """
    records, errors = list[dict[str, Any]](), dict[str, float]()
    for name, call in calls.items():
        try:
            errors[name] = check(name, call())
        except Exception as error:  # a candidate that cannot run is a result too
            if failed:
                failed(name, error)
            else:
                records.append({**about, "name": name, "error": said(error)})
    right = {name: calls[name] for name in errors}
    for graph in graphs:
        try:
            timings = measure_rounds(right, rounds=rounds, graph=graph, **settings)
        except MeasurementError as error:
            name = str(error).split(" failed")[0]
            if failed:
                failed(name, error)
            else:
                records.append({**about, "name": name, "graph": graph, "error": str(error)[:300]})
            continue
        cold = this_machine().device == "cuda" and not graph
        records += [
            {**about, "name": name, **timing.record(), "rounds": rounds, "cold_l2": cold, "graph": graph}
            | {"relative_error": errors[name]}
            for name, timing in timings.items()
        ]
    return records


def said(error: Exception) -> str:
    """Return an error in the form of records: its type and the first 300 characters."""
    return f"{type(error).__name__}: {error}"[:300]
