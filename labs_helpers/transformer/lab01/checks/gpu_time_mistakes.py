"""Compute launches and shares of a trace's time, and what common mistakes make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from labs_helpers.course.verdict import Candidates
from labs_helpers.course.verdict.pure_functions import Case
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.measure.written_trace import of
from labs_helpers.transformer.lab01.checks.covered import (
    added_up,
    covered,
    first_to_last,
    intervals,
    looped,
    without_the_last,
)

ON_CPU = ("cpu_op", "cuda_runtime", "user_annotation")
CPU = "the CPU's events were counted; use the GPU's work"
TWICE = "overlapping work was added up: count it once, in a union over all streams"
LATER = "an interval may lie inside an earlier one: keep the later of the two ends"
NOT_LESS = "an interval inside an earlier one adds 0, not a negative time: use max(0, …)"
FRACTIONS = "ts and dur are not whole numbers: do not round them"
DUR = "dur is a length, not an end: an event ends at ts + dur"
EVERYTHING = "every event counts for the trace's time, including operations, ranges, launches and waits"
LISTED = "the list is unordered: its first event need not start first, and its last one need not end last"
MICROSECONDS = "return a share, not µs: divide by the trace's time"
PERCENT = "return a share from 0 to 1, not a percentage"
NO_WORK = 'no work was found: its categories are exactly "kernel", "gpu_memcpy" and "gpu_memset"'
TALKS = "kernels that communicate are kernels too"
HIDDEN = "all communication was counted; exposed is the part that no other work hides"
COPIES = "copies and memsets are not communication: they hide it, like kernels"
SAME_TIME = "only work at the same time hides communication: other µs are not subtracted"
PAUSES = "a pause, in which the GPU does nothing, is not communication"
BEGINS = 'a name must begin with "nccl": kernels with "nccl" elsewhere in the name pack data, which is computation'


def communicates(event: Event) -> bool:
    return event["cat"] == "kernel" and event["name"].startswith("nccl")


def right(events: list[Event]) -> tuple[int, float, float]:
    """Return (launches, busy, exposed)."""
    whole = first_to_last(of(events))
    return len(of(events, "kernel")), covered(of(events, *GPU_WORK)) / whole, exposed_us(events) / whole


def exposed_us(
    events: list[Event], talks: Callable[[Event], bool] = communicates, hiding: Iterable[str] = GPU_WORK
) -> float:
    """Return the time in which only communication runs. talks: selects that work; hiding: the categories that hide
    it."""
    others = [event for event in of(events, *hiding) if not talks(event)]
    return covered([*filter(talks, of(events, *GPU_WORK)), *others]) - covered(others)


def launches(events: list[Event]) -> Candidates:
    kernels, calls = of(events, "kernel"), of(events, "cuda_runtime")
    yield 'no kernel was found: its category is exactly "kernel"', 0
    yield "a gpu_user_annotation is a range, not a kernel", len(of(events, "kernel", "gpu_user_annotation"))
    yield "copies and memsets are not kernels", len(of(events, *GPU_WORK))
    yield "copies are no kernels", len(of(events, "kernel", "gpu_memcpy"))
    yield "memsets are no kernels", len(of(events, "kernel", "gpu_memset"))
    yield TALKS, sum(not communicates(event) for event in kernels)
    yield TALKS, sum("nccl" not in event["name"] for event in kernels)
    several = "one launch may start several kernels, all with its correlation: count the kernels"
    yield several, len({event["args"]["correlation"] for event in kernels})
    yield "each name was counted once: a kernel counts as often as it ran", len({event["name"] for event in kernels})
    yield 'every "cuda_runtime" event was counted: some of them copy or wait; count kernels', len(calls)
    graphs = "launches were counted on the CPU, where one cudaGraphLaunch starts many kernels"
    yield graphs, sum("LaunchKernel" in event["name"] for event in calls)
    yield "PyTorch's operations were counted; count kernels", len(of(events, "cpu_op"))
    for some in (of(events), events):
        yield "all events were counted; count kernels", len(some)


def busy(events: list[Event]) -> Candidates:
    whole, work = first_to_last(of(events)), of(events, *GPU_WORK)
    us, ends = covered(work), sorted(intervals(work))
    for sentence, kinds in (
        ("copies (gpu_memcpy) are work too", ("kernel", "gpu_memset")),
        ("memsets (gpu_memset) are work too", ("kernel", "gpu_memcpy")),
        ("copies and memsets are work too, not only kernels", ("kernel",)),
        ("a gpu_user_annotation is a range, not work", (*GPU_WORK, "gpu_user_annotation")),
        *((CPU, kinds) for kinds in ([ON_CPU[0]], [ON_CPU[1]], [ON_CPU[2]], ON_CPU, (ON_CPU[0], *GPU_WORK))),
        *((CPU, kinds) for kinds in ((*ON_CPU, *GPU_WORK), ())),
    ):
        yield sentence, covered(of(events, *kinds)) / whole
    yield "kernels that communicate are work too", covered(e for e in work if not communicates(e)) / whole
    one = "only one stream's work was counted; busy is the share in which any stream works"
    yield one, covered(event for event in work if event["tid"] == 7) / whole
    for sentence, length in (
        (TWICE, added_up(work)),
        (TWICE, sum(end - start for start, end in set(ends))),
        (TWICE, sum(covered(of(work, kind)) for kind in GPU_WORK)),
        (TWICE, covered(of(work, "kernel")) + covered(of(work, *GPU_WORK[1:]))),
        (LATER, looped(ends, lambda reached, end: end)),
        (NOT_LESS, looped(ends, least=-inf)),
        ("the last merged interval is lost: add it after the loop", without_the_last(work)),
        ("the list is unordered: sort the intervals by their start", looped(intervals(work))),
        (DUR, looped(sorted((event["ts"], event["dur"]) for event in work))),
        (FRACTIONS, covered(_whole_numbers(work))),
        (FRACTIONS, covered(_whole_numbers(work)) / first_to_last(_whole_numbers(of(events))) * whole),
        ("its pauses were counted: the GPU does nothing between two pieces of work", first_to_last(work)),
        (NO_WORK, 0.0),
        ("this is the idle share; busy is the rest", whole - us),
        (MICROSECONDS, us * whole),
        (PERCENT, us * 100),
    ):
        yield sentence, length / whole
    for digits in (1, 2, 3):
        yield "do not round the share", round(us / whole, digits)
    for sentence, time in _windows(events, of(events), work or of(events)):
        yield sentence, us / (time or whole)


def _windows(events: list[Event], timed: list[Event], work: list[Event]) -> Candidates:
    """Return the times, in µs, that people mistake for the trace's time."""
    (begin, _), (first, _), (last_start, its_end) = min(intervals(timed)), min(intervals(work)), max(intervals(timed))
    end, last = (max(end for _, end in intervals(some)) for some in (timed, work))
    yield "the trace's time runs from the GPU's first work to its last: include the CPU's events", last - first
    yield "the trace's time begins with its first event, on the CPU, not with the GPU's first work", end - first
    yield (
        "the trace's time ends with its last event, which may be on the CPU, not with the GPU's last work",
        last - begin,
    )
    yield "the trace's time begins with its first event, not at 0", end
    yield "the trace's time ends at the largest ts + dur: the largest ts is a start", last_start - begin
    yield "the event that starts last need not end last: take the largest end", its_end - begin
    for start in (timed[0]["ts"], begin):
        yield LISTED, intervals(timed)[-1][1] - start
    yield DUR, max(event["dur"] for event in timed) - begin
    yield "durations were added up for the trace's time: events are nested", added_up(timed)
    yield "the trace's time includes the GPU's events, not only the CPU's", first_to_last(of(events, *ON_CPU))
    for kinds in (ON_CPU[:1], ON_CPU[1:2], ON_CPU[2:], ON_CPU[:2], ON_CPU[::2], ON_CPU[1:]):
        yield EVERYTHING, first_to_last(of(events, *kinds, *GPU_WORK))


