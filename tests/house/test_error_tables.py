"""Test the table of error messages: a lab adds only its own explanations, and no pattern occurs twice."""

import ast
import re
from itertools import combinations
from pathlib import Path

from labs_helpers.labs import ROOT

HOUSE = ROOT / "labs_helpers"


def alternatives(file: Path) -> set[str]:
    """Return the parts between | of the patterns that are written out in the ERRORS of a file, not those named."""
    assigned = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Assign)]
    tables = [node.value for node in assigned if getattr(node.targets[0], "id", "") == "ERRORS"]
    rows = [row for table in tables if isinstance(table, ast.Tuple) for row in table.elts if isinstance(row, ast.Tuple)]
    patterns = [row.elts[0].value for row in rows if isinstance(row.elts[0], ast.Constant)]
    return {part for pattern in patterns for part in re.split(r"\|(?![^(]*\))", pattern)}


def test_no_pattern_is_written_in_two_labs_or_in_a_lab_and_the_general_table():
    rooms: dict[str, set[str]] = {}
    for file in [*HOUSE.glob("*/lab*/**/*.py"), *HOUSE.glob("course/verdict/messages/*.py")]:
        room = next(part for part in file.parts if re.fullmatch(r"lab\d\d|course", part))
        rooms.setdefault(room, set()).update(alternatives(file))
    assert sum(map(len, rooms.values())) > 100
    assert not [both for one, other in combinations(rooms.values(), 2) if (both := one & other)]
