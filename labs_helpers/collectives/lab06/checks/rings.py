"""The cases of exercises 3 and 4: what may travel around a ring, and the result of each mistake."""

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.course.verdict import Wrong

CASES = (
    ("3 ranks, 12 elements, equal chunks", 3, 12),
    ("5 ranks, 13 elements, chunks of 3 and of 2", 5, 13),
    ("1 rank", 1, 4),
    ("2 ranks, 7 elements", 2, 7),
    ("8 ranks, 27 elements", 8, 27),
    ("4 ranks, 2 elements, two chunks empty", 4, 2),
)


def expect_ring(case: str, run, steps: int, n: int) -> None:
    """Raise Wrong if a message does not go to a neighbor, or if float32 travels in `steps` steps."""
    for m in run.messages:
        left, right = (m.source - 1) % run.size, (m.source + 1) % run.size
        if m.dest not in (left, right):
            neighbors = f"around a ring a rank sends only to its neighbors, ranks {left} and {right}"
            raise Wrong(case, f"rank {m.source} sends to rank {m.dest}; {neighbors}")
    sent, needed = sum(run.bytes_sent), steps * 8 * n
    if sent and run.messages_sent == [steps] * run.size and 2 * sent == needed:
        raise Wrong(
            case,
            f"the ranks sent {sent} bytes in all, half of {needed}: the elements have 8 bytes, and 4 of each travel; "
            "send and receive in the vector's own dtype",
        )


def too_much(messages, sent: int, needed: int, n: int) -> str:
    """Return the cause if `messages` carried `sent` bytes and `needed` are enough; '' if it is unknown."""
    if {m.nbytes for m in messages} == {8 * n}:
        return "each step sends the whole vector, but one chunk is enough"
    return "one step too many, or a part of the vector that the other side already has" if sent > needed else ""


def ring(
    data, steps=None, sent=-1, received=-2, turn: int = 1, way: int = 0, adds: bool = True, first=False, by=(1, 1)
) -> list:
    """Return all ranks' data after `steps` (size − 1) of a ring that starts with `data`.

    In each step, rank r sends chunk r + turn·(sent − step) to rank r + (way or turn), and receives chunk r +
    turn·(received − step). first: it always sends its original data. by: how much the step counts in the sent and in
    the received chunk number.
    """
    data, size, bounds = [vector.copy() for vector in data], len(data), chunk_bounds(len(data[0]), len(data))
    begun = [vector.copy() for vector in data]
    for step in range(size - 1 if steps is None else steps):
        before = begun if first else [vector.copy() for vector in data]
        for rank in range(size):
            left = (rank - (way or turn)) % size
            part = before[left][slice(*bounds[(left + turn * (sent - by[0] * step)) % size])]
            own = data[rank][slice(*bounds[(rank + turn * (received - by[1] * step)) % size])]
            own[:] = own + part if adds else part
    return data
