"""Test the paged attention in plain PyTorch against the one on a static cache, and the kernel against it."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.attention.kernels.cached import CachedAttention
from labs_helpers.compile.ahead_of_time import compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.measure.machine import this_machine
from labs_helpers.serving import paged_attention
from labs_helpers.serving.chunks import ChunkAttention, Span, causal, rotate_and_store
from labs_helpers.serving.paged_attention import attend_paged
from labs_helpers.transformer.decode_plain import attend_plain
from labs_helpers.transformer.model import rotary_angles
from tests.attention.test_cached import operands, paged

HERE = this_machine()
drawn = given(
    lengths=st.lists(st.integers(0, 39), min_size=1, max_size=4),
    Hkv=st.integers(1, 2),
    group=st.sampled_from([1, 3]),
    size=st.sampled_from([1, 4, 16]),
    seed=st.integers(0, 9),
)


def in_pages(lengths, H, Hkv, size, dtype, seed):
    """Return operands of the attention on a static cache, and the caches in pages with their table. No NaN: plain
    PyTorch masks what it does not use."""
    *given, k, v = operands(lengths, H, Hkv, 16, 40, dtype, seed)
    k, v = k.nan_to_num(7.0), v.nan_to_num(-7.0)
    (k_pages, table), (v_pages, _) = paged(k, size, seed), paged(v, size, seed)
    return given, k, v, k_pages.nan_to_num(5.0), v_pages.nan_to_num(5.0), table


@settings(max_examples=30)
@drawn
def test_pages_in_plain_pytorch_are_as_a_static_cache(lengths, Hkv, group, size, seed):
    given, k, v, k_pages, v_pages, table = in_pages(lengths, Hkv * group, Hkv, size, torch.float64, seed)
    expected = attend_plain(*given, k, v)
    torch.testing.assert_close(attend_paged(*given, k_pages, v_pages, table), expected, rtol=1e-13, atol=1e-13)
    for pages, cache in ((k_pages, k), (v_pages, v)):
        back = pages[table].transpose(1, 2).flatten(2, 3)[:, :, :40]
        assert torch.equal(back, cache)


@settings(max_examples=15)
@drawn
def test_the_kernel_is_as_plain_pytorch(lengths, Hkv, group, size, seed):
    given, _, _, k_pages, v_pages, table = in_pages(lengths, Hkv * group, Hkv, size, torch.float32, seed)
    mine = [k_pages.clone(), v_pages.clone()]
    expected = attend_paged(*given, k_pages, v_pages, table)
    attend = CachedAttention(k_pages, Hkv * group, splits=2, table=table)
    torch.testing.assert_close(attend(*given, *mine, table), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mine, [k_pages, v_pages], rtol=1e-6, atol=1e-6)


@settings(max_examples=30)
@drawn
def test_a_chunk_of_one_position_is_a_decoding_step(lengths, Hkv, group, size, seed):
    given, _, _, k_pages, v_pages, table = in_pages(lengths, Hkv * group, Hkv, size, torch.float64, seed)
    mine = [k_pages.clone(), v_pages.clone()]
    expected = attend_paged(*given, k_pages, v_pages, table)
    spans = [Span(at, at + 1, row[: at // size + 1]) for at, row in zip(lengths, table.tolist(), strict=True)]
    attend = ChunkAttention(spans, size, given[0].device)
    qkv, cos, sin, _ = given
    torch.testing.assert_close(attend(qkv, cos, sin, attend.positions, *mine), expected, rtol=1e-13, atol=1e-13)
    assert torch.equal(mine[0], k_pages) and torch.equal(mine[1], v_pages)


@pytest.mark.parametrize(("H", "Hkv", "D"), [(4, 4, 64), (6, 2, 20), (5, 1, 128)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_rotating_kernel_is_as_plain_pytorch(H, Hkv, D, dtype):
    generator, rows, size = torch.Generator().manual_seed(D), 9, 4
    qkv = torch.randn(rows, (H + 2 * Hkv) * D, generator=generator).to(HERE.device, dtype)
    cos, sin = rotary_angles(40, D, 10_000.0, HERE.device)
    k, v = torch.randn(2, rows + 1, Hkv, size, D, generator=generator).to(HERE.device, dtype)
    positions = torch.randint(40, (rows,), generator=generator).to(HERE.device)
    block = torch.randperm(rows + 1, generator=generator)[:rows].to(HERE.device)
    found = []
    for kernels in (False, True):
        mine = [qkv.clone(), k.clone(), v.clone()]
        rotate_and_store(mine[0], cos, sin, positions, block, *mine[1:], kernels)
        found.append(mine)
    torch.testing.assert_close(found[1], found[0], rtol=1e-3 if dtype == torch.float16 else 1e-6, atol=1e-6)
    assert not torch.equal(found[0][0], qkv) and torch.equal(found[1][0][:, -Hkv * D :], qkv[:, -Hkv * D :])


def test_the_rotating_kernel_builds_for_gpus():
    k, v = torch.zeros(2, 3, 16, 16, 128).bfloat16()
    with record_launches(run=False) as launches:
        at = torch.zeros(2, dtype=torch.int64)
        rotate_and_store(torch.zeros(2, 48 * 128).bfloat16(), *torch.zeros(2, 8, 64), at, at, k, v, True)
    for target in ("sm_80", "sm_90", "gfx942"):
        assert compile_all([job(launches[0], target)], timeout=300)[0].assembly


@pytest.mark.skipif(not HERE.interpreted, reason="the cache is on the CPU")
def test_positions_of_one_sequence_attend_to_each_other(monkeypatch):
    """The kernels do as plain PyTorch, and both as a chunk."""
    generator, H, Hkv, D, size = torch.Generator().manual_seed(0), 4, 2, 16, 4
    table = torch.tensor([[2, 0, 3]] * 3, dtype=torch.int32)
    lengths = torch.tensor([5, 6, 7], dtype=torch.int32)
    qkv = torch.randn(3, (H + 2 * Hkv) * D, generator=generator)
    cos, sin = rotary_angles(12, D, 10_000.0)
    caches = torch.randn(2, 1, 4, Hkv, size, D, generator=generator)
    attend, found = ChunkAttention([Span(5, 8, [2, 0])], size, qkv.device), []
    for kernels in (False, True):
        monkeypatch.setattr(paged_attention, "uses_kernels", lambda cache, kernels=kernels: kernels)
        k, v = caches.clone()
        of_rows = paged_attention.paged_attention(SimpleNamespace(k=k, v=v, size=size), table, H, together=True)
        found.append([of_rows(qkv, cos, sin, lengths, k[0], v[0]), k[0], v[0]])
    k, v = caches.clone()
    found.append([attend(qkv.clone(), cos, sin, attend.positions, k[0], v[0]), k[0], v[0]])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-5)


def test_chunks_of_a_sequence_are_the_whole_sequence():
    generator, H, Hkv, D, L, size = torch.Generator().manual_seed(0), 4, 2, 8, 23, 4
    qkv = torch.randn(L, (H + 2 * Hkv) * D, generator=generator, dtype=torch.float64)
    cos, sin = rotary_angles(L, D, 10_000.0)
    blocks = torch.randperm(9, generator=generator)[: -(-L // size)].tolist()

    def computed(cuts):
        k, v = torch.full((2, 9, Hkv, size, D), 1e3, dtype=torch.float64)
        parts = []
        for start, stop in zip(cuts, cuts[1:], strict=False):
            attend = ChunkAttention([Span(start, stop, blocks[: -(-stop // size)])], size, qkv.device)
            parts.append(attend(qkv[start:stop].clone(), cos, sin, attend.positions, k, v))
        return torch.cat(parts)

    whole = computed([0, L])
    for cuts in ([0, 1, 2, L], [0, 8, 16, L], [0, 5, 22, L]):
        torch.testing.assert_close(computed(cuts), whole, rtol=1e-13, atol=1e-13)
    q, k = torch.randn(2, 3, D, generator=generator), torch.randn(2, 7, D, generator=generator)
    scores = (q @ k.mT * D**-0.5).masked_fill(torch.ones(3, 7, dtype=torch.bool).triu(5), -torch.inf)
    torch.testing.assert_close(causal(q, k, k), scores.softmax(-1) @ k, rtol=1e-5, atol=1e-6)
