"""What common mistakes give a rank of the data in exercise 3: functions of (samples, mp_size, dp_size, rank)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Part = tuple[int, ...]  # the numbers of a rank's samples
BY_MP = "mp_idx chooses the part: then the ranks of one model, which have another mp_idx each, see other data"
BY_RANK = "rank chooses the part, as if every rank had a model of its own; the models are counted by dp_idx"
OWN = "there are mp_size · dp_size parts, one for each rank; the ranks of one model share one of dp_size parts"
IN_TURN = "every dp_size-th sample is taken, x[dp_idx::dp_size]; a part is one run of samples"
STOP = "a slice ends before its stop, so it is x[start : start + part]"
DP_FOR_MP = "dp_idx is rank // mp_size: a model has mp_size ranks, and here dp_size stands in its place"


def right(x: Part, p: int, d: int, r: int) -> Part:
    """A rank's samples, as the mistakes are."""
    return _run(x, r // p, len(x) // d)


def _run(x: Part, place: int, length: int) -> Part:
    return x[place * length :][:length]


MISTAKES: Sequence[tuple[str, Callable[[Part, int, int, int], Part]]] = (
    (BY_MP, lambda x, p, d, r: _run(x, r % p, len(x) // d)),
    (BY_MP, lambda x, p, d, r: _run(x, r % p, len(x) // p)),
    (BY_RANK, lambda x, p, d, r: _run(x, r, len(x) // d)),
    (OWN, lambda x, p, d, r: _run(x, r, len(x) // (p * d))),
    (OWN, lambda x, p, d, r: _run(x, r // p, len(x) // (p * d))),
    ("the part is n / mp_size long; there are dp_size parts", lambda x, p, d, r: _run(x, r // p, len(x) // p)),
    (DP_FOR_MP, lambda x, p, d, r: _run(x, r // d, len(x) // d)),
    ("dp_idx is rank // mp_size; here it is rank % dp_size", lambda x, p, d, r: _run(x, r % d, len(x) // d)),
    (IN_TURN, lambda x, p, d, r: x[r // p :: d]),
    ("every dp_size-th sample is taken, from the rank on; a part is one run", lambda x, p, d, r: x[r::d]),
    ("nothing is split: every rank has all samples", lambda x, p, d, r: x),
    ("every rank has the first part", lambda x, p, d, r: x[: len(x) // d]),
    ("dp_idx counts from 0; here from 1", lambda x, p, d, r: _run(x, r // p + 1, len(x) // d)),
    (f"{STOP}, without − 1", lambda *given: right(*given)[:-1]),
    (f"{STOP}, without + 1", lambda x, p, d, r: x[r // p * (len(x) // d) :][: len(x) // d + 1]),
    ("the parts begin one sample too late", lambda x, p, d, r: _run(x[1:], r // p, len(x) // d)),
    ("a part has n / dp_size samples; here one more", lambda x, p, d, r: _run(x, r // p, len(x) // d + 1)),
    ("dp_idx is not multiplied by the part's length", lambda x, p, d, r: x[r // p :][: len(x) // d]),
    ("a slice is start : stop, not start : length", lambda x, p, d, r: x[r // p * (len(x) // d) : len(x) // d]),
    ("the slice has no end", lambda x, p, d, r: x[r // p * (len(x) // d) :]),
    ("the slice has no start", lambda x, p, d, r: x[: (r // p + 1) * (len(x) // d)]),
    (
        "the parts are in reverse order: dp_idx 0 has the first samples",
        lambda x, p, d, r: _run(x, d - 1 - r // p, len(x) // d),
    ),
    ("the samples are in reverse order", lambda *given: right(*given)[::-1]),
    ("one sample alone is taken, the one at dp_idx", lambda x, p, d, r: (x[r // p],)),
)


def seen(found: Sequence[Part], mp_size: int, n: int) -> Iterator[str]:
    """What can be seen in the samples of all ranks that no mistake explains."""
    models = found[::mp_size]
    if any(part != models[rank // mp_size] for rank, part in enumerate(found)):
        yield "the ranks of one model have different samples; they differ in mp_idx and share dp_idx"
    steps = {b - a for one in models for a, b in pairwise(one)}
    if len(steps) == 1 and max(steps) > 1:
        yield f"the samples are {max(steps)} apart; a part is one run of samples"
    if lost := sorted(set(range(n)).difference(*models)):
        yield f"some samples, such as {lost[0]}, are in no part"
    if steps != {1}:
        yield "the samples are in another order; the order of the whole is kept"
