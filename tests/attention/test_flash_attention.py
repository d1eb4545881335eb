"""Test that flash_attention agrees with its PyTorch reference for any shape, stride and dtype, and rejects others."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention import torch_reference
from labs_helpers.attention.configs import DIRECTIONS, Config, default_config, family
from labs_helpers.attention.flash import attention_backward, attention_forward, flash_attention
from labs_helpers.attention.kernels import hopper, portable
from labs_helpers.attention.plan import plan, plan_backward
from labs_helpers.compile.launches import record_launches
from labs_helpers.course.verdict import expect_close, surrounded
from labs_helpers.course.verdict.surroundings import guarded_outputs
from labs_helpers.measure.machine import this_machine

HERE = this_machine()
UNIT = {torch.float16: 2.0**-11, torch.float32: 2.0**-24}  # half the spacing of numbers near 1
TINY = {torch.float16: 2.0**-25, torch.float32: 2.0**-126}  # half the spacing below the smallest normal number
ROUNDING = 2.0**-24  # of the accumulation, which is in float32 for both dtypes
WHY = "rounding of P and dS to the dtype, float32 accumulation"
interpreted = pytest.mark.skipif(not HERE.interpreted, reason="counted in the interpreter")
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "heads inside": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "columns first": lambda x: x.mT.contiguous().mT,
    "slice between NaN": lambda x: surrounded(x, 2),
    "every other column": lambda x: torch.stack([x, torch.full_like(x, torch.nan)], dim=4).flatten(3)[..., ::2],
    "one row expanded": lambda x: x[:, :, :1].expand(*x.shape),
    "one head expanded": lambda x: x[:, :1].expand(*x.shape),
}


def operands(B, H, Hkv, Lq, Lk, D, dtype=torch.float32, layouts=("contiguous",) * 4, magnitude=1.0, seed=0):
    """Return q, k, v and do; with the default scale, the scores have the standard deviation `magnitude`."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v, do = (
        torch.randn(B, heads, length, D, generator=generator)
        for heads, length in ((H, Lq), (Hkv, Lk), (Hkv, Lk), (H, Lq))
    )
    return [
        LAYOUTS[layout](x.to(dtype).to(HERE.device))
        for layout, x in zip(layouts, (magnitude * q, k, v, do), strict=True)
    ]


def wide(*tensors):
    return [t.cpu().double() for t in tensors]


def exact(q, k, v, lse, causal, scale):
    """Return scale, Σ|q||k|·scale, scores and P per query head in float64, and k and v repeated for the group."""
    q, k, v, lse = wide(q, k, v, lse)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    seen = seen.tril(k.shape[2] - q.shape[2]) if causal else seen
    magnitude = abs(scale) * (q.abs() @ k.abs().mT) * seen
    p = torch.exp((scale * q @ k.mT).masked_fill(~seen, -torch.inf) - lse.clamp(min=-1e300)[..., None])
    return scale, magnitude.amax(-1, keepdim=True), p, k, v


def check_forward(o, lse, q, k, v, causal, scale, case):
    D, Lk, dtype = q.shape[-1], k.shape[2], q.dtype
    expected, expected_lse = torch_reference.attention_forward(*wide(q, k, v), causal, scale)
    _, largest, p, _, v_each = exact(q, k, v, expected_lse, causal, scale)
    off = (D + 8) * ROUNDING * (largest + 1)  # the error of a score, and the relative error of P
    weight = p @ v_each.abs()
    bound = (2 * off + UNIT[dtype] + (Lk + 4) * ROUNDING) * weight + UNIT[dtype] * expected.abs()
    expect_close(f"o, {case}", o, expected, bound + TINY[dtype] * (1 + v_each.abs().sum(2, keepdim=True)), WHY)
    assert o.dtype == dtype and o.is_contiguous() and lse.dtype == torch.float32 and lse.is_contiguous()
    finite = expected_lse > -torch.inf
    assert torch.equal(lse.cpu() == -torch.inf, ~finite)
    bound = off[..., 0] + (Lk + 4) * ROUNDING + 3 * ROUNDING * expected_lse.abs()
    expect_close(f"lse, {case}", lse.cpu()[finite], expected_lse[finite], bound[finite], WHY)


