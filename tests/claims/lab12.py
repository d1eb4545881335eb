"""Compute the numbers in lab 12's text from the library's formats, from the lab's cells and from the arithmetic."""

import re

import torch

from labs_helpers.course import own_copies
from labs_helpers.labs import lab
from labs_helpers.quantization import quality_study
from labs_helpers.quantization.lab12 import measured
from labs_helpers.quantization.lab12.exercises import speed_up
from labs_helpers.quantization.weights import INT8_MAX, Int4Weight
from tests.claims.table import Claim, Given, Table

ROUNDED, AS_TRAINED, WITH_OUTLIERS = "round to nearest", "as trained", "with outliers"
K = 256
LARGE = (14336, 4096)  # section 5's weight, (N, K)
WEIGHT = Int4Weight.quantize(torch.ones(1, K))


def in_code(pattern: str) -> float:
    """Return the number that the pattern's group matches in the lab's code, where it occurs once or with one value."""
    cells = [cell.source for cell in own_copies.read(lab("12").path).cells if cell.cell_type == "code"]
    (found,) = set(re.findall(pattern, "\n".join(cells)))
    return float(found)


def recorded_us(name: str, format: str, M: int = 1) -> float:
    """Return the recorded microseconds of a product with section 5's weight."""
    rows = measured.PRODUCTS[0].load()
    N, K = LARGE
    rows = rows[(rows["K"] == K) & (rows["N"] == N) & (rows["M"] == M)]
    return float(rows[(rows["name"] == name) & (rows["format"] == format)]["us"].iloc[0])


def one_row() -> list[float]:
    names = (("torch.compile", "int8"), ("few_rows", "int8"), ("F.linear", "bf16"))
    return [recorded_us(name, format) for name, format in names]


def gains(M: int) -> list[float]:
    recorded = measured.recorded_speed_ups(*LARGE)[0]
    return [recorded[name][M] for name in measured.FORMATS.values()]


def slower_from() -> float:
    """Return the first recorded number of rows with which int8 gains nothing."""
    return next(M for M, gain in measured.recorded_speed_ups(*LARGE)[0]["int8"].items() if gain < 1)


def predicted() -> list[float]:
    roofs = measured.recorded_roofs()
    schemes = ((8, None), (4, 128))
    return [speed_up(1, *LARGE, *scheme, roofs.bandwidth, roofs.flops)[0] for scheme in schemes]


def saved_more() -> float:
    loops = measured.recorded_loops()
    assert loops["int4, group 128"][0] > 0.98 * loops["int8"][0]  # and is no faster
    return (loops["int8"][1] - loops["int4, group 128"][1]) / 1e9


def quality(scheme: str, method: str = ROUNDED, model: str = WITH_OUTLIERS, value: str = "difference") -> float:
    """Return the mean over the seeds, which are three, of a recorded value in nats per byte."""
    rows = quality_study.STUDY.load("2-core-cpu-interpreter")
    rows = rows[(rows["scheme"] == scheme) & (rows["method"] == method) & (rows["model"] == model)]
    assert rows["seed"].nunique() == (3 if model == WITH_OUTLIERS else 1)
    return float(rows[value].mean())


TABLE = Table(
    claims=(
        Claim("one row 50 times as large as the others", lambda: in_code(r"uneven\[0\] \*= (\d+)")),
        Claim("a scale (2 bytes in the library)", lambda: WEIGHT.scale.element_size()),
        Claim("a zero point (1 byte)", lambda: WEIGHT.zero.element_size()),
        Claim("has K/2 bytes", lambda: K / WEIGHT.packed.shape[1]),
        Claim("at 4 bytes each", lambda: torch.float32.itemsize),
        Claim("channels 7 and 100 are 60 times as large", lambda: [7, 100, in_code(r"x\[:, \[7, 100\]\] \*= (\d+)")]),
        Claim("torch.compile takes 82 µs, the course's int8 kernel 18 µs and the bfloat16 product 33 µs", one_row),
        Claim("they gain 1.7 times with int8 and 2.4 times with int4", lambda: gains(1)),
        Claim("2.0 and 3.8 predicted", predicted),
        Claim("from 64 rows on, int8 is slower", slower_from),
        Claim("int8 takes 1.9 times as long", lambda: 1 / gains(256)[0]),
        Claim("int4 saves 0.39 GB more than int8", saved_more),
        Claim("loses 0.92 nats", lambda: quality("bf16", model=AS_TRAINED, value="nats_per_byte")),
        Claim("0.029 nats where a few channels are large", lambda: quality("w8a8")),
        Claim("of 128 add 0.010 nats", lambda: [128, quality("int4-128")]),
        Claim("AWQ brings that down to 0.003", lambda: quality("int4-128", quality_study.AWQ)),
        Claim("holds for K up to 133,000", lambda: (2**31 - 1) // INT8_MAX**2, within=0.002),
    ),
    given=(Given("about 100 times as large as most others", "the cited paper's figure"),),
)
