"""The samples that common mistakes give a rank in exercise 3: functions of (samples, mp_size, dp_size, rank)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Part = tuple[int, ...]  # the numbers of a rank's samples
BY_MP = "mp_idx chooses the part, so the ranks of one model, whose mp_idx differ, see different data"
BY_RANK = "rank chooses the part, as if every rank had its own model; dp_idx numbers the models"
OWN = (
    "it makes mp_size · dp_size parts, one per rank; there are only dp_size parts, and the ranks of one model share one"
)
IN_TURN = "it takes every dp_size-th sample, x[dp_idx::dp_size]; a part is a block of consecutive samples"
STOP = "a slice ends before its stop, so it is x[start : start + part]"
DP_FOR_MP = "it computes rank // dp_size; dp_idx is rank // mp_size, because a model has mp_size ranks"


def right(x: Part, p: int, d: int, r: int) -> Part:
    """A rank's samples, with the arguments of the mistakes."""
    return _run(x, r // p, len(x) // d)


def _run(x: Part, place: int, length: int) -> Part:
    return x[place * length :][:length]


MISTAKES: Sequence[tuple[str, Callable[[Part, int, int, int], Part]]] = (
    (BY_MP, lambda x, p, d, r: _run(x, r % p, len(x) // d)),
    (BY_MP, lambda x, p, d, r: _run(x, r % p, len(x) // p)),
    (BY_RANK, lambda x, p, d, r: _run(x, r, len(x) // d)),
    (OWN, lambda x, p, d, r: _run(x, r, len(x) // (p * d))),
    (OWN, lambda x, p, d, r: _run(x, r // p, len(x) // (p * d))),
    ("a part has n / mp_size samples; there are dp_size parts", lambda x, p, d, r: _run(x, r // p, len(x) // p)),
    (DP_FOR_MP, lambda x, p, d, r: _run(x, r // d, len(x) // d)),
    ("it computes rank % dp_size; dp_idx is rank // mp_size", lambda x, p, d, r: _run(x, r % d, len(x) // d)),
    (IN_TURN, lambda x, p, d, r: x[r // p :: d]),
    (
        "it takes every dp_size-th sample, starting at the rank; a part is a block of consecutive samples",
        lambda x, p, d, r: x[r::d],
    ),
    ("nothing is split: every rank has all samples", lambda x, p, d, r: x),
    ("every rank has the first part", lambda x, p, d, r: x[: len(x) // d]),
    ("dp_idx is counted from 1; it starts at 0", lambda x, p, d, r: _run(x, r // p + 1, len(x) // d)),
    (f"{STOP}, without − 1", lambda *given: right(*given)[:-1]),
    (f"{STOP}, without + 1", lambda x, p, d, r: x[r // p * (len(x) // d) :][: len(x) // d + 1]),
    ("the parts start one sample too late", lambda x, p, d, r: _run(x[1:], r // p, len(x) // d)),
    ("a part has one sample too many; it should have n / dp_size", lambda x, p, d, r: _run(x, r // p, len(x) // d + 1)),
    ("dp_idx is not multiplied by the part's length", lambda x, p, d, r: x[r // p :][: len(x) // d]),
    (
        "the slice is start : length; Python expects start : stop",
        lambda x, p, d, r: x[r // p * (len(x) // d) : len(x) // d],
    ),
    ("the slice has no end", lambda x, p, d, r: x[r // p * (len(x) // d) :]),
    ("the slice has no start", lambda x, p, d, r: x[: (r // p + 1) * (len(x) // d)]),
    (
        "the parts are in reverse order; dp_idx 0 gets the first samples",
        lambda x, p, d, r: _run(x, d - 1 - r // p, len(x) // d),
    ),
    ("the samples are in reverse order", lambda *given: right(*given)[::-1]),
    ("it takes only one sample, the one at dp_idx", lambda x, p, d, r: (x[r // p],)),
)


def seen(found: Sequence[Part], mp_size: int, n: int) -> Iterator[str]:
    """Describe how wrong samples differ from the right ones, where no known mistake explains them."""
    models = found[::mp_size]
    if any(part != models[rank // mp_size] for rank, part in enumerate(found)):
        yield "the ranks of one model have different samples; those ranks differ in mp_idx and share dp_idx"
    steps = {b - a for one in models for a, b in pairwise(one)}
    if len(steps) == 1 and max(steps) > 1:
        yield f"the samples are {max(steps)} apart; a part is a block of consecutive samples"
    if lost := sorted(set(range(n)).difference(*models)):
        yield f"some samples, such as {lost[0]}, are in no part"
    if steps != {1}:
        yield "the samples are out of order; a part keeps the order of the whole data"