def check_backward(gradients, q, k, v, o, lse, do, causal, scale, case):
    """Compare with the PyTorch reference on the same o and lse, so that their rounding has no effect."""
    D, dtype, group = q.shape[-1], q.dtype, q.shape[1] // k.shape[1]
    u, tiny, total = UNIT[dtype], TINY[dtype], (max(q.shape[2], k.shape[2]) * group + 4) * ROUNDING
    expected = torch_reference.attention_backward(*wide(q, k, v, o, lse, do), causal, scale)
    scale, largest, p, k_each, v_each = exact(q, k, v, lse, causal, scale)
    q, o, do = wide(q, o, do)
    off = (D + 8) * ROUNDING * (largest + 1) + 8 * ROUNDING * lse.cpu().double().abs().nan_to_num(posinf=0)[..., None]
    dp, delta = do @ v_each.mT, (o * do).sum(-1, keepdim=True)
    dp_off = (D + 8) * ROUNDING * (do.abs() @ v_each.abs().mT + (o * do).abs().sum(-1, keepdim=True))
    ds = (p * (dp - delta)).abs()
    ds_off = (off + u) * ds + p * (1 + off) * dp_off + tiny
    per_head = (
        (ds_off + total * ds) @ k_each.abs(),
        (ds_off + total * ds).mT @ q.abs(),
        (p * (off + u + total) + tiny).mT @ do.abs(),
    )
    per_head = [per_head[0], *(x.unflatten(1, (-1, group)).sum(2) for x in per_head[1:])]
    factors = (abs(scale), abs(scale), 1.0)
    for name, got, wanted, spread, factor in zip(
        ("dq", "dk", "dv"), gradients, expected, per_head, factors, strict=True
    ):
        assert got.dtype == dtype and got.is_contiguous()
        expect_close(f"{name}, {case}", got, wanted, 1.01 * factor * spread + u * wanted.abs() + tiny, WHY)


def agrees(q, k, v, do, causal, scale=None):
    case = f"{tuple(q.shape)} on {tuple(k.shape)}, {q.dtype}, causal={causal}"
    o, lse = attention_forward(q, k, v, causal, scale)
    check_forward(o, lse, q, k, v, causal, scale, case)
    gradients = attention_backward(q, k, v, o, lse, do, causal, scale)
    check_backward(gradients, q, k, v, o, lse, do, causal, scale, case)


length = st.one_of(st.integers(1, 70), st.sampled_from([1, 15, 16, 17, 33, 64, 65, 100, 130]))


any_operands = given(
    B=st.integers(1, 2),
    Hkv=st.integers(1, 2),
    group=st.integers(1, 3),
    Lq=length,
    Lk=length,
    D=st.sampled_from([16, 24, 32, 64, 80, 128]),
    causal=st.booleans(),
    half=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 4),
    magnitude=st.sampled_from([1, 1, 40]),
    scale=st.sampled_from([None, None, 0.05, -0.3, 0.0]),
    seed=st.integers(0, 9),
)


@settings(max_examples=15 if HERE.interpreted else 10)
@any_operands
def test_any_shape_and_stride(**drawn):
    shape_and_stride(**drawn)


@pytest.mark.soak
@settings(max_examples=300)
@any_operands
def test_any_shape_and_stride_of_many(**drawn):
    shape_and_stride(**drawn)


def shape_and_stride(B, Hkv, group, Lq, Lk, D, causal, half, layouts, magnitude, scale, seed):
    dtype = torch.float16 if half else torch.float32
    agrees(*operands(B, Hkv * group, Hkv, Lq, Lk, D, dtype, layouts, magnitude, seed), causal, scale)


@pytest.mark.parametrize("config", [Config(16, 32), Config(32, 16, 4, 1), Config(64, 32, 8), Config(16, 128)], ids=str)
@pytest.mark.parametrize(
    ("Lq", "Lk"),
    [(70, 100), (79, 80), (1, 130), *(pytest.param(*pair, marks=pytest.mark.soak) for pair in ((100, 70), (64, 64)))],
)
@pytest.mark.parametrize("causal", [False, True])
def test_any_configuration(config, Lq, Lk, causal):
    q, k, v, do = operands(1, 2, 1, Lq, Lk, 24, torch.float16)
    o, lse = portable.forward(q, k, v, causal, 0.2, config)
    check_forward(o, lse, q, k, v, causal, 0.2, str(config))
    gradients = portable.backward(q, k, v, o, lse, do, causal, 0.2, (True,) * 3, config, config)
    check_backward(gradients, q, k, v, o, lse, do, causal, 0.2, str(config))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("score", [200.0, -200.0])
@pytest.mark.parametrize("Lk", [64, 70])
def test_scores_near_200_neither_overflow_nor_vanish(dtype, score, Lk):
    q, k, v, do = operands(1, 1, 1, 70, Lk, 16, dtype)
    q, k = torch.full_like(q, score / 16), k.abs().clamp(0.9, 1.1)
    agrees(q, k, v, do, causal=True, scale=1.0)
    agrees(q, k, v, do, causal=False, scale=1.0)
    assert attention_forward(q, k, v, scale=1.0)[1].abs().min() > 150


