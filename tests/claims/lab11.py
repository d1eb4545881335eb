"""Compute the numbers in lab 11's text from the records, and from the jobs and rules themselves."""

from collections.abc import Sequence
from functools import cache

import torch

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.records import recorded
from labs_helpers.clinic.rules import GUIDE
from labs_helpers.communication.silent import SilentCommunication
from tests.claims.table import Claim, Given, Table

SEEDS, RANKS = range(1, 7), range(2)


def found(job: str, finding: str, state: str = "sick") -> list[float]:
    """Return the smallest and the largest finding that is recorded of a job."""
    rows = [row["findings"][finding] for row in recorded() if (row["job"], row["state"]) == (job, state)]
    return [min(rows), max(rows)]


def percent(shares: Sequence[float]) -> list[float]:
    return [100 * share for share in shares]


def bounds(finding: str) -> list[float]:
    """Return the bounds, in percent, at which the guide's tree looks at a finding."""
    return percent([bound for rule in GUIDE for name, _, bound in rule.conditions if name == finding])


@cache
def batches_of_stragglers() -> list[float]:
    """Return how many times as large as the other rank's a straggler's batch is, for each case that seeds draw."""
    straggler, ratios = jobs()["straggler"].sick, set[float]()
    for seed in SEEDS:
        sizes = [straggler(SilentCommunication(rank, len(RANKS)), seed).loader.batch_size or 0 for rank in RANKS]
        ratios.add(max(sizes) / min(sizes))
    return sorted(ratios)


TABLE = Table(
    claims=(
        Claim(
            "a batch twice as large takes 27 to 33% longer",
            lambda: percent([ms - 1 for ms in found("tiny_batch", "with twice the batch")]),
        ),
        Claim("has a batch 4 or 8 times as large", batches_of_stragglers),
        Claim("it takes 26 to 34% of this job's step", lambda: percent(found("straggler", "communication"))),
        Claim("10 to 15% of the healthy one's", lambda: percent(found("healthy", "communication"))),
        Claim("only the 4 bytes of each loss", lambda: torch.float32.itemsize),
        Claim("8 bytes per tensor", lambda: torch.int64.itemsize),
        Claim("is the GPU's utilization below 50%", lambda: bounds("utilization")),
        Claim("less than 80% of its memory", lambda: 100 - bounds("headroom")[0]),
        Claim("more than 20% of the step", lambda: bounds("communication")),
        Claim("scaling efficiency below 70%", lambda: bounds("without communication")),
        Claim("How many of the 15 sick jobs", lambda: sum(job.cause != HEALTHY for job in jobs().values())),
        Claim("20 messages and one", lambda: found("all_reduce_per_parameter", "collectives")[0]),
        Claim("takes 40 to 42 ms, and", lambda: found("item_every_step", "ms")),
        Claim("39 to 42 ms when it is cured", lambda: found("item_every_step", "ms", "cured")),
    ),
    given=(
        Given("is at most 10% of the time per step", "the exercise's definition of a straggler"),
        Given("the last 2,000 collectives", "PyTorch's default of TORCH_FR_BUFFER_SIZE"),
        Given("by default after 10 minutes", "PyTorch's default for NCCL, absent from its builds for CPUs"),
        Given("loader takes 100 ms, the computation beside it takes 100 ms, and the goal is 75 ms", "a hint's example"),
        Given("GPU utilization is 98%", "the question's example"),
    ),
)
