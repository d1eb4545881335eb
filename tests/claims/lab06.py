"""Compute the numbers in lab 06's text."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives import study
from labs_helpers.collectives.charts import measured_crossover
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.cost_model import terms
from labs_helpers.collectives.lab06 import checks  # noqa: F401  each check enters its exercise in SCORES
from labs_helpers.collectives.lab06.checks.ex6_fit_cost import NOISE
from labs_helpers.collectives.race.native_settings import SEGMENT
from labs_helpers.collectives.race.records import latest
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.measure.datasheet import KIB, MIB
from tests.claims.table import Claim, Given, Table

DOUBLING, RING = "recursive_doubling", "ring"


def minutes(first: int, last: int) -> int:
    return sum(SCORES.exercises[f"06/{number}"].minutes for number in range(first, last + 1))


def chunk_at_the_crossing() -> float:
    """KiB of an eighth of the vector from which on the ring is the faster one, on 8 ranks."""
    race = latest(study.load("16-core CPU"), "race", function="allreduce", ranks=8)
    of = race.set_index(["algorithm", "bytes"])["median_us"] / 1e6
    return measured_crossover(of[DOUBLING], of[RING])[0] / 8 / KIB


def messages(algorithm: str) -> float:
    return terms("allreduce", algorithm, 8).messages


def documented(ranks: int, size: int):
    """The records of one size of the documented call and of native."""
    rows = latest(study.load("4-core CPU"), "documented call", ranks=ranks)
    rows = rows[rows["bytes"] == size].set_index("algorithm")
    return rows.loc["auto, validate=True"], rows.loc["native"]


def overlap(ranks: int, size: int) -> bool:
    ours, native = documented(ranks, size)
    return ours["p20_us"] <= native["p80_us"] and native["p20_us"] <= ours["p80_us"]


def apart(ranks: int, size: int) -> float:
    """The documented call's time over native's, where their spreads do not overlap."""
    assert not overlap(ranks, size)
    ours, native = documented(ranks, size)
    return ours["median_us"] / native["median_us"]


def no_longer(size: int) -> bool:
    return all(
        ours["median_us"] <= native["median_us"] for ours, native in (documented(ranks, size) for ranks in (4, 8))
    )


def longest_chunk_of_one_number() -> int:
    return max(stop - start for start, stop in chunk_bounds(1, 8)) * np.dtype(float).itemsize


TABLE = Table(
    claims=(
        Claim("60 minutes of exercises", lambda: minutes(1, 4)),
        Claim("(75 of exercises", lambda: minutes(5, 8)),
        Claim("some that are 5% off", lambda: 100 * abs(NOISE).max()),
        Claim("of the vector, 40 KiB at the crossing", chunk_at_the_crossing),
        Claim("14 times around the ring", lambda: messages(RING)),
        Claim("only 3 times with", lambda: messages(DOUBLING)),
        Claim("one segment size, 1 MiB", lambda: SEGMENT / MIB),
        Claim("at 1 KiB 1.4 times on 4 ranks", lambda: [1, apart(4, KIB), 4]),
        Claim("the spreads overlap at 1 KiB", lambda: overlap(8, KIB) * 1),
        Claim(
            "At 64 KiB and at 1 MiB it takes no longer",
            lambda: [no_longer(64 * KIB) * 64, no_longer(MIB) * 1],
        ),
        Claim("of at most 8 bytes each", longest_chunk_of_one_number),
    ),
    given=(
        Given("a message of 4,000 bytes", "a size that the cell above tries"),
        Given("At 4,096 bytes", "a size that the cell above tries"),
        Given("it is 4 KB including", "Open MPI's default for messages in shared memory"),
        Given("is wrong at 8 bytes too", "the smallest size that the cell above tries"),
        Given("ranks with 1 MB", "the size that the question asks for"),
        Given("line at 1×", "native's best over itself"),
    ),
)
