"""What common mistakes make of the number of launches, and of the share in which the GPU is busy."""

from collections.abc import Iterable, Iterator

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import (
    added_up,
    covered,
    dur_as_end,
    ends_taken_away,
    first_to_last,
    in_listed_order,
    intervals,
    over_gaps,
    to_the_last_end,
    without_the_last,
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


def communicates(event: Event) -> bool:
    return event["cat"] == "kernel" and event["name"].startswith("nccl")


def whole_of(events: list[Event]) -> float:
    """The trace's time in µs."""
    return first_to_last(of(events))


def launch_causes(events: list[Event]) -> Candidates:
    kernels, calls = of(events, "kernel"), of(events, "cuda_runtime")
    yield "a gpu_user_annotation is a range, not a kernel", len(of(events, "kernel", "gpu_user_annotation"))
    yield "copies and memsets are no kernels", len(of(events, *GPU_WORK))
    yield "copies are no kernels", len(of(events, "kernel", "gpu_memcpy"))
    yield "memsets are no kernels", len(of(events, "kernel", "gpu_memset"))
    yield "kernels that communicate are kernels too", sum(not communicates(event) for event in kernels)
    yield "kernels that communicate are kernels too", sum("nccl" not in event["name"] for event in kernels)
    several = "one launch may start several kernels, all with its correlation: count the kernels"
    yield several, len({event["args"]["correlation"] for event in kernels})
    yield "each name was counted once: a kernel counts as often as it ran", len({event["name"] for event in kernels})
    same = "kernels with the same interval were counted once: on two streams they are two"
    yield same, len({(event["ts"], event["dur"]) for event in kernels})
    yield 'every "cuda_runtime" event was counted: some of them copy or wait; kernels are asked for', len(calls)
    starts = [event for event in calls if "LaunchKernel" in event["name"]]
    yield "launches were counted on the CPU, where one cudaGraphLaunch starts many kernels", len(starts)
    yield "PyTorch's operations were counted; kernels are asked for", len(of(events, "cpu_op"))
    yield "all events were counted; kernels are asked for", len(of(events))
    yield "all events were counted; kernels are asked for", len(events)


def busy_causes(events: list[Event]) -> Candidates:
    whole, work = whole_of(events), of(events, *GPU_WORK)
    right = covered(work)
    for sentence, kinds in (
        ("copies (gpu_memcpy) are work too", ("kernel", "gpu_memset")),
        ("memsets (gpu_memset) are work too", ("kernel", "gpu_memcpy")),
        ("copies and memsets are work too, not kernels alone", ("kernel",)),
        ("a gpu_user_annotation is a range, and does nothing itself", (*GPU_WORK, "gpu_user_annotation")),
        *((CPU, (kind,)) for kind in ON_CPU if of(events, kind)),
        (CPU, ON_CPU),
        (CPU, ("cpu_op", *GPU_WORK)),
        (CPU, (*ON_CPU, *GPU_WORK)),
        (CPU, ()),
    ):
        yield sentence, covered(of(events, *kinds)) / whole
    yield "kernels that communicate are work too", covered(e for e in work if not communicates(e)) / whole
    for stream in {event["tid"] for event in work}:
        one = "one stream's work was taken; busy is the share in which any of them works"
        yield one, covered(event for event in work if event["tid"] == stream) / whole
    for sentence, us in (
        (TWICE, added_up(work)),
        (TWICE, added_up({(event["ts"], event["dur"]): event for event in work}.values())),
        ("an interval may lie inside an earlier one: keep the later of the two ends", to_the_last_end(work)),
        ("an interval may lie inside an earlier one: keep the later of the two ends", over_gaps(work)),
        ("an interval inside an earlier one adds nothing, and not less than nothing: max(0, …)", ends_taken_away(work)),
        (TWICE, sum(covered(of(events, kind)) for kind in GPU_WORK)),
        (TWICE, covered(of(events, "kernel")) + covered(of(events, *GPU_WORK[1:]))),
        ("the last merged interval is lost: add it behind the loop", without_the_last(work)),
        (SORT, in_listed_order(work)),
        (DUR, dur_as_end(work)),
        ("a µs has fractions: ts and dur are no whole numbers", covered(_whole_numbers(work))),
        ("a µs has fractions: ts and dur are no whole numbers", _share_of_whole_numbers(events) * whole),
        ("its pauses were counted: the GPU does nothing between two pieces of work", first_to_last(work)),
        ("that is the idle share; busy is the rest", whole - right),
        (MICROSECONDS, right * whole),
        (PERCENT, right * 100),
    ):
        yield sentence, us / whole
    for digits in (1, 2, 3):
        yield "a share is not rounded", round(right / whole, digits)
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


def _whole_numbers(events: Iterable[Event]) -> list[Event]:
    return [{"ts": int(e["ts"]), "dur": int(e["ts"] + e["dur"]) - int(e["ts"])} for e in events]


def _share_of_whole_numbers(events: list[Event]) -> float:
    return covered(_whole_numbers(of(events, *GPU_WORK))) / first_to_last(_whole_numbers(of(events)))
