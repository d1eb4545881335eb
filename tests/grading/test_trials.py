"""Test that code that only tries an answer out is not run, and that the rest keeps its line numbers."""

import ast

import pytest

from labs_helpers.grading.reading.own_cells import whole
from labs_helpers.grading.reading.submission import Answer, Shipped

F = "def f(x):\n    return math.sqrt(x)\n"
ONE = Shipped("00/1", "f", "", "", 1)


def left(source, *before):
    (found,) = whole([Answer(ONE, source, before)])
    assert found.source.count("\n") == source.count("\n")
    return ast.unparse(ast.parse(found.source))


@pytest.mark.parametrize(
    "around",
    ["{}", "import os, time\nfrom dataclasses import (\n    dataclass,\n    field,\n)\n{}",
     "{}print(f(4))\nassert f(4) == 2, '''of\nfour'''\nf(9)\n",
     "import evil\n{}__import__('evil').do()\n(lambda: evil)()\n"],
)  # fmt: skip
def test_trials_and_unread_imports_are_left_out(around):
    assert left(f"import math\n{around.format(F)}") == ast.unparse(ast.parse(f"import math\n{F}"))


@pytest.mark.parametrize(
    "source",
    [f"import math, sys\n{F}", f"from __future__ import annotations\nimport math\n{F}",
     f"import math\n{F}x = 1; f(x)\n",
     f"import math\ntable = []\ntable.append(f)\n{F}", f"import math\n{F}if True:\n    print(f(1))\n"],
)  # fmt: skip
def test_what_is_read_or_may_matter_stays(source):
    assert left(source) == ast.unparse(ast.parse(source))


def test_an_import_that_another_cell_reads_stays():
    source = "import math\ndef f(x):\n    return g(x)\n"
    assert "import math" in left(source, "def g(x):\n    return math.sqrt(x)\n")
