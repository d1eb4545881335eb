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


def right(x: Part, p: int, d: int, rank: int) -> Part:
    """A rank's samples, as the mistakes are."""
    part = len(x) // d
    return x[rank // p * part :][:part]


def _run(place: Callable, length: Callable = lambda n, p, d: n // d) -> Callable:
    """One run of samples: the place-th of this length. place(rank, p, d), length(n, p, d)."""

    def samples(x: Part, p: int, d: int, rank: int) -> Part:
        size = length(len(x), p, d)
        return x[max(0, place(rank, p, d)) * size :][:size]

    return samples


def _sliced(start: Callable, stop: Callable) -> Callable:
    """x[start : stop], functions of (dp_idx, part, n)."""

    def samples(x: Part, p: int, d: int, rank: int) -> Part:
        given = rank // p, len(x) // d, len(x)
        return x[start(*given) : stop(*given)]

    return samples


def _model(rank: int, p: int, d: int) -> int:
    return rank // p


MISTAKES: Sequence[tuple[str, Callable[..., Part]]] = (
    (BY_MP, _run(lambda rank, p, d: rank % p)),
    (BY_MP, _run(lambda rank, p, d: rank % p, lambda n, p, d: n // p)),
    (BY_RANK, _run(lambda rank, p, d: rank)),
    (OWN, _run(lambda rank, p, d: rank, lambda n, p, d: n // (p * d))),
    (OWN, _run(_model, lambda n, p, d: n // (p * d))),
    ("the part is n / mp_size long; there are dp_size parts", _run(_model, lambda n, p, d: n // p)),
    (DP_FOR_MP, _run(lambda rank, p, d: rank // d)),
    ("dp_idx is rank // mp_size; here it is rank % dp_size", _run(lambda rank, p, d: rank % d)),
    (IN_TURN, lambda x, p, d, rank: x[rank // p :: d]),
    ("every dp_size-th sample is taken, from the rank on; a part is one run", lambda x, p, d, rank: x[rank::d]),
    ("nothing is split: every rank has all samples", lambda x, p, d, rank: x),
    ("every rank has the first part", _run(lambda rank, p, d: 0)),
    ("dp_idx counts from 0; here from 1", _run(lambda rank, p, d: rank // p + 1)),
    (f"{STOP}, without − 1", _sliced(lambda i, part, n: i * part, lambda i, part, n: (i + 1) * part - 1)),
    (f"{STOP}, without + 1", _sliced(lambda i, part, n: i * part, lambda i, part, n: (i + 1) * part + 1)),
    (
        "the parts begin one sample too late",
        _sliced(lambda i, part, n: i * part + 1, lambda i, part, n: (i + 1) * part + 1),
    ),
    ("a part has n / dp_size samples; here one more", _run(_model, lambda n, p, d: n // d + 1)),
    ("dp_idx is not multiplied by the part's length", _sliced(lambda i, part, n: i, lambda i, part, n: i + part)),
    ("a slice is start : stop, not start : length", _sliced(lambda i, part, n: i * part, lambda i, part, n: part)),
    ("the slice has no end", _sliced(lambda i, part, n: i * part, lambda i, part, n: n)),
    ("the slice has no start", _sliced(lambda i, part, n: 0, lambda i, part, n: (i + 1) * part)),
    ("the parts are in reverse order: dp_idx 0 has the first samples", _run(lambda rank, p, d: d - 1 - rank // p)),
    ("the samples are in reverse order", lambda *given: right(*given)[::-1]),
    ("one sample alone is taken, the one at dp_idx", lambda x, p, d, rank: (x[rank // p],)),
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
