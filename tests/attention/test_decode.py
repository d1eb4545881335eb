"""Test the decode kernels against float64 for any lengths, groups, strides and splits; their traffic; their builds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention.flash import attention_forward, flash_attention
from labs_helpers.attention.kernels import decode, portable
from labs_helpers.attention.kernels.decode import DecodeConfig, choose_splits, decode_config
from labs_helpers.attention.plan import plan, plan_backward
from labs_helpers.compile.ahead_of_time import SHARED_LIMIT, compile_all, job, triton_for
from labs_helpers.compile.launches import record_launches
from labs_helpers.measure.machine import this_machine
from tests.attention.test_flash_attention import LAYOUTS, check_backward, check_forward, operands

HERE = this_machine()
interpreted = pytest.mark.skipif(not HERE.interpreted, reason="counted in the interpreter")
small = DecodeConfig(BLOCK_N=16, num_warps=4, num_stages=2, programs=1)

any_decode = given(
    B=st.integers(1, 2),
    Hkv=st.integers(1, 2),
    group=st.sampled_from([1, 2, 3, 8]),
    Lq=st.one_of(st.just(1), st.integers(1, 16)),
    Lk=st.one_of(st.integers(1, 70), st.sampled_from([64, 65, 127, 128, 129, 300])),
    D=st.sampled_from([16, 24, 64, 96, 128]),
    causal=st.booleans(),
    half=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 4),
    magnitude=st.sampled_from([1, 1, 40]),
    scale=st.sampled_from([None, None, 0.05, -0.3, 0.0]),
    splits=st.sampled_from([1, 2, 3, 7, 1000]),
    config=st.sampled_from([None, small]),
    seed=st.integers(0, 9),
)


@settings(max_examples=40)
@any_decode
def test_any_shape_stride_and_number_of_parts(**drawn):
    shape_and_parts(**drawn)


@pytest.mark.soak
@settings(max_examples=500)
@any_decode
def test_any_shape_stride_and_number_of_parts_of_many(**drawn):
    shape_and_parts(**drawn)


def shape_and_parts(B, Hkv, group, Lq, Lk, D, causal, half, layouts, magnitude, scale, splits, config, seed):
    dtype = torch.float16 if half else torch.float32
    if not half and not HERE.interpreted:
        config = small  # the other configurations are for 16-bit floats
    q, k, v, _ = operands(B, Hkv * group, Hkv, Lq, Lk, D, dtype, layouts, magnitude, seed)
    o, lse = decode.forward(q, k, v, causal, D**-0.5 if scale is None else scale, config, splits)
    check_forward(o, lse, q, k, v, causal, scale, f"{tuple(q.shape)} on {tuple(k.shape)}, {splits} parts")


def test_rows_that_see_no_key_in_one_part_or_in_any():
    q, k, v, _ = operands(1, 4, 2, 16, 10, 16, torch.float16)  # six queries see no key; only four see part 2
    o, lse = decode.forward(q, k, v, True, 0.25, DecodeConfig(16, 4, 2, 1), 5)
    assert (o[:, :, :6] == 0).all() and (lse[:, :, :6] == -torch.inf).all() and lse[:, :, 6:].isfinite().all()
    q, k, v, _ = operands(1, 4, 2, 16, 40, 16, torch.float16)  # the first queries do not see the last part
    o, lse = decode.forward(q, k, v, True, 0.25, small, 3)
    check_forward(o, lse, q, k, v, True, 0.25, "a part that some rows do not see")


def test_scores_near_200_neither_overflow_nor_vanish():
    for score in (200.0, -200.0):
        q, k, v, _ = operands(1, 2, 1, 4, 100, 16, torch.float16)
        q, k = torch.full_like(q, score / 16), k.abs().clamp(0.9, 1.1)
        o, lse = decode.forward(q, k, v, True, 1.0, small, 7)
        check_forward(o, lse, q, k, v, True, 1.0, f"scores near {score}")


def test_the_plan_takes_them_for_few_queries_in_16_bit_floats_and_the_usual_kernels_for_the_gradient():
    q, k, v, do = operands(1, 8, 2, 5, 150, 32, torch.float16)
    assert plan(q, k, v, True).kernel == "decode" and "5 of at most 16 queries" in str(plan(q, k, v, True))
    assert plan(q.float(), k.float(), v.float()).kernel == "portable"
    many = operands(1, 8, 2, 17, 150, 32, torch.float16)[:3]
    assert plan(*many).kernel != "decode"
    o, lse = attention_forward(q, k, v, True)
    assert plan_backward(q, k, v, o, lse, do, True).kernel != "decode"
    inputs = [x.requires_grad_() for x in (q, k, v)]
    with record_launches() as launches:
        gradients = torch.autograd.grad(flash_attention(*inputs, causal=True), inputs, do)
    assert "decode_kernel" in [launch.name for launch in launches]
    check_backward(gradients, *(x.detach() for x in (q, k, v)), o, lse, do, True, None, "after a decode")


@interpreted
def test_keys_and_values_are_read_once_for_the_whole_group_and_results_stored_once():
    from labs_helpers.course.meter import metered
    from labs_helpers.course.verdict.surroundings import guarded_outputs

    q, k, v, _ = operands(2, 8, 2, 4, 150, 24, torch.float16, ("slice between NaN",) * 4)
    for splits in (1, 3):
        with guarded_outputs() as guard, metered() as meter:
            o, lse = decode.forward(q, k, v, True, 0.2, small, splits)
        assert guard.overwritten() == 0
        assert (meter.of(k).loads == 1).all() and (meter.of(v).loads == 1).all()
        assert (meter.of(q).loads == splits).all()
        assert (meter.of(o).stores == 1).all() and (meter.of(lse).stores == 1).all()
        stored = sum(int(storage.stores.sum()) for storage in meter.storages.values())
        assert stored == o.numel() + lse.numel() + (splits > 1) * splits * 2 * 8 * 4 * (24 + 2)


@interpreted
def test_more_rows_than_a_tile():
    q, k, v, _ = operands(1, 12, 1, 7, 40, 16, torch.float16)  # 84 rows read the one K/V head
    with record_launches() as launches:
        o, lse = decode.forward(q, k, v, True, 0.25, small, 2)
    assert launches[0].grid == (2 * 2,)
    check_forward(o, lse, q, k, v, True, 0.25, "84 rows")


@given(programs=st.integers(1, 2000), blocks=st.integers(1, 4096), slots=st.integers(1, 1000))
def test_no_part_is_empty(programs, blocks, slots):
    splits = choose_splits(programs, blocks, slots)
    assert 1 <= splits <= min(blocks, decode.MOST_SPLITS)
    a_part = -(-blocks // splits)
    assert (splits - 1) * a_part < blocks


def test_one_sequence_fills_the_gpu_and_many_are_not_split():
    slots = 2 * 132
    assert choose_splits(8, 1024, slots) * 8 > 0.9 * slots  # 8 K/V heads, 64k keys
    assert choose_splits(slots, 64, slots) == 1 and choose_splits(8, 1, slots) == 1
    assert choose_splits(16, 64, 1) == 1


SHAPES = {"one query": (1, 4, 4, 1), "a group of 8 with 4 queries": (1, 16, 2, 4), "80 rows": (1, 10, 2, 16)}
TARGETS = ["sm_75", "sm_80", "sm_90"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_they_build_for_the_gpus_on_tensor_cores_without_spills(shape, target):
    if target == "sm_75" and triton_for(target) is None:
        pytest.skip("Triton 3.2.0 is not installed beside the environment")
    B, H, Hkv, Lq = SHAPES[shape]
    jobs = []
    for D in (64, 96, 128):
        with record_launches(run=False) as launches:
            q, k, v, _ = operands(B, H, Hkv, Lq, 1024, D, torch.float16)
            decode.forward(q, k, v, True, 0.1, decode_config(D, H // Hkv * Lq, target), 4)
        jobs += [job(launch, target) for launch in launches]
    for i, built in enumerate(compile_all(jobs, timeout=300, triton_path=triton_for(target))):
        assert built.uses_tensor_cores == (i % 2 == 0) and built.spills == 0
        assert built.shared <= SHARED_LIMIT[target]


def test_the_parts_are_joined_in_one_order():
    q, k, v, _ = operands(1, 4, 2, 3, 200, 32, torch.float16)
    first = decode.forward(q, k, v, True, 0.2, small, 6)
    again = decode.forward(q, k, v, True, 0.2, small, 6)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert portable.within_tiles(k)[0] is k
