"""Compute the numbers in lab 12's text from the library's formats, from the lab's cells and from the arithmetic."""

import re

import torch

from labs_helpers.course import own_copies
from labs_helpers.labs import lab
from labs_helpers.quantization.weights import INT8_MAX, Int4Weight
from tests.claims.table import Claim, Given, Table

K = 256
WEIGHT = Int4Weight.quantize(torch.ones(1, K))


def in_code(pattern: str) -> float:
    """Return the number that the pattern's group matches in the lab's code, where it occurs once or with one value."""
    cells = [cell.source for cell in own_copies.read(lab("12").path).cells if cell.cell_type == "code"]
    (found,) = set(re.findall(pattern, "\n".join(cells)))
    return float(found)


TABLE = Table(
    claims=(
        Claim("one row 50 times as large as the others", lambda: in_code(r"uneven\[0\] \*= (\d+)")),
        Claim("a scale (2 bytes in the library)", lambda: WEIGHT.scale.element_size()),
        Claim("a zero point (1 byte)", lambda: WEIGHT.zero.element_size()),
        Claim("has K/2 bytes", lambda: K / WEIGHT.packed.shape[1]),
        Claim("at 4 bytes each", lambda: torch.float32.itemsize),
        Claim("channels 7 and 100 are 60 times as large", lambda: [7, 100, in_code(r"x\[:, \[7, 100\]\] \*= (\d+)")]),
        Claim("holds for K up to 133,000", lambda: (2**31 - 1) // INT8_MAX**2, within=0.002),
    ),
    given=(Given("about 100 times as large as most others", "the cited paper's figure"),),
)