def _whole_numbers(events: Iterable[Event]) -> list[Event]:
    return [{"ts": int(e["ts"]), "dur": int(e["ts"] + e["dur"]) - int(e["ts"])} for e in events]


def exposed(events: list[Event]) -> Candidates:
    whole, work, us = first_to_last(of(events)), of(events, *GPU_WORK), exposed_us(events)
    talk, others = list(filter(communicates, work)), [event for event in work if not communicates(event)]
    hidden = [sum(_overlap(event, other) for other in others) for event in talk]
    uncovered = [event for event, off in zip(talk, hidden, strict=True) if not off]
    each = [exposed_us([event, *others]) for event in talk]
    named = [event for event in of(events) if event["name"].startswith("nccl")]
    for sentence, length in (
        (HIDDEN, covered(talk)),
        (HIDDEN, added_up(talk)),
        ("this is the hidden communication; exposed is the rest", covered(talk) - us),
        (COPIES, exposed_us(events, hiding=("kernel",))),
        (COPIES, covered(work) - covered(of(others, "kernel"))),
        (SAME_TIME, covered(talk) - covered(others)),
        (SAME_TIME, added_up(talk) - added_up(others)),
        ("a range over the GPU hides nothing", exposed_us(events, hiding=(*GPU_WORK, "gpu_user_annotation"))),
        ("the CPU hides nothing: the GPU's other work does", exposed_us(events, hiding=(*GPU_WORK, *ON_CPU))),
        (PAUSES, whole - covered(others)),
        (PAUSES, (whole - covered(others)) * bool(talk)),
        ("communication that is partly hidden is exposed for the rest of its time", added_up(uncovered)),
        ("what two kernels hide at the same time was subtracted twice", added_up(talk) - sum(hidden)),
        ("two kernels that communicate at the same time were counted twice", sum(each)),
        (BEGINS, exposed_us(events, lambda event: event["cat"] == "kernel" and "nccl" in event["name"])),
        ("only kernels are communication: an operation or a range with such a name is not", covered(named)),
        (
            'no communication was found: the name of a kernel that communicates begins with "nccl", followed by more',
            0.0,
        ),
        (MICROSECONDS, us * whole),
        (PERCENT, us * 100),
    ):
        yield sentence, length / whole
    yield "return the share of the trace's time, not of communication's", us / (covered(talk) or 1.0)
    yield "return the share of the trace's time, not of the busy time", us / (covered(work) or 1.0)


def apart(at: int, case: Case, found: float) -> str:
    """Say by how many µs the share at index `at` is off, and which event lasts as long; '' unless exactly one does."""
    if not at:  # launches are a count
        return ""
    events = of(case.arguments[0])
    off = (found - case.right[at]) * first_to_last(events)
    long = {event["name"] for event in events if abs(event["dur"] - abs(off)) < 1e-6}
    what = "are missing" if off < 0 else "too many were counted"
    return f"{abs(off):g} µs {what}, as long as {long.pop()} takes" if len(long) == 1 else ""


def _overlap(a: Event, b: Event) -> float:
    return max(0.0, min(a["ts"] + a["dur"], b["ts"] + b["dur"]) - max(a["ts"], b["ts"]))
