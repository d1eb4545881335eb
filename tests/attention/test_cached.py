"""Test the decoding step's attention on a static cache against float64: ragged lengths, groups, splits, builds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention.kernels.cached import CachedAttention
from labs_helpers.attention.kernels.decode import DecodeConfig, decode_config
from labs_helpers.compile.ahead_of_time import SHARED_LIMIT, compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.course.verdict import expect_close
from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer.model import rotary_angles, rotate
from tests.attention.test_flash_attention import ROUNDING, TINY, UNIT, wide

HERE = this_machine()
small = DecodeConfig(BLOCK_N=16, num_warps=4, num_stages=2, programs=1)


def operands(lengths, H, Hkv, D, capacity, dtype, seed=0):
    """Return qkv, cos, sin, lengths, k and v; what the caches hold behind the lengths is NaN."""
    generator, B = torch.Generator().manual_seed(seed), len(lengths)
    qkv = torch.randn(B, (H + 2 * Hkv) * D, generator=generator)
    caches = [torch.randn(B, Hkv, capacity, D, generator=generator) for _ in range(2)]
    for cache in caches:
        for row, length in enumerate(lengths):
            cache[row, :, length:] = torch.nan
    cos, sin = rotary_angles(capacity, D, 10_000.0)
    counts = torch.tensor(lengths, dtype=torch.int32)
    return [x.to(HERE.device) for x in (qkv.to(dtype), cos, sin, counts, *(cache.to(dtype) for cache in caches))]


def check(lengths, H, Hkv, D, capacity, dtype, splits, config=small, seed=0):
    qkv, cos, sin, counts, k, v = operands(lengths, H, Hkv, D, capacity, dtype, seed)
    before = k.clone(), v.clone()
    attend = CachedAttention(k, H, None, config, splits)
    o = attend(qkv, cos, sin, counts, k, v)
    again = attend(qkv, cos, sin, counts, k, v)
    assert torch.equal(o, again), "the parts are joined in one order, and the counters are left at zero"
    for row, length in enumerate(lengths):
        q, new_k, new_v = qkv[row].view(-1, D).split([H, Hkv, Hkv])
        q, new_k = (rotate(x, cos[length], sin[length]) for x in (q, new_k))
        torch.testing.assert_close(k[row, :, length], new_k, rtol=2 * UNIT[dtype], atol=1e-6)
        assert torch.equal(v[row, :, length], new_v)
        for cache, old in zip((k, v), before, strict=True):
            assert (
                torch.equal(cache[row, :, :length], old[row, :, :length]) and cache[row, :, length + 1 :].isnan().all()
            )
        q, keys, values = wide(q, k[row, :, : length + 1], v[row, :, : length + 1])
        keys, values = (x.repeat_interleave(H // Hkv, dim=0) for x in (keys, values))
        scores = torch.einsum("hd,hnd->hn", q, keys) * D**-0.5
        p = scores.softmax(-1)
        expected, weight = torch.einsum("hn,hnd->hd", p, values), torch.einsum("hn,hnd->hd", p, values.abs())
        # As in check_forward; besides, the rotation's last float32 bit may round q to the neighboring number.
        largest = (torch.einsum("hd,hnd->hn", q.abs(), keys.abs()) * D**-0.5).amax(-1, keepdim=True)
        off = ((D + 8) * ROUNDING + 2 * UNIT[dtype]) * (largest + 1)
        bound = (2 * off + UNIT[dtype] + (length + 5) * ROUNDING) * weight + UNIT[dtype] * expected.abs()
        bound += TINY[dtype] * (1 + values.abs().sum(1))
        expect_close(f"o of row {row}", o[row].view(H, D), expected, bound, "rounding of q, k, P and o to the dtype")


def paged(cache, page, seed):
    """Return the cache in pages, in random order among others that hold NaN, and the table of the pages."""
    B, Hkv, capacity, D = cache.shape
    each = -(-capacity // page)
    order = torch.randperm(2 * B * each, generator=torch.Generator().manual_seed(seed))[: B * each].to(cache.device)
    pages = torch.full((2 * B * each, Hkv, page, D), torch.nan, dtype=cache.dtype, device=cache.device)
    whole = torch.nn.functional.pad(cache, (0, 0, 0, each * page - capacity), value=torch.nan)
    pages[order] = whole.unflatten(2, (each, page)).transpose(1, 2).flatten(0, 1)
    return pages, order.view(B, each).int()


def check_paged(lengths, H, Hkv, D, capacity, dtype, splits, page, config=small, seed=0):
    """The same numbers in pages give the same bits, in the same places."""
    qkv, cos, sin, counts, k, v = operands(lengths, H, Hkv, D, capacity, dtype, seed)
    (k_pages, table), (v_pages, _) = paged(k, page, seed), paged(v, page, seed)
    expected = CachedAttention(k, H, None, config, splits)(qkv, cos, sin, counts, k, v)
    attend = CachedAttention(k_pages, H, None, config, splits, table=table)
    assert torch.equal(attend(qkv, cos, sin, counts, k_pages, v_pages, table), expected)
    for pages, cache in ((k_pages, k), (v_pages, v)):
        again, _ = paged(cache, page, seed)
        assert torch.equal(pages.nan_to_num(9.0), again.nan_to_num(9.0))


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 69), min_size=1, max_size=3),
    Hkv=st.integers(1, 2),
    group=st.sampled_from([1, 3]),
    D=st.sampled_from([16, 24, 64]),
    splits=st.sampled_from([1, 2, 7]),
    page=st.sampled_from([1, 4, 7, 16, 32, 48]),
    seed=st.integers(0, 9),
)
def test_a_cache_in_pages_gives_the_same_bits(lengths, Hkv, group, D, splits, page, seed):
    check_paged(lengths, Hkv * group, Hkv, D, 70, torch.float16, splits, page, seed=seed)


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 69), min_size=1, max_size=3),
    Hkv=st.integers(1, 2),
    group=st.sampled_from([1, 2, 3, 17]),
    D=st.sampled_from([16, 24, 64]),
    half=st.booleans(),
    splits=st.sampled_from([1, 2, 3, 7]),
    seed=st.integers(0, 9),
)
def test_ragged_lengths_groups_head_dims_and_splits(lengths, Hkv, group, D, half, splits, seed):
    check(lengths, Hkv * group, Hkv, D, 70, torch.float16 if half else torch.float32, splits, seed=seed)


def test_the_default_configuration_and_number_of_splits():
    check([299, 0, 130], 4, 2, 32, 300, torch.float16, None, config=None)
    check_paged([299, 0, 130], 4, 2, 32, 304, torch.float16, None, 16, config=None)


def test_what_the_kernel_does_not_take():
    cache = torch.zeros(1, 2, 8, 16, dtype=torch.float16, device=HERE.device)
    for wrong, error, words in (
        ((cache.double(), 2), TypeError, "the cache is torch.float64"),
        ((cache[..., :15], 2), ValueError, "head dim 15"),
        ((cache.mT.contiguous().mT, 2), ValueError, "strides"),
        ((cache, 3), ValueError, "heads is 3"),
        ((cache, 256), ValueError, "heads is 256; at most 64"),
    ):
        with pytest.raises(error, match=words):
            CachedAttention(*wrong)
    for table in (torch.zeros(1, 2).long(), torch.zeros(2, 2).int().T):
        with pytest.raises(ValueError, match="rows of int32"):
            CachedAttention(cache, 2, table=table.to(HERE.device))


TARGETS = {"sm_80": False, "sm_90": True, "sm_100": True, "gfx942": False}


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_it_builds_on_tensor_cores_without_spills_and_waits_before_it_reads(target, pages):
    jobs = []
    for H, Hkv, splits in ((16, 16, 16), (16, 16, 1), (32, 4, 4)):
        cache = torch.zeros(1, Hkv, 16 if pages else 2048, 128, dtype=torch.float16)
        table = torch.zeros(1, 128, dtype=torch.int32) if pages else None
        qkv, counts, angles = torch.zeros(1, (H + 2 * Hkv) * 128).half(), torch.zeros(1).int(), torch.zeros(2048, 64)
        config = decode_config(128, H // Hkv, target)
        with record_launches(run=False) as launches:
            attend = CachedAttention(cache, H, None, config, splits, TARGETS[target], table)
            attend(qkv, angles, angles, counts, cache, cache, table)
        jobs.append(job(launches[0], target))
    for built in compile_all(jobs, timeout=300):
        assert built.uses_tensor_cores and not built.spills and built.shared <= SHARED_LIMIT[target]
        if TARGETS[target]:
            assert built.assembly.index("griddepcontrol.wait") < built.assembly.index("ld.global")
