"""What common mistakes give each rank of the data in exercise 3, as the numbers of its samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from labs_helpers.course.verdict import likely

Part = tuple[int, ...]  # the numbers of a rank's samples
BY_MP = "mp_idx chooses the part: then the ranks of one model, which have another mp_idx each, see other data"
BY_RANK = "rank chooses the part, as if every rank had a model of its own; the models are counted by dp_idx"
OWN = "there are mp_size · dp_size parts, one for each rank; the ranks of one model share one of dp_size parts"
IN_TURN = "every dp_size-th sample is taken, x[dp_idx::dp_size]; a part is one run of samples"
STOP = "a slice ends before its stop, so it is x[start : start + part]"


class Split(NamedTuple):
    """n samples on mp_size × dp_size ranks."""

    mp_size: int
    dp_size: int
    n: int

    @property
    def ranks(self) -> range:
        return range(self.mp_size * self.dp_size)

    def right(self) -> list[Part]:
        part = self.n // self.dp_size
        return [tuple(range(self.n))[rank // self.mp_size * part :][:part] for rank in self.ranks]

    def mistakes(self) -> Iterator[tuple[str, list[Part]]]:
        """Candidates: (cause, what each rank would have)."""
        (p, d, n), whole, right = self, tuple(range(self.n)), self.right()
        part, small = n // d, n // (p * d)

        def run(place: int, length: int) -> Part:
            return whole[place * length :][:length]

        for cause, samples in (
            (BY_MP, lambda rank: run(rank % p, part)),
            (BY_MP, lambda rank: run(rank % p, n // p)),
            (BY_RANK, lambda rank: run(rank, part)),
            (OWN, lambda rank: run(rank, small)),
            (OWN, lambda rank: run(rank // p, small)),
            ("the part is n / mp_size long; there are dp_size parts", lambda rank: run(rank // p, n // p)),
            (
                "dp_idx is rank // mp_size: a model has mp_size ranks, and here dp_size stands in its place",
                lambda rank: run(rank // d, part),
            ),
            ("dp_idx is rank // mp_size; here it is rank % dp_size", lambda rank: run(rank % d, part)),
            (IN_TURN, lambda rank: whole[rank // p :: d]),
            ("every dp_size-th sample is taken, from the rank on; a part is one run", lambda rank: whole[rank::d]),
            ("nothing is split: every rank has all samples", lambda rank: whole),
            ("every rank has the first part", lambda rank: whole[:part]),
            ("dp_idx counts from 0; here from 1", lambda rank: run(rank // p + 1, part)),
            (f"{STOP}, without − 1", lambda rank: right[rank][:-1]),
            (f"{STOP}, without + 1", lambda rank: whole[rank // p * part :][: part + 1]),
            ("the parts begin one sample too late", lambda rank: whole[rank // p * part + 1 :][:part]),
            ("a part has n / dp_size samples; here one more", lambda rank: run(rank // p, part + 1)),
            ("dp_idx is not multiplied by the part's length", lambda rank: whole[rank // p :][:part]),
            ("a slice is start : stop, not start : length", lambda rank: whole[rank // p * part : part]),
            ("the slice has no end", lambda rank: whole[rank // p * part :]),
            ("the slice has no start", lambda rank: whole[: (rank // p + 1) * part]),
            (
                "the parts are in reverse order: dp_idx 0 has the first samples",
                lambda rank: run(d - 1 - rank // p, part),
            ),
            ("the samples are in reverse order", lambda rank: right[rank][::-1]),
            ("one sample alone is taken, the one at dp_idx", lambda rank: (rank // p,)),
        ):
            yield cause, [samples(rank) for rank in self.ranks]


def cause_of_parts(split: Split, found: list[Part]) -> tuple[str, ...]:
    """The mistake that gives the ranks these samples; else what can be seen in them."""
    return likely(split.mistakes(), lambda answer: answer == found) or tuple(_seen(split, found))[:1]


def _seen(split: Split, found: list[Part]) -> Iterator[str]:
    models = found[:: split.mp_size]
    if any(found[rank] != models[rank // split.mp_size] for rank in split.ranks):
        yield "the ranks of one model have different samples; they differ in mp_idx and share dp_idx"
    taken = set().union(*models)
    steps = {b - a for one in models for a, b in pairwise(one)}
    if len(steps) == 1 and max(steps) > 1:
        yield f"the samples are {max(steps)} apart; a part is one run of samples"
    if lost := sorted(set(range(split.n)) - taken):
        yield f"some samples, such as {lost[0]}, are in no part"
    if steps != {1}:
        yield "the samples are in another order; the order of the whole is kept"


def text(samples: Part) -> str:
    """'samples 4 to 7', 'samples 0, 3, 6, …', 'no samples'."""
    if not samples:
        return "no samples"
    if samples == tuple(range(samples[0], samples[0] + len(samples))):
        return f"samples {samples[0]} to {samples[-1]}" if len(samples) > 1 else f"sample {samples[0]}"
    return f"samples {', '.join(map(str, samples[:5]))}{', …' * (len(samples) > 5)}"
