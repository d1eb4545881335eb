"""Compute the numbers in lab 13's text from the library's formats, and from the lab's cells."""

import re

import torch

from labs_helpers.course import own_copies
from labs_helpers.labs import lab
from labs_helpers.serving.lab13 import stepwise
from labs_helpers.transformer.config import SIZES
from tests.claims.table import Claim, Given, Table


def in_code(pattern: str) -> float:
    """Return the number that the pattern's group matches in the lab's code, where it occurs once or with one value."""
    cells = [cell.source for cell in own_copies.read(lab("13").path).cells if cell.cell_type == "code"]
    (found,) = set(re.findall(pattern, "\n".join(cells)))
    return float(found)


TABLE = Table(
    claims=(
        Claim("cached numbers of 2 bytes", lambda: torch.bfloat16.itemsize),
        Claim("on a GPU with 141 GB", lambda: in_code(r"953_223_168, (\d+) \* 10\*\*9")),
        Claim("room for 4,096 positions each", lambda: SIZES["1b"].context),
        Claim("a cache of 8,192 positions", lambda: in_code(r"draw_occupancy\(uses, (\d+)\)")),
        Claim("Twelve requests generate 2 to 24 tokens", lambda: [min(stepwise.OUTPUTS), max(stepwise.OUTPUTS)]),
    ),
    given=(Given("an acceptance rate of 90%", "a question's assumption"),),
)