def test_a_negative_scale_keeps_the_largest_score_as_the_maximum():
    agrees(*operands(1, 1, 1, 40, 130, 16, torch.float16, magnitude=40), causal=False, scale=-0.25)


def test_a_query_that_sees_no_key_gives_zeros_and_minus_infinity():
    q, k, v, do = operands(1, 2, 1, 100, 30, 16)
    o, lse = attention_forward(q, k, v, causal=True)
    assert (o[:, :, :70] == 0).all() and (lse[:, :, :70] == -torch.inf).all() and lse[:, :, 70:].isfinite().all()
    dq, dk, dv = attention_backward(q, k, v, o, lse, do, causal=True)
    assert (dq[:, :, :70] == 0).all() and dk.isfinite().all() and dv.isfinite().all()


def test_the_last_query_sees_every_key_and_the_first_ones_fewer():
    q, k, v, _ = operands(1, 1, 1, 3, 8, 16)
    o, whole = attention_forward(q, k, v, True)[0], attention_forward(q, k, v)[0]
    assert torch.equal(o[:, :, 2], whole[:, :, 2])
    for i in range(3):
        alone = attention_forward(q[:, :, i : i + 1], k[:, :, : 6 + i], v[:, :, : 6 + i])[0]
        torch.testing.assert_close(o[:, :, i : i + 1], alone)


def test_autograd_gives_the_gradients_of_attention_backward():
    *inputs, do = operands(2, 4, 2, 20, 33, 32)
    o, lse = attention_forward(*inputs, causal=True)
    expected = attention_backward(*inputs, o, lse, do, causal=True)
    for x in inputs:
        x.requires_grad_()
    flash_attention(*inputs, causal=True).backward(do)
    assert all(torch.equal(x.grad, wanted) for x, wanted in zip(inputs, expected, strict=True))


def test_the_gradient_of_a_sum_is_an_expanded_one():
    inputs = [x.requires_grad_() for x in operands(1, 2, 1, 20, 33, 16)[:3]]
    flash_attention(*inputs).sum().backward()
    reference = [x.requires_grad_() for x in wide(*(x.detach() for x in inputs))]
    torch_reference.flash_attention(*reference).sum().backward()
    for x, wanted in zip(inputs, reference, strict=True):
        torch.testing.assert_close(x.grad.cpu().double(), wanted.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("wanted", "kernels"),
    [
        ("q", {"query_gradient_kernel"}),
        ("k", {"key_value_gradients_kernel"}),
        ("v", {"key_value_gradients_kernel"}),
        ("qkv", {"query_gradient_kernel", "key_value_gradients_kernel"}),
    ],
)
def test_only_the_gradients_that_are_asked_for_are_computed(wanted, kernels):
    inputs = operands(1, 1, 1, 20, 20, 16)[:3]
    for x, name in zip(inputs, "qkv", strict=True):
        x.requires_grad_(name in wanted)
    o = flash_attention(*inputs)
    with record_launches() as launches:
        o.sum().backward()
    assert {launch.name for launch in launches} - {"delta_kernel"} == kernels
    assert all((x.grad is not None) == (name in wanted) for x, name in zip(inputs, "qkv", strict=True))


def test_a_second_derivative_is_refused():
    *inputs, do = (x.requires_grad_() for x in operands(1, 1, 1, 4, 4, 16))
    (gradient,) = torch.autograd.grad(flash_attention(*inputs), inputs[:1], do, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_it_saves_nothing_that_grows_with_the_square_of_the_length():
    q, k, v, _ = (x.requires_grad_() for x in operands(1, 4, 2, 20, 33, 16))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t):
        o = flash_attention(q, k, v)
    assert saved == [q.shape, k.shape, v.shape, o.shape, o.shape[:3]]


def allocated(guard):
    """Return the sizes in elements of the allocated tensors, and check that no store goes outside them."""
    assert guard.overwritten() == 0
    return sorted(size for _, _, size in guard.buffers if size)


@interpreted
@pytest.mark.parametrize("causal", [False, True])
def test_forward_stores_o_and_lse_once_and_nothing_else(causal):
    from labs_helpers.course.meter import metered

    q, k, v, _ = operands(2, 4, 2, 100, 130, 24, torch.float16, ("slice between NaN",) * 4)
    with guarded_outputs() as guard, metered() as meter:
        o, lse = attention_forward(q, k, v, causal)
    assert (meter.of(o).stores == 1).all() and (meter.of(lse).stores == 1).all()
    assert sum(int(storage.stores.sum()) for storage in meter.storages.values()) == o.numel() + lse.numel()
    assert allocated(guard) == sorted([o.numel(), lse.numel()])
    assert (meter.of(q).loads == 1).all()


