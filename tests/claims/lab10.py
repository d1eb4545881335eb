"""Compute the numbers in lab 10's text from the course's own functions."""

from labs_helpers.pipeline.formulas import bubble_share
from labs_helpers.pipeline.schedules import interleaved, one_f_one_b
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import peak_stashes
from tests.claims.table import Claim, Given, Table

RANKS, MICRO_BATCHES = 4, 8
SCHEDULES = interleaved(RANKS, MICRO_BATCHES, 2), one_f_one_b(RANKS, MICRO_BATCHES)
TRANSFERS = (0.0, 0.4, 0.8, 1.2, 1.6, 3.2)  # of the notebook's table


def cuts() -> list[float]:
    return [schedule.stages - 1 for schedule in SCHEDULES]


def stashes() -> list[float]:
    return [peak_stashes(schedule)[0] for schedule in SCHEDULES]


def losing() -> float:
    """Return the shortest message with which interleaving takes longer than 1F1B."""
    halved, whole = SCHEDULES

    def loses(transfer: float) -> bool:
        times = Times(0.5, 0.5, 0.5, transfer=transfer), Times(transfer=transfer)
        return simulate(halved, times[0]).seconds > simulate(whole, times[1]).seconds

    return next(filter(loses, TRANSFERS))


TABLE = Table(
    claims=(
        Claim("27% of the step", lambda: 100 * bubble_share(RANKS, MICRO_BATCHES)),
        Claim("crosses 7 cuts instead of 3", cuts),
        Claim("11 stashes instead of 4", stashes),
        Claim("loses from 1.6 on", losing),
    ),
    given=(Given("waits* for 15 ms per forward pass and 30 ms", "the stages of the measurement wait that long"),),
)
