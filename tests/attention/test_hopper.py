"""Test the Hopper kernels: the operands that they accept, their builds and, on a Hopper GPU, their results."""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention import torch_reference
from labs_helpers.attention.flash import attention_backward, attention_forward, flash_attention
from labs_helpers.attention.kernels import hopper, hopper_launch
from labs_helpers.attention.kernels.hopper import backward_config, forward_config, forward_time, why_not
from labs_helpers.attention.kernels.hopper_launch import BackwardLaunch, heads_in_l2, parts_of_group
from labs_helpers.attention.plan import plan
from labs_helpers.course.verdict.surroundings import Guarded
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import this_machine

on_hopper = pytest.mark.skipif(this_machine().architecture != "sm_90", reason="needs a Hopper GPU")
with_its_gluon = pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
SHARED_LIMIT = 232_448  # bytes per program on sm_90


def half(*shape):
    return torch.ones(shape, dtype=torch.float16)


Q, K = half(2, 4, 100, 64), half(2, 2, 130, 64)
REFUSED = {
    "another chip": ((Q, K, K), "sm_80", "need sm_90, this is sm_80"),
    "the interpreter": ((Q, K, K), None, "this is the interpreter"),
    "float32": ((Q.float(), K.float(), K.float()), "sm_90", "16-bit floats, not torch.float32"),
    "a small head dim": ((half(1, 1, 9, 32),) * 3, "sm_90", "head dim 32"),
    "a head dim that no row of o could end with": ((half(1, 1, 9, 68),) * 3, "sm_90", "head dim 68"),
    "columns apart": ((Q, half(2, 2, 64, 130).mT, K), "sm_90", "k's head dim is not consecutive"),
    "expanded": ((Q, K, half(2, 1, 130, 64).expand(2, 2, 130, 64)), "sm_90", "v's rows do not start"),
    "rows not aligned": ((half(2, 4, 100, 68)[..., :64], K, K), "sm_90", "q's rows do not start at multiples of 16"),
    "start not aligned": ((half(2, 4, 100, 72)[..., 1:65], K, K), "sm_90", "q's rows do not start"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_they_cannot_take_is_said(case):
    operands, architecture, reason = REFUSED[case]
    assert reason in why_not(*operands, architecture)


def test_a_triton_with_another_gluon_is_refused(monkeypatch):
    monkeypatch.setattr(hopper, "gluon_fits", lambda: False)
    assert "the Gluon of Triton 3.6 or 3.7" in why_not(Q, K, K, "sm_90")


@with_its_gluon
def test_what_they_can_take():
    assert why_not(Q, K, K, "sm_90") is None
    assert why_not(half(2, 100, 4, 64).transpose(1, 2), K, K, "sm_90") is None  # the layout after a projection
    assert why_not(*(half(1, 2, 5, 128)[..., :80] for _ in range(3)), "sm_90") is None
    assert why_not(Q.bfloat16(), K.bfloat16(), K.bfloat16(), "sm_90") is None


def test_heads_that_fit_into_the_cache():
    assert heads_in_l2(12 * 2**20, 8 * 2**20, 16) == 1 and heads_in_l2(48 * 2**20, 2**20, 16) == 16
    assert heads_in_l2(2**20, 2**30, 16) == 1


@given(
    group=st.integers(1, 32),
    programs=st.integers(1, 2000),
    q_blocks=st.integers(1, 300),
    causal=st.booleans(),
    processors=st.integers(1, 200),
)
def test_a_group_is_divided_evenly_and_only_where_programs_are_few(group, programs, q_blocks, causal, processors):
    parts = parts_of_group(group, programs, q_blocks, processors, causal)
    assert 1 <= parts <= group and group % parts == 0
    assert parts == 1 or programs < 4 * processors


def test_one_kv_head_for_all_query_heads_is_divided():
    assert parts_of_group(8, 51, 51, 132, False) == 2  # 8 · 51 steps become 4 · 51; with 4 parts, two waves of 2 · 51
    assert parts_of_group(8, 51, 102, 132, True) > 1
    assert parts_of_group(2, 132, 2, 132, False) == 1  # the sums would cost more than they save
    assert parts_of_group(1, 3, 100, 132, False) == 1 and parts_of_group(3, 600, 64, 132, False) == 1


@pytest.mark.parametrize("causal", [False, True])
def test_the_parts_of_a_group_are_kv_heads_to_the_backward_kernel(causal, monkeypatch):
    monkeypatch.setattr(hopper_launch, "multiprocessors", lambda device: 132)
    q, k = half(2, 8, 1000, 64), half(2, 2, 900, 64)
    launch = BackwardLaunch(q, k, k, q, q, causal, backward_config(64, 900, causal))
    parts, (kv_heads, group_size, *_) = launch.parts, launch.sizes
    assert parts == 4 and (kv_heads, group_size) == (2 * parts, 4 // parts)
    assert launch.programs == 8 * 2 * 2 * parts and launch.sizes[6] == 2 * kv_heads and launch.sizes[8] == parts
    assert launch.layouts[3][0] == (2, 2, 900, 64) and launch.layouts[5][0] == launch.layouts[6][0] == (2, 8, 900, 64)

    def stand_in(q, k, v, o, lse, do, dq, dk, dv, work, scale):
        assert dq.shape == q.shape and dk.shape == dv.shape == (2, 8, 900, 64)
        dk.copy_(torch.arange(8).view(1, 8, 1, 1).expand(dk.shape))
        dv.copy_(dk * 10)

    monkeypatch.setattr(launch, "_usual", stand_in)
    _, dk, dv = launch(q, k, k, q, torch.ones(2, 8, 1000), q, 0.125)
    assert dk.shape == k.shape and dk.is_contiguous() and dk.dtype == k.dtype
    assert (dk[:, 0] == 0 + 1 + 2 + 3).all() and (dk[:, 1] == 4 + 5 + 6 + 7).all() and torch.equal(dv, dk * 10)


def rows_of(shape, Lk, causal):
    return 64 * forward_config(shape, Lk, causal, 132).CONSUMERS


@pytest.mark.parametrize(
    "B, H, L, causal, rows",
    [
        (1, 8, 1535, False, 128),
        (1, 8, 5632, True, 128),
        (1, 12, 2938, True, 128),
        (2, 12, 1360, True, 128),
        (4, 16, 8192, False, 192),
        (4, 16, 8192, True, 192),
        (4, 16, 512, True, 128),
    ],
)
def test_the_forward_takes_large_tiles_where_there_are_enough(B, H, L, causal, rows):
    assert rows_of((B, H, L, 64), L, causal) == rows


@pytest.mark.parametrize(
    ("B", "L", "causal", "per_sm"),
    [
        (32, 512, True, 2),
        (1, 512, True, 1),
        (16, 2048, True, 2),
        (2, 2048, True, 1),
        (64, 256, False, 2),
        (8, 512, False, 1),
    ],
)
def test_short_sequences_with_enough_tiles_take_two_programs_per_sm(B, L, causal, per_sm):
    assert forward_config((B, 16, L, 64), L, causal, 132).PER_SM == per_sm


@given(B=st.integers(1, 8), H=st.integers(1, 32), Lq=st.integers(1, 3000), Lk=st.integers(1, 3000))
def test_a_mask_never_adds_predicted_time(B, H, Lq, Lk):
    for consumers in (2, 3):
        masked, whole = (forward_time(consumers, B, H, Lq, Lk, causal, 132) for causal in (True, False))
        assert 0 < masked <= whole


MANY, FEW = (4, 16, 4096), (4, 16, 512)
CONFIGS = [
    {"pass": "forward", "block_d": 128, "kind": "bf16", "causal": False}
    | asdict(forward_config((*MANY, 128), 4096, False, 132)),
    {"pass": "forward", "block_d": 64, "kind": "fp16", "causal": True}
    | asdict(forward_config((*MANY, 64), 4096, True, 132)),
    {"pass": "forward", "block_d": 64, "kind": "fp16", "causal": False}
    | asdict(forward_config((*MANY, 64), 4096, False, 132)),
    {"pass": "forward", "block_d": 64, "kind": "fp16", "causal": False}
    | asdict(forward_config((*FEW, 64), 512, False, 132)),
    {"pass": "forward", "block_d": 64, "kind": "bf16", "causal": True}
    | asdict(forward_config((1, 8, 5632, 64), 5632, True, 132)),
    {"pass": "forward", "block_d": 128, "kind": "fp16", "causal": True}
    | asdict(replace(forward_config((*FEW, 128), 512, True, 132), DRAWN=False)),
    {"pass": "forward", "block_d": 64, "kind": "bf16", "causal": True}
    | asdict(forward_config((*FEW, 64), 512, True, 132)),
    {"pass": "forward", "block_d": 64, "kind": "fp16", "causal": True}
    | asdict(forward_config((1, 16, 512, 64), 512, True, 132)),
    {"pass": "backward", "block_d": 128, "kind": "fp16", "causal": True},
    {"pass": "backward", "block_d": 128, "kind": "fp16", "causal": False},
    {"pass": "backward", "block_d": 64, "kind": "bf16", "causal": False, "RAGGED": True}
    | asdict(backward_config(64, 900, False)),
    {"pass": "backward", "block_d": 64, "kind": "fp16", "causal": False} | asdict(backward_config(64, 4096, False)),
    {"pass": "backward", "block_d": 64, "kind": "fp16", "causal": True} | asdict(backward_config(64, 4096, True)),
]


@with_its_gluon
def test_every_configuration_builds_with_wgmma_and_tma():
    """Build ahead of time in a process without the interpreter: the CPU counterpart of the tests below."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    answer = run(
        [sys.executable, str(Path(__file__).with_name("hopper_build.py")), json.dumps(CONFIGS)],
        timeout=120,
        env=environment,
    )
    for config, built in zip(CONFIGS, json.loads(answer), strict=True):
        assert built["wgmma"] > 0 and built["loads"] > 0 and built["shared"] <= SHARED_LIMIT, (config, built)
        assert (built["adds"] > 0) == (config["pass"] == "backward")
        assert (
            built["registers"] <= (168 if config.get("PER_SM", 1) == 1 else 80) and built["spills"] <= 160
        )  # a few bytes of stack, which the masks need


length = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 127, 128, 129, 200, 257, 384, 700]))
more = st.sampled_from(
    [1024, 1025, 1300]
)  # keys; above 1,024 the forward kernel has three consumers for a head dim of 64


@on_hopper
@settings(max_examples=80)
@given(
    B=st.integers(1, 2),
    Hkv=st.integers(1, 3),
    group=st.sampled_from([1, 2, 3, 8]),
    Lq=length,
    Lk=st.one_of(length, more),
    D=st.sampled_from([40, 64, 80, 128]),
    causal=st.booleans(),
    bf16=st.booleans(),
    seed=st.integers(0, 9),
    factor=st.sampled_from([1, 20]),
)
def test_they_are_right_for_any_size_that_they_take(B, Hkv, group, Lq, Lk, D, causal, bf16, seed, factor):
    dtype = torch.bfloat16 if bf16 else torch.float16
    generator = torch.Generator().manual_seed(seed)
    q, k, v, do = (
        torch.full((B, L, H, D + 8), torch.nan, dtype=dtype, device="cuda")[..., :D].transpose(1, 2)
        for H, L in ((Hkv * group, Lq), (Hkv, Lk), (Hkv, Lk), (Hkv * group, Lq))
    )
    for tensor in (q, k, v, do):
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    q.mul_(factor)
    assert plan(q, k, v, causal).kernel == (
        "decode" if Lq <= 16 else "hopper"
    )  # the backward pass always uses the Hopper kernel
    with Guarded() as guard:
        o, lse = attention_forward(q, k, v, causal)
        dq, dk, dv = attention_backward(q, k, v, o, lse, do, causal)
        torch.cuda.synchronize()
    assert guard.overwritten() == 0
    exact = [t.double() for t in (q, k, v)]
    o_exact, lse_exact = torch_reference.attention_forward(*exact, causal)
    wanted = torch_reference.attention_backward(*exact, o_exact, lse_exact, do.double(), causal)
    assert torch.equal(lse.isinf(), lse_exact.isinf())
    assert ((lse - lse_exact)[lse_exact.isfinite()].abs() <= 1e-5 * (1 + lse_exact[lse_exact.isfinite()].abs())).all()
    # P and dS are rounded before their products, so errors are a few units in the last place of the largest summand.
    unit = torch.finfo(dtype).eps
    for got, want in zip((o, dq, dk, dv), (o_exact, *wanted), strict=True):
        assert got.isfinite().all() and (got - want).abs().max() <= 4 * unit * max(want.abs().max(), factor)


@on_hopper
@settings(max_examples=12)
@given(B=st.integers(1, 2), L=st.sampled_from([1535, 1600, 2049]), D=st.sampled_from([64, 128]), causal=st.booleans())
def test_the_gradients_of_a_group_that_is_divided_are_right(B, L, D, causal):
    q, k, v, do = (torch.randn(B, heads, L, D, device="cuda").half() for heads in (8, 1, 1, 8))
    o, lse = attention_forward(q, k, v, causal)
    launch = hopper.backward_launch(q, k, v, o, do, causal)
    assert launch.parts > 1
    exact = [t.double() for t in (q, k, v)]
    o_exact, lse_exact = torch_reference.attention_forward(*exact, causal)
    wanted = torch_reference.attention_backward(*exact, o_exact, lse_exact, do.double(), causal)
    for _ in range(3):  # first an ordinary launch, then prepared ones
        for got, want in zip(launch(q, k, v, o, lse, do, D**-0.5), wanted, strict=True):
            assert got.is_contiguous() and (got - want).norm() <= 2e-3 * want.norm()


@on_hopper
def test_a_counter_is_left_at_zero_whatever_the_next_launch_is():
    """Run in parallel streams and in graphs; the last case has fewer tiles than SMs and needs no counter."""
    given = [
        [torch.randn(2, h, n, 64, device="cuda").half() for _ in range(3)] for h, n in ((40, 700), (70, 300), (3, 300))
    ]
    expected = [attention_forward(*qkv)[0] for qkv in given]
    streams, graph = [torch.cuda.Stream() for _ in range(2)], torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = [attention_forward(*qkv)[0] for qkv in given]
    torch.cuda.synchronize()
    found = []
    for _ in range(20):
        graph.replay()
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append([attention_forward(*qkv)[0] for qkv in given])
    torch.cuda.synchronize()
    for results in (*found, captured):
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))


@on_hopper
def test_many_tiles_a_program_and_repeated_launches_agree():
    """Persistent programs reuse buffers, so a race would make runs differ. Only dQ's order of additions may vary."""
    q, k, v, do = (torch.randn(4, 16, 2000, 64, device="cuda").half() for _ in range(4))
    o, lse = attention_forward(q, k, v, True)
    first = attention_backward(q, k, v, o, lse, do, True)
    for _ in range(10):
        again = attention_forward(q, k, v, True)
        assert torch.equal(again[0], o) and torch.equal(again[1], lse)
        dq, dk, dv = attention_backward(q, k, v, o, lse, do, True)
        assert torch.equal(dk, first[1]) and torch.equal(dv, first[2])
        assert (dq - first[0]).abs().max() <= 2 * torch.finfo(torch.float16).eps * first[0].abs().max()


@on_hopper
def test_an_expanded_gradient_and_scales_that_change_the_maximum():
    q, k, v = (torch.randn(1, 2, 150, 64, device="cuda").half().requires_grad_() for _ in range(3))
    for scale in (None, 0.0, -0.1):
        wanted = torch.autograd.grad(torch_reference.flash_attention(q, k, v, True, scale).sum(), (q, k, v))
        got = torch.autograd.grad(flash_attention(q, k, v, True, scale).sum(), (q, k, v))
        for a, b in zip(got, wanted, strict=True):
            assert (a - b).abs().max() <= 0.01 * max(1, b.abs().max())
