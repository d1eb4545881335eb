"""Check exercise 2 of lab 03: tiles, waves, and how full the last wave is."""

from itertools import pairwise

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_number, expect_tuple
from labs_helpers.course.verdict.returned import expect_order
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded

CASES = (  # M, N, config, at_once
    (4096, 4096, Config(128, 256, 64), 132),
    (1152, 4096, Config(128, 256, 64), 132),
    (2048, 1024, Config(128, 64, 32), 4),
    (200, 1000, Config(64, 256, 32), 3),
    (1, 1, Config(64, 64, 32), 132),
    (1024, 1056, Config(128, 64, 32), 136),
    (4096, 1024, Config(128, 64, 32), 1),
)


@exercise("03/2", "waves", points=10, minutes=10, reference=exercises.waves)
def waves(student):
    for M, N, config, at_once in CASES:
        case = f"{M}×{N}, tiles of {config.BLOCK_M}×{config.BLOCK_N}, {at_once} at a time"
        answer = expect_tuple(case, student(M, N, config, at_once), "tiles", "waves", "last")
        tiles, count, last = right = exercises.waves(M, N, config, at_once)
        expect_order(case, answer, right, "tiles", "waves", "last")
        expect_number(case, "tiles", answer[0], tiles, tile_causes(M, N, config))
        expect_number(case, "waves", answer[1], count, wave_causes(tiles, at_once))
        expect_number(case, "last", answer[2], last, last_causes(tiles, count, last, at_once), within=1e-9)
        yield f"{case}: {tiles} tiles, {count} waves, the last {last:.0%} full"
    curve = recorded.wave_curve().to_dict("records")
    rates = [row["M"] / row["median_ms"] for row in curve]
    counts = [student(row["M"], row["N"], recorded.config_of(row), 132)[1] for row in curve]
    steps = [i for i, (before, after) in enumerate(pairwise(counts)) if after > before]
    dips = sum(rates[i + 1] < rates[i] for i in steps)
    yield f"the recorded H200 is slower after {dips} of the {len(steps)} steps from one wave to the next"


def tile_causes(M: int, N: int, config):
    down, across = M / config.BLOCK_M, N / config.BLOCK_N
    up, over = -(-M // config.BLOCK_M), -(-N // config.BLOCK_N)
    floors = int(down) * int(across), up * int(across), int(down) * over
    yield "a partial tile is a tile too: round up", floors
    yield (
        "each of the two directions rounds up by itself",
        (-(-M * N // (config.BLOCK_M * config.BLOCK_N)), down * across),
    )
    yield "BLOCK_M and BLOCK_N are swapped", -(-M // config.BLOCK_N) * -(-N // config.BLOCK_M)
    yield (
        "the result is M×N, so BLOCK_K plays no role",
        (
            -(-M // config.BLOCK_M) * -(-N // config.BLOCK_K),
            -(-M // config.BLOCK_K) * -(-N // config.BLOCK_N),
        ),
    )
    yield "multiply the tiles of the two directions; do not add them", up + over
    yield "-a // b rounds up but is negative; use -(-a // b)", tuple(-some for some in (up * over, up * int(across)))
    yield (
        "one is added even where the division is exact; round up with -(-a // b)",
        ((int(down) + 1) * (int(across) + 1), (int(down) + 1) * over, up * (int(across) + 1)),
    )


def wave_causes(tiles: int, at_once: int):
    yield "the partial last wave counts too: round up", tiles // at_once
    yield "the number of waves is an integer: round up", tiles / at_once
    if tiles % at_once == 0:
        yield "where the last wave is full, none comes after it", tiles // at_once + 1


def last_causes(tiles: int, count: int, last: float, at_once: int):
    if last == 1:
        yield "a full last wave is 1.0, although the remainder is 0", 0
    else:
        yield "// cuts the fraction off; / keeps it", 0
        yield "this counts the empty places", 1 - last
        yield "the fraction is inverted; divide the remaining tiles by at_once", 1 / last
        yield (
            "all waves but the last are full, and their number is count - 1",
            ((tiles - count * at_once) / at_once, (tiles - (count - 2) * at_once) / at_once),
        )
    yield "this is the share of all places, not of those in the last wave", tiles / (count * at_once)
    yield "return a fraction of the wave, not a number of tiles", last * at_once
    yield "the remaining tiles are divided by all tiles; divide them by at_once", last * at_once / tiles
    yield "the fraction is rounded", (round(last, 2), round(last, 1))
    yield "return a fraction, not a percentage", 100 * last
    yield "this counts all tiles instead of those in the last wave", tiles / at_once
