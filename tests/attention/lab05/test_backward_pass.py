"""Test that lab 05's float64 gradients agree with autograd and that their error bounds are tight."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass
from labs_helpers.attention.lab05.checks.bounds import gradient_bounds
from labs_helpers.attention.lab05.checks.cases import Case


@settings(max_examples=25)
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
    exact = BackwardPass(q, k, v, do, 0.7, causal, cap)
    torch.testing.assert_close(exact.o, o.detach())
    for name, expected in zip(("dq", "dk", "dv"), torch.autograd.grad(o, (q, k, v), do), strict=True):
        torch.testing.assert_close(getattr(exact, name), expected, rtol=1e-9, atol=1e-12)


def test_another_value_changes_what_follows_from_it_but_not_what_the_forward_pass_left():
    _, exact = Case("", 5, 7).operands()
    fewer = exact.but(seen=exact.seen_to(2))
    assert torch.equal(fewer.lse, exact.lse) and torch.equal(fewer.delta, exact.delta)
    assert torch.equal(fewer.p, exact.p.tril(2)) and not torch.equal(fewer.dq, exact.dq)
    assert torch.equal(exact.but(delta=0 * exact.delta).ds, exact.p * exact.dp)


def test_queries_that_see_no_key_have_no_gradient_and_give_none():
    _, exact = Case("", 5, 3, causal=True).operands()
    assert not exact.dq[:, :, :2].any() and not exact.o[:, :, :2].any() and exact.dk.isfinite().all()
    assert (exact.lse[:, :, :2] == -torch.inf).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_half_a_percent_of_a_tile_too_much_is_beyond_the_bounds(dtype):
    case = Case("", 64, 64, dtype=dtype)
    given, exact = case.operands()
    dq = exercises.query_gradient(**given).cpu().double()
    bound = gradient_bounds(exact, dtype)["dq"]
    assert ((dq - exact.dq).abs() <= bound).all()
    assert ((1.005 * dq - exact.dq).abs() > bound).any()


@settings(max_examples=40)
@given(
    Lq=st.integers(1, 40),
    Lk=st.integers(1, 40),
    blocks=st.sampled_from([(4, 4), (4, 8), (8, 4)]),
    causal=st.booleans(),
)
def test_a_tile_is_walked_where_one_of_its_queries_sees_one_of_its_keys(Lq, Lk, blocks, causal):
    BLOCK_M, BLOCK_N = blocks
    q, k = torch.zeros(1, 1, Lq, 1), torch.zeros(1, 1, Lk, 1)
    exact = BackwardPass(q, k, k, q, 1.0, causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    rows, columns = -(-Lq // BLOCK_M) * BLOCK_M, -(-Lk // BLOCK_N) * BLOCK_N  # queries past the end are included
    seen = np.tri(rows, columns, exact.corner, dtype=bool)
    tiles = seen.reshape(rows // BLOCK_M, BLOCK_M, columns // BLOCK_N, BLOCK_N).any((1, 3))
    expected = tiles.repeat(BLOCK_M, 0).repeat(BLOCK_N, 1)[:Lq, :Lk]
    assert (exact.walked(exact.corner).numpy() == expected).all()
    assert (exact.seen.numpy() <= expected).all()
