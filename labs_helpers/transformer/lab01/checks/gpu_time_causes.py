"""What common mistakes make of exercise 2's two shares."""

from collections.abc import Callable, Iterable, Iterator

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import (
    added_up,
    covered,
    dur_as_end,
    first_to_last,
    in_listed_order,
    intervals,
    to_the_last_end,
)
from labs_helpers.transformer.lab01.checks.practice_traces import of

ON_CPU = ("cpu_op", "cuda_runtime", "user_annotation")
CPU = "the CPU's events were counted; the GPU's time is asked for"
TWICE = "what runs at the same time was added up: it counts once, in a union over all streams"
SORT = "the list is in no order: sort the intervals by their start"
DUR = "dur is a length, not an end: an event ends at ts + dur"
EVERYTHING = "every event belongs to the trace's time: operations, ranges, launches and waits too"
LISTED = "the list is in no order: its first event need not start first, nor its last one end last"
MICROSECONDS = "a share is asked for, and these are µs: divide by the trace's time"
PERCENT = "a share from 0 to 1 is asked for, not percent"
HIDDEN = "all communication was counted; exposed is what no other work hides"
NOT_FOUND = 'no communication was found: the name of a kernel that communicates begins with "nccl", and goes on'


def communicates(event: Event) -> bool:
    return event["cat"] == "kernel" and event["name"].startswith("nccl")


def whole_of(events: list[Event]) -> float:
    """The trace's time in µs."""
    return first_to_last(of(events))


def exposed_us(events: list[Event], talks: Callable = communicates, hiding: Iterable[str] = GPU_WORK) -> float:
    """The time in which only communication runs. talks: which work that is; hiding: the categories that hide it."""
    others = [event for event in of(events, *hiding) if not talks(event)]
    return covered([*filter(talks, of(events, *GPU_WORK)), *others]) - covered(others)


def busy_causes(events: list[Event]) -> Candidates:
    whole, work = whole_of(events), of(events, *GPU_WORK)
    right = covered(work)
    for sentence, kinds in (
        ("copies (gpu_memcpy) are work too", ("kernel", "gpu_memset")),
        ("memsets (gpu_memset) are work too", ("kernel", "gpu_memcpy")),
        ("copies and memsets are work too, not kernels alone", ("kernel",)),
        ("a gpu_user_annotation is a range, and does nothing itself", (*GPU_WORK, "gpu_user_annotation")),
        *((CPU, (kind,)) for kind in ON_CPU),
        (CPU, ON_CPU),
        (CPU, ("cpu_op", *GPU_WORK)),
        (CPU, (*ON_CPU, *GPU_WORK)),
        (CPU, ()),
    ):
        yield sentence, covered(of(events, *kinds)) / whole
    yield "kernels that communicate are work too", covered(e for e in work if not communicates(e)) / whole
    for sentence, us in (
        (TWICE, added_up(work)),
        (TWICE, added_up({(event["ts"], event["dur"]): event for event in work}.values())),
        ("an interval may lie inside an earlier one: keep the later of the two ends", to_the_last_end(work)),
        (SORT, in_listed_order(work)),
        (DUR, dur_as_end(work)),
        ("its pauses were counted: the GPU does nothing between two pieces of work", first_to_last(work)),
        ("that is the idle share; busy is the rest", whole - right),
        (MICROSECONDS, right * whole),
        (PERCENT, right * 100),
    ):
        yield sentence, us / whole
    for sentence, us in _windows(events):
        if us:
            yield sentence, right / us


def _windows(events: list[Event]) -> Iterator[tuple[str, float]]:
    """What people take for the trace's time, in µs."""
    timed, gpu = intervals(of(events)), intervals(of(events, *GPU_WORK))
    begin, end = min(timed)[0], max(end for _, end in timed)
    ends = {0.0}
    if gpu:
        first, last = min(gpu)[0], max(end for _, end in gpu)
        ends |= {last - first, end - first, last - begin}
        yield "the trace's time was taken from the GPU's first work to its last: the CPU's is in it too", last - first
        yield "the trace's time begins with its first event, on the CPU, not with the GPU's first work", end - first
        yield "the trace's time ends with its last event, the CPU's too, not with the GPU's last work", last - begin
    yield "the trace's time begins with its first event, not at 0", end
    yield "the trace's time ends with an end, ts + dur: the largest ts is a start", max(timed)[0] - begin
    yield "the event that starts last need not end last: take the largest end", max(timed)[1] - begin
    yield LISTED, timed[-1][1] - timed[0][0]
    yield LISTED, timed[-1][1] - begin
    yield DUR, max(event["dur"] for event in of(events)) - begin
    yield "durations were added up for the trace's time: events lie in one another", added_up(of(events))
    yield "the trace's time has the GPU's events too, not the CPU's alone", first_to_last(of(events, *ON_CPU))
    for kinds in (ON_CPU[:1], ON_CPU[1:2], ON_CPU[2:], ON_CPU[:2], ON_CPU[::2], ON_CPU[1:]):
        us = first_to_last(of(events, *kinds, *GPU_WORK))
        if us not in ends:
            yield EVERYTHING, us


def exposed_causes(events: list[Event]) -> Candidates:
    whole, work, right = whole_of(events), of(events, *GPU_WORK), exposed_us(events)
    talk, others = list(filter(communicates, work)), [event for event in work if not communicates(event)]
    hidden = [[_overlap(event, other) for other in others] for event in talk]
    each = [exposed_us([event, *others]) for event in talk]
    for sentence, us in (
        (HIDDEN, covered(talk)),
        (HIDDEN, added_up(talk)),
        ("that is the communication that is hidden; exposed is the rest", covered(talk) - right),
        ("copies and memsets hide communication too, not kernels alone", exposed_us(events, hiding=("kernel",))),
        ("a range over the GPU hides nothing", exposed_us(events, hiding=(*GPU_WORK, "gpu_user_annotation"))),
        ("the CPU hides nothing: the GPU's other work does", exposed_us(events, hiding=(*GPU_WORK, *ON_CPU))),
        ("a pause, in which the GPU does nothing, is no communication", whole - covered(others)),
        (
            "communication that is hidden in part is exposed in the rest",
            sum(e["dur"] for e, o in zip(talk, hidden, strict=True) if not any(o)),
        ),
        ("what two kernels hide at the same time was subtracted twice", added_up(talk) - sum(map(sum, hidden))),
        ("two kernels that communicate at the same time were counted twice", sum(each)),
        (
            'a name has to begin with "nccl": what has it elsewhere packs data, and computes',
            exposed_us(events, _has_nccl),
        ),
        ("communication is kernels: an operation or a range of such a name is none", covered(_named(events))),
        (NOT_FOUND, 0.0),
        (MICROSECONDS, right * whole),
        (PERCENT, right * 100),
    ):
        yield sentence, us / whole
    if talk:
        yield "the share of the trace's time is asked for, not that of communication's", right / covered(talk)
        yield "the share of the trace's time is asked for, not that of the busy time", right / covered(work)


def _has_nccl(event: Event) -> bool:
    return event["cat"] == "kernel" and "nccl" in event["name"]


def _named(events: list[Event]) -> list[Event]:
    return [event for event in of(events) if event["name"].startswith("nccl")]


def _overlap(a: Event, b: Event) -> float:
    return max(0.0, min(a["ts"] + a["dur"], b["ts"] + b["dur"]) - max(a["ts"], b["ts"]))
