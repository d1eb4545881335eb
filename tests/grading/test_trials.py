"""What tries an answer out is neither judged nor run, and the rest keeps its line numbers."""

from __future__ import annotations

import ast
import re

import pytest

from labs_helpers.grading.reading.own_cells import whole
from labs_helpers.grading.reading.submission import Answer, Shipped

F = "def f(x):\n    return math.sqrt(x)\n"
ONE = Shipped("00/1", "f", "", "", 1)


def _run(source: str, *before: str) -> Answer:
    (found,) = whole([Answer(ONE, source, before)])
    return found


@pytest.mark.parametrize(
    "source",
    [
        f"import math, sys\n{F}",
        f"import math\nimport os, time\nfrom dataclasses import (\n    dataclass,\n    field,\n)\n{F}",
        f"import math\n{F}print(f(4))\nassert f(4) == 2, '''of\nfour'''\nf(9)\n",
        "import triton.language as tl\ndef f(x):\n    return tl.math.exp2(x)\n",
    ],
)
def test_an_honest_answer_keeps_its_lines_and_loses_its_trials(source):
    found = _run(source)
    assert not re.search(r"import .*(sys|os|dataclass)|print|assert", ast.unparse(ast.parse(found.source)))
    assert found.source.count("\n") == source.count("\n")
    assert "def f" in found.source.split("\n")[source[: source.index("def f")].count("\n")]


def test_a_hostile_import_or_call_is_not_run():
    found = _run(
        f"import evil\nimport math\n{F}__import__('evil').do()\n(lambda: evil)()\nmath.sqrt.__self__.sqrt = f\n"
    )
    text = ast.unparse(ast.parse(found.source))
    assert "__self__" in text and "evil" not in text  # an assignment stays
    text = ast.unparse(ast.parse(_run(f"import evil\nimport math\n{F}__import__('evil').do()\n").source))
    assert "evil" not in text and "def f" in text


@pytest.mark.parametrize(
    "source",
    [
        f"import math, sys\n{F}\ndef g():\n    return sys.modules\n",
        f"import math\n{F}x = 1; print(f(x))\n",
        f"import math\ntable = []\ntable.append(f)\n{F}",
        f"import math\n{F}if True:\n    print(f(1))\n",
    ],
)
def test_what_is_read_or_may_matter_stays(source):
    assert _run(source).source == source


def test_an_import_that_another_cell_reads_stays():
    found = _run("import math, os\ndef f(x):\n    return g(x)\n", "def g(x):\n    return math.sqrt(x)\n")
    assert "import math  #" in found.source and found.before
