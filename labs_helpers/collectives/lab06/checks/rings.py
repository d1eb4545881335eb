"""Round a ring: the cases of exercises 3 and 4, what may travel there, and what comes of a mistake."""

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
    """Raises Wrong if a message does not go to a neighbour, or if in `steps` steps float32 travels."""
    for m in run.messages:
        left, right = (m.source - 1) % run.size, (m.source + 1) % run.size
        if m.dest not in (left, right):
            neighbours = f"round a ring it sends to its neighbours alone, ranks {left} and {right}"
            raise Wrong(case, f"rank {m.source} sends to rank {m.dest}; {neighbours}")
    sent, needed = sum(run.bytes_sent), steps * 8 * n
    if sent and run.messages_sent == [steps] * run.size and 2 * sent == needed:
        raise Wrong(
            case,
            f"the ranks sent {sent} bytes in all, half of {needed}: the elements have 8 bytes, and 4 of each travel; "
            "send and receive in the vector's own dtype",
        )


def too_much(messages, sent: int, needed: int, n: int) -> str:
    """The cause where `sent` bytes travelled in `messages`, and `needed` are enough; '' where it is not known."""
    if {m.nbytes for m in messages} == {8 * n}:
        return "each step sends the whole vector; one chunk is enough"
    return "a step too many, or a part of the vector that the other side has already" if sent > needed else ""


def ring(
    data, steps=None, sent=-1, received=-2, turn: int = 1, way: int = 0, adds: bool = True, first=False, by=(1, 1)
) -> list:
    """What all ranks hold after `steps` (size − 1) of a ring that begins with `data`: in each, rank r sends chunk
    r + turn·(sent − step) to rank r + (way or turn), and receives chunk r + turn·(received − step). first: what is sent
    is always what it had at first. by: how often the step counts in what is sent, and in what is received."""
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
