"""Soak test of lab 04's kernels: mistakes that ordinary inputs do not reveal."""

import pytest

from labs_helpers.attention.lab04 import checks as check
from tests.attention.lab04.test_planted_bugs import (
    ADD,
    BEGIN,
    BLOCK_MAX,
    REFERENCES,
    SCORES,
    stride_bugs,
)
from tests.planted import PlantedBugs

pytestmark = pytest.mark.soak

MAX = "m_new = tl.maximum(m_i, tl.max(s, axis=1))"
FIRST = 'm_new = tl.where(m_i == -float("inf"), tl.max(s, axis=1), m_i)'
KERNELS = ("tile_attention", "causal_attention", "window_attention")
STORED = [
    ("D: tl.constexpr, BLOCK_M", "scratch_ptr, D: tl.constexpr, BLOCK_M"),
    ("*v.stride()[:3],\n", "*v.stride()[:3], torch.empty((B * H, Lq, k.shape[2]), device=q.device),\n"),
    (
        "        m_new = tl.max",
        "        tl.store(scratch_ptr + (head * Lq + rows[:, None]) * Lk + columns[None, :], s,"
        " mask=(rows[:, None] < Lq) & (columns[None, :] < Lk))\n        m_new = tl.max",
    ),
]
WRAPPER = "    B, H, Lq, D = q.shape\n"

BUGS = [
    bug
    for name in KERNELS
    for bug in (
        (
            name,
            "q scaled in place",
            [(WRAPPER, "    q *= scale\n" + WRAPPER)],
            "the function changed its argument q",
        ),
        (name, "S stored", STORED, "elements to scratch_ptr, a tensor of"),
        (name, "the first maximum kept", [(MAX, FIRST)], "every step subtracts the first step's maximum"),
        (name, "the tile's own maximum", [(MAX, "m_new = tl.max(s, axis=1)")], "maximum covers only this step"),
        (
            name,
            "accumulated in 16 bits",
            [(ADD, ADD + "\n        acc = acc.to(tl.float16).to(tl.float32)")],
            "rounded to",
        ),
        (name, "added twice", [(ADD, ADD.replace("acc = ", "acc += "))], "acc is added twice"),
        (name, "K for V", [("k_ptr + b * stride_kb + h * stride_kh", "v_ptr + b * stride_vb + h * stride_vh")], "K"),
        (name, "BLOCK_M for BLOCK_N", [("start + tl.arange(0, BLOCK_N)", "start + tl.arange(0, BLOCK_M)")], "BLOCK_M"),
        (name, "exp in p alone", [("p = tl.exp2(", "p = tl.exp(")], "p has the wrong one"),
        (name, "unscaled maximum", [(MAX, MAX.replace("tl.max(s", "tl.max(s / scale"))], "wrong|inf|off"),
    )
]
BUGS += [
    (
        "window_attention",
        f"begin {by}",
        [(BEGIN, BEGIN.replace("window + 1", f"window + {1 + by}"))],
        "starts a key too" if by in (-1, 1) else "loads|never loads",
    )
    for by in (-2, -1, 1, 2)
]
BUGS += stride_bugs("window_attention")
BUGS += [
    (
        "row_softmax",
        "the first maximum kept",
        [(BLOCK_MAX, 'm_new = tl.where(m_i == -float("inf"), tl.max(x), m_i)')],
        "first",
    ),
    (
        "row_softmax",
        "the block's own maximum",
        [(BLOCK_MAX, "m_new = tl.max(x)")],
        "maximum covers only this step",
    ),
    ("tile_attention", "a number for the scale", [(SCORES, SCORES.replace("scale *", "0.5 *"))], "off"),
]


class TestClassesOfLab04(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, ()
