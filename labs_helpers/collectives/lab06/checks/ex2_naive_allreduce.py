"""Check exercise 2 of lab 06: sums, a maximum, and the bytes that go through the root."""

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks import vectors
from labs_helpers.collectives.lab06.checks.on_ranks import called, on_ranks, unused
from labs_helpers.collectives.lab06.checks.vectors import into_recv, tagged
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong


@exercise("06/2", "naive all-reduce", points=10, minutes=15, reference=exercises.naive_allreduce)
def naive_allreduce(student):
    for case, size, n in (
        ("3 ranks, 5 elements", 3, 5),
        ("2 ranks, 7 elements", 2, 7),
        ("5 ranks, 6 elements", 5, 6),
        ("1 rank", 1, 4),
        ("4 ranks, nothing to reduce", 4, 0),
    ):
        own = into_recv(sends := tagged(size, n), np.add)
        run = on_ranks(case, student, called, own)
        vectors.expect_unchanged(case, sends, tagged(size, n))
        vectors.expect_sum(case, *vectors.results(own), causes(size, n, unused(student, run)))
        yield case
    yield vectors.check_maximum(student, into_recv)
    case = "5 ranks, 8,000 bytes"
    run = on_ranks(case, student, called, into_recv(tagged(5, 1000), np.add))
    received, (sent, *others) = run.bytes_received[0], run.bytes_sent
    if received != 32_000 or sent != 32_000 or max(others) != 8000:
        raise Wrong(
            case,
            f"the root receives {received:,} bytes and sends {sent:,}, the others send {others}; expected 32,000, "
            "32,000 and 8,000 each: every message goes to the root or comes from it, one each",
            cause="another rank is the root; it is rank 0" if sent < max(others) == 32_000 else "",
        )
    if run.messages_sent != [4, 1, 1, 1, 1]:
        sent = f"the ranks sent {run.messages_sent} messages, 4 from the root and 1 from each other rank are enough"
        pieces = "a vector is sent in pieces; each message costs time, so send it whole"
        raise Wrong(case, sent, cause=pieces if min(m.nbytes for m in run.messages) < 8000 else "")
    yield f"{case}: 32,000 go to the root, and 32,000 come from it"
    yield vectors.check_real_ranks(student, into_recv, 4, 1000)


def causes(size: int, n: int, unused: str):
    """Return cause → all ranks' recvs."""
    parts, total, blank = np.array(tagged(size, n)), sum(tagged(size, n)), vectors.unwritten(n)
    others = size - 1
    if unused:
        yield unused, [blank] * size
        yield unused, [total] + [blank] * others
        yield unused, [parts[0]] + [total] * others
        yield unused, [parts[0]] * size
    else:
        yield "the root reduces into recv before its own vector is in it: recv[:] = send first", [blank] * size
    yield "the result is not sent back to the others", [total] + [blank] * others
    yield "the root stores nothing in its recv", [blank] + [total] * others
    unfinished = "the others do not get the finished result back"
    yield unfinished, [total] + [parts[0]] * others
    yield unfinished, [total, *np.cumsum(parts, 0)[1:]]
    yield unfinished, [total] + [parts[-1]] * others
    yield "the sum is divided by the number of ranks; only op is asked for", [total / size] * size
    lost = "arriving vectors are not reduced into it; op(recv, part) without out=recv changes nothing"
    yield f"recv holds the root's own vector alone: {lost}", [parts[0]] * size
    for rank in range(1, size):
        yield f"recv holds rank {rank}'s vector alone: each vector replaces the one before", [parts[rank]] * size
    yield "the root's own part is forgotten", [total - parts[0]] * size
    yield "the others reduce the finished result again, with their own vectors", [total, *(total + parts[1:])]
    yield "the root's own part is added twice", [total + parts[0]] * size
