"""Test the split-K kernel for all shapes, strides and dtypes, and for any order of its programs."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.compile.ahead_of_time import compile_all, job, triton_for
from labs_helpers.compile.launches import record_launches
from labs_helpers.course.verdict import expect_close, matmul_bound, surrounded
from labs_helpers.gemm.kernels import split_k
from labs_helpers.gemm.kernels.split_k import SplitConfig, split_k_matmul, worth_timing
from labs_helpers.measure.machine import this_machine

DEVICE = this_machine().device
interpreted = pytest.mark.skipif(not this_machine().interpreted, reason="the order of programs is the interpreter's")
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "transposed": lambda x: x.t().contiguous().t(),
    "slice between NaN": surrounded,
    "every other column": lambda x: torch.stack([x, torch.full_like(x, torch.nan)], dim=2).flatten(1)[:, ::2],
    "row expanded": lambda x: x[:1].expand(*x.shape),
}


def operands(M, N, K, dtype, layouts=("contiguous",) * 3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((M, K), (K, N), (M, N))
    return [
        LAYOUTS[layout](torch.randn(*shape, generator=generator).to(dtype).to(DEVICE))
        for shape, layout in zip(shapes, layouts, strict=True)
    ]


def agrees(a, b, c, config):
    exact = (a.cpu().double() @ b.cpu().double() + c.cpu().double()).relu()
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + c.cpu().double().abs()
    got = split_k_matmul(a, b, c, config)
    expect_close(f"{tuple(a.shape)}", got, exact, matmul_bound(exact, magnitude, a.shape[1], a.dtype), "float32")


@settings(max_examples=60)
@given(
    M=st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 100])),
    N=st.one_of(st.integers(1, 40), st.sampled_from([64, 65, 100])),
    K=st.one_of(st.integers(1, 40), st.sampled_from([128, 150, 257])),
    blocks=st.tuples(*[st.sampled_from([16, 32])] * 3),
    splits=st.integers(1, 9),
    half=st.booleans(),
    seed=st.integers(0, 9),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
)
def test_any_shape_stride_and_number_of_splits(M, N, K, blocks, splits, half, seed, layouts):
    dtype = torch.float16 if half else torch.float32
    agrees(*operands(M, N, K, dtype, layouts, seed), SplitConfig(*blocks, splits))


@interpreted
def test_the_result_is_the_same_bit_by_bit_whichever_program_is_the_last(monkeypatch):
    from triton.runtime.interpreter import interpreter_builder

    a, b, c = operands(20, 70, 300, torch.float32)
    config = SplitConfig(16, 32, 16, 5)
    kept: list[torch.Tensor] = []
    monkeypatch.setattr(split_k, "counters", lambda tiles, device: kept.append(torch.zeros(tiles).int()) or kept[-1])
    expected = split_k_matmul(a, b, c, config)
    programs = 2 * 3 * 5
    place = interpreter_builder.set_grid_idx
    for seed in range(6):
        order = torch.randperm(programs, generator=torch.Generator().manual_seed(seed)).tolist()
        monkeypatch.setattr(interpreter_builder, "set_grid_idx", lambda x, y, z, order=order: place(order[x], y, z))
        assert torch.equal(split_k_matmul(a, b, c, config), expected)
    assert len(kept) == 7 and all(len(counters) == 6 and not counters.any() for counters in kept)


@interpreted
def test_every_part_is_written_once_and_read_once_and_d_written_once():
    from labs_helpers.course.tally import tally

    a, b, c = operands(20, 70, 96, torch.float32)
    counted = tally(partial(split_k_matmul, config=SplitConfig(16, 32, 16, 3)), a, b, c)
    assert (counted.stores == 1).all() and (counted.loads[2] == 1).all()


def test_more_splits_than_steps_leave_no_empty_program():
    a, b, c = operands(3, 40, 100, torch.float32)
    with record_launches(run=False) as launches:
        split_k_matmul(a, b, c, SplitConfig(16, 16, 32, 9))
    assert launches[0].arguments["splits"] == 4 and launches[0].arguments["steps"] == 1
    assert launches[0].grid == (3 * 4,)


@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_it_builds_without_spills(target):
    """Build one configuration for each number of rows, and the one with 64-bit offsets."""
    if target == "sm_75" and triton_for(target) is None:
        pytest.skip("newer Tritons than 3.2.0 do not use a T4's tensor cores")
    with record_launches(run=False) as launches:
        for M in (16, 64, 128):
            x = [torch.empty(s, dtype=torch.float16, device=DEVICE) for s in ((M, 4096), (4096, 256), (M, 256))]
            split_k_matmul(*x, replace(worth_timing(M)[-1], SPLITS=4))
    launches[0].arguments["WIDE"] = True
    jobs = [job(launch, target) for launch in launches if target == "sm_90" or launch.arguments["BLOCK_N"] < 256]
    limit = {"sm_75": 65_536, "sm_90": 232_448}[target]
    for compiled in compile_all(jobs, triton_path=triton_for(target)):
        assert compiled.uses_tensor_cores and not compiled.spills and compiled.shared <= limit, compiled


@pytest.mark.parametrize("M", [1, 16, 17, 64, 100, 128, 500])
def test_what_is_worth_timing_has_one_or_two_rows_of_tiles(M):
    configs = worth_timing(M)
    assert len(configs) >= 3 and all(c.BLOCK_N >= 64 and -(-min(M, 128) // c.BLOCK_M) <= 2 for c in configs)


def test_a_barrier_stands_between_the_parts_and_the_counter():
    """Only one thread adds to the counter, so the stores of the others must be complete before it does."""
    with record_launches(run=False) as launches:
        x = [torch.empty(s, dtype=torch.float16, device=DEVICE) for s in ((16, 4096), (4096, 256), (16, 256))]
        split_k_matmul(*x, SplitConfig(16, 64, 64, 4))
    (compiled,) = compile_all([job(launches[0], "sm_90")])
    before, after = compiled.assembly.split("atom.global.gpu.acq_rel.add", 1)
    assert before.rfind("bar.sync") > before.rfind("st.global") > 0 and "st.global" in after and "bar.sync" in after


@pytest.mark.skipif(DEVICE != "cuda", reason="CUDA graphs")
def test_graphs_replayed_side_by_side_and_launches_in_many_streams_agree():
    a, b, c = operands(64, 512, 4096, torch.float16)
    expected = split_k_matmul(a, b, c, SplitConfig(64, 64, 64, 8))
    streams = [torch.cuda.Stream() for _ in range(4)]
    graphs, results = [torch.cuda.CUDAGraph() for _ in streams], []
    for graph in graphs:
        with torch.cuda.graph(graph):
            results.append(split_k_matmul(a, b, c, SplitConfig(64, 64, 64, 8)))
    torch.cuda.synchronize()
    for _ in range(50):
        for stream, graph in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
                results.append(split_k_matmul(a, b, c, SplitConfig(64, 64, 64, 8)))
    torch.cuda.synchronize()
    assert all(torch.equal(result, expected) for result in results)
