"""What the checks of lab 01 hold answers to, against the references, on traces drawn at random; every mistake shows."""

import random

import pytest

from labs_helpers.measure.trace import GPU_WORK, busy
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import (
    by_operation_causes,
    by_operation_traces,
    communication_causes,
    diagnose_causes,
    diagnose_traces,
    gpu_time_causes,
    gpu_time_traces,
)
from labs_helpers.transformer.lab01.checks.covered import covered
from labs_helpers.transformer.lab01.checks.part_costs import owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import ARROWS, LABELS, event, of
from tests.transformer.lab01.exercises.ex8_diagnose import diagnose

NAMES = ("ncclDevKernel", "gemm", "add", "copy_nccl")


def drawn_at_random(seed):
    """A trace of two threads and three streams; a part ends before the next of its thread begins."""
    draw, events, number = random.Random(seed), [], iter(range(1, 1000))
    for tid in (1, 2):
        at = 0.0
        for _ in range(draw.randrange(1, 6)):
            at += draw.randrange(1, 20) / 4
            length, first = draw.randrange(4, 60) / 4, next(number)
            events += (
                [event("user_annotation", draw.choice("abc"), at, length, tid, first)] if draw.random() < 0.7 else []
            )
            operation = event("cpu_op", draw.choice(("aten::mm", "aten::add")), at, length, tid, next(number))
            events.append(operation)
            for _ in range(draw.randrange(3)):
                correlation, start = next(number), at + draw.randrange(0, int(4 * length)) / 4
                events.append(event("cuda_runtime", "cudaLaunchKernel", start, 0.25, tid, correlation=correlation))
                for _ in range(draw.choice((0, 1, 1, 1, 2))):
                    id = draw.choice((operation["args"]["External id"], None, 999))
                    begins, dur = start + draw.randrange(1, 40) / 4, draw.randrange(1, 60) / 4
                    kind, stream = draw.choice(GPU_WORK), draw.choice((7, 13, 20))
                    events.append(event(kind, draw.choice(NAMES), begins, dur, stream, id, correlation))
            at += length + 0.25
    draw.shuffle(events)
    return [*LABELS, *events, *ARROWS]


@pytest.mark.parametrize("seed", range(60))
def test_references_and_checks_agree_on_any_trace(seed):
    events = drawn_at_random(seed)
    launches, share, exposed = exercises.gpu_time(events)
    whole = gpu_time_causes.whole_of(events)
    assert launches == len(of(events, "kernel"))
    assert share == pytest.approx(covered(of(events, *GPU_WORK)) / whole) == pytest.approx(busy(events))
    assert exposed == pytest.approx(communication_causes.exposed_us(events) / whole)
    table = by_operation_causes.table(by_operation_causes.pairs(events))
    assert {name: pytest.approx(row) for name, row in table.items()} == exercises.by_operation(events)
    if of(events, "user_annotation"):
        mine = parts(owned(events))
        assert {name: pytest.approx(row) for name, row in mine.items()} == diagnose(events)[0]


def told_apart(cases, causes, right, view):
    """The sentences of `causes`, and those of them that are the only one to give their answer in some case."""
    every, found = set(), set()
    for events in cases.values():
        answers = {}
        for sentence, answer in causes(events):
            every.add(sentence)
            if view(answer, events) not in (None, view(right(events), events)):
                answers.setdefault(view(answer, events), set()).add(sentence)
        found |= {sentence for sentences in answers.values() if len(sentences) == 1 for sentence in sentences}
    return every, found


def by_operation(events):
    return by_operation_causes.table(by_operation_causes.pairs(events))


def by_part(events):
    return parts(owned(events))


def number(answer, events):
    return round(answer, 9)


def names(answer, events):
    return frozenset(answer)


def column(i, right):
    def view(answer, events):
        rows = [answer.get(name) for name in right(events)]
        return tuple(round(row[i], 6) for row in rows) if all(rows) else None

    return view


@pytest.mark.parametrize(
    ("cases", "right", "columns"),
    [
        (gpu_time_traces, lambda events: exercises.gpu_time(events)[1], {gpu_time_causes.busy_causes: number}),
        (gpu_time_traces, lambda events: exercises.gpu_time(events)[2], {communication_causes.exposed_causes: number}),
        (
            by_operation_traces,
            by_operation,
            {
                by_operation_causes.name_causes: names,
                by_operation_causes.call_causes: column(0, by_operation),
                by_operation_causes.us_causes: column(1, by_operation),
            },
        ),
        (
            diagnose_traces,
            by_part,
            {
                diagnose_causes.name_causes: names,
                diagnose_causes.launch_causes: column(0, by_part),
                diagnose_causes.us_causes: column(1, by_part),
                diagnose_causes.span_causes: column(2, by_part),
            },
        ),
    ],
    ids=["busy", "exposed", "by_operation", "diagnose"],
)
def test_each_mistake_is_told_from_all_others_in_some_trace(cases, right, columns):
    told = [told_apart(cases.CASES, causes, right, view) for causes, view in columns.items()]
    assert set().union(*(every for every, _ in told)) - set().union(*(found for _, found in told)) == set()
