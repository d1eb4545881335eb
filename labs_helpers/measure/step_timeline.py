"""Record when a rank computes and when it communicates in one training step: by the clock, or from a trace.

The clock sees a step's phases, and messages of which PyTorch knows nothing, and costs almost nothing. A trace sees the
kernels of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from labs_helpers.measure.kernel_kinds import COMMUNICATION, kinds
from labs_helpers.measure.race import TorchRanks
from labs_helpers.measure.step_parts import Span, merged, span_of
from labs_helpers.measure.trace import Event

TAKEN = 5  # steps; the median one is kept
GAP_US = 300.0  # kernels closer than this count as one, because a traced step launches late
Interval = list[Any]  # lane ("compute" or "communication"), name, start in ms, stop in ms, bytes or None
Message = tuple[float, float, int]  # start and stop by perf_counter, bytes


def by_clock(
    phases: Callable[[], Iterable[tuple[str, Callable[[], object]]]],
    messages: Callable[[], Iterable[Message]],
    ranks: TorchRanks,
) -> list[Interval]:
    """Run several steps; return the intervals of the one with the median time on the slowest rank.

    Times are in ms after the start of the step, which all ranks start together; every rank calls this. phases(): (name,
    function) of each phase of a step. messages(): those since its last call.
    """
    found = []
    for _ in range(TAKEN):
        messages()
        ranks.barrier()
        begin = perf_counter()
        lane: list[Interval] = []
        for name, phase in phases():
            start = perf_counter()
            phase()
            lane.append(["compute", name, start, perf_counter(), None])
        lane += [["communication", "all-reduce", start, stop, nbytes] for start, stop, nbytes in messages()]
        found.append([[*what, _ms(start - begin), _ms(stop - begin), size] for *what, start, stop, size in lane])
    times = ranks.gather([max(interval[3] for interval in intervals) for intervals in found])
    slowest = [max(of_step) for of_step in zip(*times, strict=True)]
    return found[slowest.index(sorted(slowest)[TAKEN // 2])]


def by_trace(events: Iterable[Event]) -> list[Interval]:
    """Return the intervals of NCCL's kernels and of the other kernels, in ms after the first kernel; close compute
    kernels are merged.

    events: from `measure.trace`.
    """
    lanes: dict[str, list[Span]] = {"compute": [], "communication": []}
    for event, kind in kinds(events):
        lanes["communication" if kind == COMMUNICATION else "compute"].append(span_of(event))
    begin = min((start for spans in lanes.values() for start, _ in spans), default=0.0)
    compute, communication = merged(lanes["compute"], GAP_US), sorted(lanes["communication"])
    found = [("compute", "kernels", *span) for span in compute]
    found += [("communication", "all-reduce", *span) for span in communication]
    return [[*what, _ms(1e-6 * (start - begin)), _ms(1e-6 * (stop - begin)), None] for *what, start, stop in found]


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 3)
