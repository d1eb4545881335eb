"""Test that kernels compile for named GPUs in a separate process, and that the report matches the compiler."""

import pytest
import torch
import triton
import triton.language as tl

from labs_helpers.compile.ahead_of_time import TARGETS, CompileError, compile_all, compile_launch, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.gemm import fused_matmul
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.measure.machine import this_machine

TENSOR_CORE = {
    "sm_80": "mma.sync",
    "sm_90": "wgmma.mma_async",
    "sm_100": "tcgen05.mma",
    "gfx90a": "v_mfma",
    "gfx942": "v_mfma",
}


@triton.jit
def promoted_kernel(x_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float16)
    for _ in range(0, n):
        total += tl.load(x_ptr + tl.arange(0, BLOCK)).to(tl.float32)
    tl.store(x_ptr + tl.arange(0, BLOCK), total.to(tl.float16))


def launch_of(function, *arguments, **keywords):
    with record_launches() as launches:
        function(*arguments, **keywords)
    return launches[-1]


def halves(*shapes):
    return [torch.zeros(shape, dtype=torch.float16, device=this_machine().device) for shape in shapes]


@pytest.fixture(scope="module")
def fused():
    """The fused kernel for every target, compiled once."""
    launch = launch_of(fused_matmul, *halves((128, 64), (64, 128), (128, 128)))
    return {c.target: c for c in compile_all([job(launch, target) for target in TARGETS])}


@pytest.mark.parametrize("target", TENSOR_CORE)
def test_the_fused_kernel_uses_tensor_cores_without_spills(fused, target):
    compiled = fused[target]
    assert any(name.startswith(TENSOR_CORE[target]) for name in compiled.tensor_core)
    assert not compiled.float16_accumulators and not compiled.spills and compiled.registers > 0


def test_what_is_told_agrees_with_the_assembly(fused):
    compiled = fused["sm_90"]
    assert compiled.assembly.count("wgmma.mma_async") >= compiled.tensor_core["wgmma.mma_async"] > 0
    assert compiled.shared > 0 and compiled.binary > 0 and ".target sm_90" in compiled.assembly


def test_float32_uses_no_tensor_cores_unless_tf32_is_asked_for():
    x = [torch.zeros(64, 64, device=this_machine().device) for _ in range(3)]
    exact = compile_launch(launch_of(fused_matmul, *x))
    rounded = compile_launch(launch_of(fused_matmul, *x, tf32=True))
    assert not exact.uses_tensor_cores and "tf32" not in exact.assembly
    assert rounded.uses_tensor_cores and "tf32" in rounded.assembly


def test_what_only_the_interpreter_accepts_is_a_compile_error_that_names_the_variable():
    (x,) = halves((16,))
    launch = launch_of(lambda: promoted_kernel[(1,)](x, 3, BLOCK=16)) if this_machine().interpreted else None
    if launch is None:
        pytest.skip("the launch itself fails on a GPU")
    with pytest.raises(CompileError, match="total"):
        compile_launch(launch)


def test_an_unknown_target_is_refused_with_the_list():
    launch = launch_of(exercises.copy_tiles, *halves((32, 64)))
    with pytest.raises(ValueError, match="sm_75.*gfx942"):
        job(launch, "sm_42")


def test_a_launch_specialises_on_one_and_on_sixteen():
    launch = launch_of(exercises.copy_tiles, *halves((32, 64)))
    order = job(launch)
    assert order["signature"]["x_ptr"] == "*fp16" and order["constexprs"]["stride_xn"] == 1
    assert {"x_ptr", "y_ptr", "stride_xm"} <= set(order["aligned"]) and "stride_xn" not in order["aligned"]
    assert launch.grid == (1, 1) and launch.signature(torch.float32)["x_ptr"] == "*fp32"
