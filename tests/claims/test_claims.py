"""Test that every number with a unit in a lab's text is computed by the lab's table of claims, or listed with a reason.

The table of lab 02 is TABLE in lab02.py.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from labs_helpers.labs import LABS, Lab
from tests.claims.numbers import Passage, numerals, passages
from tests.claims.table import Claim, Given, Table

TABLED = [lab for lab in LABS if find_spec(f"tests.claims.lab{lab.number}")]
MOST_GIVEN = 0.4  # of the quotes of a lab: the list of numbers that nothing computes stays short


@cache
def table(lab: Lab) -> Table:
    return importlib.import_module(f"tests.claims.lab{lab.number}").TABLE


def each_claim():
    return [
        pytest.param(claim, id=f"{lab.number}: {claim.quote[:40]}") for lab in TABLED for claim in table(lab).claims
    ]


@pytest.mark.parametrize("claim", each_claim())
def test_a_claim_says_what_the_records_say(claim):
    assert wrong(claim) == ""


@pytest.mark.parametrize("lab", TABLED, ids=lambda lab: lab.number)
def test_every_number_with_a_unit_has_a_source(lab):
    assert complaints(table(lab), passages(lab)) == []


@pytest.mark.parametrize("lab", TABLED, ids=lambda lab: lab.number)
def test_few_numbers_are_given(lab):
    given, claims = table(lab).given, table(lab).claims
    assert all(each.reason for each in given)
    assert len(given) <= max(3, MOST_GIVEN * (len(given) + len(claims)))


def wrong(claim: Claim) -> str:
    """Say which number of the quote differs from what it should be; '' where none does."""
    printed = numerals(claim.quote)
    values = np.atleast_1d(np.asarray(claim.values(), dtype=float)).tolist()
    if len(values) != len(printed):
        return f"{len(printed)} numbers in {claim.quote!r}, {len(values)} values: {values}"
    for (number, rounding), value in zip(printed, values, strict=True):
        allowed = rounding * 1.001 if claim.within is None else claim.within * abs(value)
        if not abs(number - value) <= allowed:
            return f"{claim.quote!r} says {number:g} where the records give {value:.6g}"
    return ""


def complaints(table: Table, text: list[Passage]) -> list[str]:
    """Name each number with a unit that no quote holds, and each quote that does not occur exactly once."""
    held, said = {passage.cell: list[tuple[int, int]]() for passage in text}, []
    for each in (*table.claims, *table.given):
        places = [(one.cell, at) for one in text for at in _all_places(one.text, each.quote)]
        if len(places) != 1:
            said.append(f"{each.quote!r} occurs {len(places)} times in the text")
        for cell, at in places:
            held[cell].append((at, at + len(each.quote)))
    for passage in text:
        for start, end in passage.with_units():
            if not any(first <= start and end <= last for first, last in held[passage.cell]):
                around = passage.text[max(0, start - 40) : end + 20]
                said.append(f"cell {passage.cell}: no source for {passage.text[start:end]!r} in '…{around}…'")
    return said


def _all_places(text: str, quote: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(quote, at)]


def test_a_wrong_number_and_one_without_a_source_are_noticed():
    text = [Passage(4, "Fusing saves 32% of the bytes and takes 0.98 to 1.09 times as long; it needs 2 kB more.")]
    table = Table((Claim("saves 32%", lambda: 31.9),), (Given("2 kB", "an example"),))
    assert complaints(table, text) == [
        "cell 4: no source for '0.98 to 1.09 times' in '…Fusing saves 32% of the bytes and takes 0.98 to 1.09 times as "
        "long; it needs 2…'"
    ]
    assert complaints(Table((Claim("saves 33%", lambda: 33),)), text)[0] == "'saves 33%' occurs 0 times in the text"
    assert wrong(table.claims[0]) == "" == wrong(Claim("0.98 to 1.09", lambda: (0.984, 1.0851)))
    assert wrong(Claim("saves 32%", lambda: 32.6)) == "'saves 32%' says 32 where the records give 32.6"
    assert wrong(Claim("some 30%", lambda: 32.6, within=0.1)) == ""
    assert "values" in wrong(Claim("0.98 to 1.09", lambda: 0.984))
    assert numerals("1,024 bytes, 2.5× and 17%, not x2 or 0.1.2")[:3] == [(1024, 0.5), (2.5, 0.05), (17, 0.5)]
