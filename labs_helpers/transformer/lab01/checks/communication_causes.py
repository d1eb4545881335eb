"""The time in which the GPU does nothing but communicate, and what common mistakes make of it."""

from collections.abc import Callable, Iterable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import added_up, covered
from labs_helpers.transformer.lab01.checks.gpu_time_causes import MICROSECONDS, ON_CPU, PERCENT, communicates, whole_of
from labs_helpers.transformer.lab01.checks.practice_traces import of

HIDDEN = "all communication was counted; exposed is what no other work hides"
NOT_FOUND = 'no communication was found: the name of a kernel that communicates begins with "nccl", and goes on'
COPIES = "copies and memsets are no communication: they hide it, as kernels do"


def exposed_us(events: list[Event], talks: Callable = communicates, hiding: Iterable[str] = GPU_WORK) -> float:
    """The time in which only communication runs. talks: which work that is; hiding: the categories that hide it."""
    others = [event for event in of(events, *hiding) if not talks(event)]
    return covered([*filter(talks, of(events, *GPU_WORK)), *others]) - covered(others)


def exposed_causes(events: list[Event]) -> Candidates:
    whole, work, right = whole_of(events), of(events, *GPU_WORK), exposed_us(events)
    talk, others = list(filter(communicates, work)), [event for event in work if not communicates(event)]
    hidden = [[_overlap(event, other) for other in others] for event in talk]
    each = [exposed_us([event, *others]) for event in talk]
    for sentence, us in (
        (HIDDEN, covered(talk)),
        (HIDDEN, added_up(talk)),
        ("that is the communication that is hidden; exposed is the rest", covered(talk) - right),
        (COPIES, exposed_us(events, hiding=("kernel",))),
        (
            "only work at the same time hides communication: other µs are not subtracted",
            covered(talk) - covered(others),
        ),
        (
            "only work at the same time hides communication: other µs are not subtracted",
            added_up(talk) - added_up(others),
        ),
        (COPIES, covered(work) - covered(e for e in others if e["cat"] == "kernel")),
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