@interpreted
@pytest.mark.parametrize("causal", [False, True])
def test_backward_has_one_writer_for_each_element(causal):
    from labs_helpers.course.meter import metered

    q, k, v, do = operands(1, 4, 2, 100, 130, 24, torch.float16, ("slice between NaN",) * 4)
    o, lse = attention_forward(q, k, v, causal)
    with guarded_outputs() as guard, metered() as meter:
        gradients = attention_backward(q, k, v, o, lse, do, causal)
    for gradient in gradients:
        assert (meter.of(gradient).writers == 1).all() and (meter.of(gradient).stores == 1).all()
    sizes = [*(g.numel() for g in gradients), lse.numel()]  # the last is delta
    assert allocated(guard) == sorted(sizes)
    assert sum(int(storage.stores.sum()) for storage in meter.storages.values()) == sum(sizes)


@interpreted
@pytest.mark.parametrize(("Lq", "Lk"), [(128, 128), (100, 130), (130, 100), (40, 200), (200, 40)])
def test_causal_loads_only_the_tiles_that_some_query_sees(Lq, Lk):
    from labs_helpers.course.meter import metered

    config, (q, k, v, do) = Config(32, 16), operands(1, 1, 1, Lq, Lk, 16)
    o, lse = attention_forward(q, k, v, True)
    with metered() as forward:
        portable.forward(q, k, v, True, 0.25, config)
    with metered() as keys:
        portable.backward(q, k, v, o, lse, do, True, 0.25, (False, True, True), config, config)
    with metered() as queries:
        portable.backward(q, k, v, o, lse, do, True, 0.25, (True, False, False), config, config)
    seen = torch.ones(Lq, Lk, dtype=torch.bool).tril(Lk - Lq)
    tiles = torch.stack([torch.stack([part.any() for part in rows.split(16, dim=1)]) for rows in seen.split(32)])
    key_loads = tiles.sum(0).repeat_interleave(16)[:Lk]  # one load per query tile that sees it
    query_loads = tiles.sum(1).repeat_interleave(32)[:Lq]
    for meter in (forward, queries):
        for x in (k, v):
            assert (meter.of(x).loads[0, 0] == key_loads[:, None].numpy()).all()
    assert (keys.of(q).loads[0, 0] == query_loads[:, None].numpy()).all()
    assert (keys.of(do).loads[0, 0] == 1 + query_loads[:, None].numpy()).all()  # one more load for delta


def test_rows_too_far_apart_for_32_bits_within_a_tile_are_copied():
    far = torch.empty_strided((1, 1, 2, 16), (2**24, 2**24, 2**23, 1), dtype=torch.float16, device=HERE.device)
    q, k, v, do = operands(1, 1, 1, 2, 2, 16, torch.float16)
    far.copy_(k)
    assert torch.equal(flash_attention(q, far, v), flash_attention(q, k, v))


