"""Soak test of lab 05's kernels: mistakes that ordinary inputs do not reveal."""

import pytest

from labs_helpers.attention.lab05 import checks as check
from tests.attention.lab05.test_planted_bugs import BEGIN, DK, DQ, END, LOAD_K, LOAD_Q, REFERENCES
from tests.planted import PlantedBugs

pytestmark = pytest.mark.soak

DP = 'dp = tl.dot(do, tl.trans(v), input_precision="ieee")'

BUGS = [
    (
        "query_gradient",
        "q scaled in place",
        [("dq = torch.empty_like(q)", "q *= scale\n    dq = torch.empty_like(q)")],
        "q, which",
    ),
    ("query_gradient", "K loaded twice", [(DQ, f"{LOAD_K}\n        {DQ}")], "K is loaded twice in each step"),
    ("query_gradient", "dP in 16 bits", [(DP, DP + ".to(do.dtype)")], "dP is rounded to 16 bits"),
    ("query_gradient", "added twice", [(DQ, DQ.replace("dq = ", "dq += "))], "dQ is added twice"),
    ("query_gradient", "K for V", [(DP, DP.replace("trans(v)", "trans(k)"))], "dP is computed as dO·Kᵀ"),
    ("query_gradient", "16 for D", [("tl.arange(0, D)", "tl.arange(0, 16)")], "heads of 32"),
    *(
        ("query_gradient", f"end {by}", [(END, END.replace("+ Lk - Lq", f"+ Lk - Lq + {by}"))], "off|is loaded")
        for by in (-2, -1, 1, 2)
    ),
    ("key_value_gradients", "Q loaded twice", [(DK, f"{LOAD_Q}\n        {DK}")], "Q is loaded twice in each step"),
    ("key_value_gradients", "dO for Q", [(DK, DK.replace(", q, dk", ", do, dk"))], "dS is multiplied by dO"),
    (
        "key_value_gradients",
        "BLOCK_N for BLOCK_M",
        [("start + tl.arange(0, BLOCK_M)", "start + tl.arange(0, BLOCK_N)")],
        "BLOCK_N",
    ),
    *(
        (
            "key_value_gradients",
            f"begin {by}",
            [(BEGIN, BEGIN.replace("(Lk - Lq),", f"(Lk - Lq) + {by},"))],
            "off|is loaded",
        )
        for by in (-2, -1, 1, 2)
    ),
]


class TestClassesOfLab05(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, ()
