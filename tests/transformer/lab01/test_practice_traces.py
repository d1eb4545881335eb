"""Compare the computations in lab 01's checks with the references, on random traces."""

import random

import pytest

from labs_helpers.measure.trace import GPU_WORK, busy
from labs_helpers.measure.written_trace import ARROWS, LABELS, event, of
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import (
    diagnose_mistakes,
    gpu_time_mistakes,
)
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
    assert (launches, pytest.approx(share), pytest.approx(exposed)) == gpu_time_mistakes.right(events)
    assert share == pytest.approx(busy(events))
    if of(events, "user_annotation"):
        mine = diagnose_mistakes.right(events)
        assert {name: pytest.approx(row) for name, row in mine.table.items()} == diagnose(events)[0]