q, k, v = (torch.ones(2, heads, length, 16) for heads, length in ((4, 5), (2, 7), (2, 7)))
BAD = {
    "a list": ((q.tolist(), k, v), TypeError, "q is a list, not a torch.Tensor"),
    "three dimensions": ((q, k[0], v), ValueError, "k has 3 dimensions, not 4"),
    "empty": ((q, k[:, :, :0], v[:, :, :0]), ValueError, r"k is empty: \(2, 2, 0, 16\)"),
    "integers": ((q.int(), k.int(), v.int()), TypeError, "q is torch.int32"),
    "float64": ((q.double(), k.double(), v.double()), TypeError, "q is torch.float64"),
    "mixed": ((q, k.half(), v), TypeError, "k is torch.float16, but q is torch.float32"),
    "mixed in v": ((q, k, v.half()), TypeError, "v is torch.float16, but q is torch.float32"),
    "another device": ((q, k, v.to("meta")), ValueError, "v is on meta, but q is on cpu"),
    "no memory": ((q.to("meta"), k.to("meta"), v.to("meta")), ValueError, "q is on meta"),
    "batches": ((q[:1], k, v), ValueError, "k and v have batch 2, but q has batch 1"),
    "head dims": ((q[..., :8], k, v), ValueError, "k and v have head dim 16, but q has head dim 8"),
    "k and v": ((q, k, v[:, :, :6]), ValueError, r"v is \(2, 2, 6, 16\), but k is \(2, 2, 7, 16\)"),
    "heads": ((q[:, :3], k, v), ValueError, "q has 3 heads, which is no multiple of the 2 heads of k and v"),
    "small head dim": ([x[..., :8] for x in (q, k, v)], ValueError, "q has head dim 8; the kernels take 16 to 128"),
    "large head dim": ([x.repeat(1, 1, 1, 9) for x in (q, k, v)], ValueError, "q has head dim 144"),
    "scale": ((q, k, v, False, float("nan")), ValueError, "scale is nan; it has to be finite"),
    "scale as text": ((q, k, v, False, "small"), TypeError, "scale is 'small', not a number"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("function", [flash_attention, attention_forward])
def test_bad_operands_are_named(case, function):
    arguments, error, message = BAD[case]
    at_home = [x.to(HERE.device) if isinstance(x, torch.Tensor) and x.device.type == "cpu" else x for x in arguments]
    with pytest.raises(error, match=message.replace("but q is on cpu", f"but q is on {HERE.device}")):
        function(*at_home)


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("o", lambda t: t[..., :8], ValueError, r"o is \(2, 4, 5, 8\), expected \(2, 4, 5, 16\)"),
        ("o", lambda t: None, TypeError, "o is a NoneType, not a torch.Tensor"),
        ("lse", lambda t: t[:, :1], ValueError, r"lse is \(2, 1, 5\), expected \(2, 4, 5\)"),
        ("lse", lambda t: t.half(), TypeError, "lse is torch.float16, expected torch.float32"),
        ("do", lambda t: t.half(), TypeError, "do is torch.float16, expected torch.float32"),
        ("do", lambda t: t.to("meta"), ValueError, "do is on meta, but q is on"),
    ],
)
def test_bad_operands_of_the_backward_pass_are_named(name, change, error, message):
    x, y, z = (t.to(HERE.device) for t in (q, k, v))
    o, lse = attention_forward(x, y, z)
    arguments = {"o": o, "lse": lse, "do": o}
    with pytest.raises(error, match=message):
        attention_backward(x, y, z, **arguments | {name: change(arguments[name])})


def test_bfloat16_works_where_the_hardware_has_it_and_is_refused_elsewhere():
    x = [t.bfloat16().to(HERE.device) for t in (q, k, v)]
    if not HERE.supports_bfloat16:
        with pytest.raises(TypeError, match="q is bfloat16, and"):
            flash_attention(*x)
    else:
        expected = torch_reference.flash_attention(*(t.double() for t in x))
        torch.testing.assert_close(flash_attention(*x).double(), expected, rtol=2**-7, atol=2**-8)


def test_a_cpu_tensor_is_refused_where_kernels_are_compiled(monkeypatch):
    from dataclasses import replace

    from labs_helpers.attention import operands as checks

    monkeypatch.setattr(checks, "this_machine", lambda: replace(HERE, interpreted=False))
    with pytest.raises(ValueError, match="q is on the CPU, and kernels are compiled for the GPU"):
        checks.check_operands(q, k, v)


def test_the_plan_says_why_and_determinism_asks_for_the_general_kernels(monkeypatch):
    if HERE.interpreted:
        assert str(plan(q, k, v)).startswith("portable kernel: the Hopper kernels need sm_90")
    monkeypatch.setattr(hopper, "why_not", lambda *operands: None)
    x, y, z = (torch.ones(2, 2, 11, 16, device=HERE.device) for _ in range(3))  # a shape that no other test has
    o, lse = portable.forward(x, y, z, False, 0.25)
    assert plan(x, y, z).kernel == "hopper" == plan_backward(x, y, z, o, lse, o).kernel
    torch.use_deterministic_algorithms(True)
    try:
        chosen = plan_backward(x, y, z, o, lse, o)
        assert chosen.kernel == "portable" and "deterministic" in chosen.why
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("architecture", [None, "sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120", "gfx942"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("D", [16, 64, 80, 128])
def test_every_default_is_one_the_kernels_can_be_built_with(architecture, dtype, D):
    for direction in DIRECTIONS:
        config = default_config(direction, D, dtype, architecture)
        assert all(block >= 16 and block & (block - 1) == 0 for block in (config.BLOCK_M, config.BLOCK_N))


def test_consumer_chips_take_the_configurations_of_sm_80():
    assert [family(a) for a in ("sm_86", "sm_89", "sm_120")] == ["sm_80"] * 3
    assert [family(a) for a in ("sm_70", "sm_103", "gfx90a")] == ["sm_75", "sm_100", "gfx942"]
