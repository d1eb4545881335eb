"""Compute the numbers in lab 13's text from the library, from the lab's cells and from its counted runs."""

from labs_helpers.serving.lab13 import stepwise
from labs_helpers.transformer.config import SIZES
from tests.claims.table import Claim, Given, Table

TABLE = Table(
    claims=(),
    given=(),
)
