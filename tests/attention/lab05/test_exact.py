"""The float64 gradients that lab 05's checks compare with are those of autograd, and their bounds leave little room."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.exact import Exact
from labs_helpers.attention.lab05.checks.trial import Case, loads_of_keys, loads_of_queries


@settings(max_examples=25, deadline=None, derandomize=True)
@given(Lq=st.integers(1, 6), more=st.integers(0, 4), causal=st.booleans(), cap=st.sampled_from([None, 0.8, 30.0]))
def test_the_gradients_are_those_of_autograd(Lq, more, causal, cap):
    generator = torch.Generator().manual_seed(Lq)
    q, k, v, do = (
        torch.randn(1, 2, L, 3, generator=generator, dtype=torch.float64, requires_grad=True)
        for L in (Lq, Lq + more, Lq + more, Lq)
    )
    s = 0.7 * q @ k.mT
    s = s if cap is None else cap * torch.tanh(s / cap)
    if causal:
        s = s.masked_fill(~torch.ones(Lq, Lq + more, dtype=torch.bool).tril(more), -torch.inf)
    o = s.softmax(-1) @ v
    exact = Exact(q, k, v, do, 0.7, causal, cap)
    torch.testing.assert_close(exact.o, o.detach())
    for name, expected in zip(("dq", "dk", "dv"), torch.autograd.grad(o, (q, k, v), do), strict=True):
        torch.testing.assert_close(getattr(exact, name), expected, rtol=1e-9, atol=1e-12)


def test_queries_that_see_no_key_have_no_gradient_and_give_none():
    _, exact = Case("", 5, 3, causal=True).operands()
    assert not exact.dq[:, :, :2].any() and not exact.o[:, :, :2].any() and exact.dk.isfinite().all()
    assert (exact.lse[:, :, :2] == -torch.inf).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_half_a_percent_of_a_tile_too_much_is_beyond_the_bounds(dtype):
    case = Case("", 64, 64, dtype=dtype)
    given, exact = case.operands()
    dq = exercises.query_gradient(**given).cpu().double()
    bound = exact.bounds(dtype)["dq"]
    assert ((dq - exact.dq).abs() <= bound).all()
    assert ((1.005 * dq - exact.dq).abs() > bound).any()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(Lq=st.integers(1, 40), Lk=st.integers(1, 40), blocks=st.sampled_from([(4, 4), (4, 8), (8, 4)]))
def test_no_load_is_expected_of_a_tile_that_sees_nothing(Lq, Lk, blocks):
    BLOCK_M, BLOCK_N = blocks
    for least, most in (loads_of_keys(Lq, Lk, True, *blocks), loads_of_queries(Lq, Lk, True, *blocks)):
        assert (least <= most).all()
    least, _ = loads_of_keys(Lq, Lk, True, *blocks)
    seen = [
        [any(j <= i + Lk - Lq for i in range(first, min(first + BLOCK_M, Lq))) for first in range(0, Lq, BLOCK_M)]
        for j in range(Lk)
    ]
    assert least.tolist() == [sum(row) for row in seen]
