"""Check exercise 1 of lab 06: whose block each rank ends with."""

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.on_ranks import called, left, on_ranks, on_real_ranks, unused
from labs_helpers.collectives.lab06.checks.vectors import expect_results, expect_unchanged, unwritten
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong


@exercise("06/1", "ring shift", points=5, minutes=10, reference=exercises.ring_shift)
def ring_shift(student):
    for case, size, block in (
        *((f"{size} ranks", size, np.arange(6.0)) for size in (2, 4, 3, 5, 8)),
        ("1 rank, its own neighbor", 1, np.arange(6.0)),
        ("3 ranks, int64 beyond 2**53", 3, 2**60 + np.arange(6)),
        ("3 ranks, float64 that no float32 holds", 3, np.arange(6.0) + 1 / 3),
    ):
        own = _send_and_recv(size, block)
        run = on_ranks(case, student, called, own)
        _expect_shifted(case, own, block, unused(student, run))
        if size > 1 and run.messages_sent != [1] * size:
            raise Wrong(case, f"the ranks sent {run.messages_sent} messages; one each is enough")
        yield case
    case = "the same function on 3 real ranks"
    _expect_shifted(case, on_real_ranks(case, student, left, _send_and_recv(3, np.arange(6.0))), np.arange(6.0))
    yield case


def _send_and_recv(size: int, block) -> list[tuple]:
    """Return buffers in which rank r sends 100·r + block."""
    return [(100 * rank + block, unwritten(block.size, block.dtype)) for rank in range(size)]


def _expect_shifted(case: str, left, block, unused: str = "") -> None:
    """Raise Wrong unless the blocks moved. left: (send, recv) as each rank left them. unused: why recv may be
    unchanged."""
    sends, recvs = map(np.array, zip(*left, strict=True))
    before, blank = map(np.array, zip(*_send_and_recv(len(left), block), strict=True))
    if np.array_equal([sends, recvs], [blank, blank], equal_nan=block.dtype.kind == "f"):
        swapped = "the two are swapped: recv is sent, and send receives"
        raise Wrong(case, "every rank's send was overwritten, and recv did not change.", cause=swapped)
    expect_unchanged(case, sends, before)
    expect_results(case, recvs, np.roll(before, 1, 0), causes(recvs, before, blank, unused))


def causes(recvs, sends, blank, unused):
    """Return cause → all ranks' recvs. sends: what each rank had to send. blank: recvs before the call, and why they
    may stay."""
    expected, size, dtype = np.roll(sends, 1, 0), len(sends), sends.dtype
    pairs = sends[(np.arange(size) ^ 1) % size]
    wrong = (recvs != expected).any(1, keepdims=True)
    yield "the blocks travel the wrong way: each rank has the block of the rank on its right", np.roll(sends, -1, 0)
    yield "two ranks each exchange their blocks; a ring passes them all on to the right", pairs
    yield unused or "nothing was received: recv did not change", np.where(wrong, blank, expected)
    yield "recv holds the rank's own block", np.where(wrong, sends, expected)
    yield "the block traveled as float32", expected.astype(np.float32).astype(dtype)
    yield "the block traveled as float64", expected.astype(np.float64).astype(dtype)
