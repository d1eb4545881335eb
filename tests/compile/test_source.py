"""A function's source travels with all it needs, and runs elsewhere."""

import math

import pytest
import torch
import triton
import triton.language as tl

from labs_helpers.compile.source import portable_source, reachable, source_of
from labs_helpers.gemm.kernels.portable import fused_matmul_kernel

SCALE = 3
OFFSET = tl.constexpr(2)


@triton.jit
def scaled(x, factor: tl.constexpr):
    return x * factor + OFFSET


@triton.jit
def scale_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, scaled(tl.load(x_ptr + i), 3))


def rounded(n):
    return triton.next_power_of_2(n) * SCALE // SCALE


def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(1,)](x, y, BLOCK=rounded(x.numel()))
    return y


def elsewhere(source, name, tmp_path):
    """`name` of `source`, imported as another process would."""
    import importlib.util

    path = tmp_path / "elsewhere.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("elsewhere", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_helpers_constants_and_imports_travel(tmp_path):
    x = torch.randn(16)
    assert torch.equal(elsewhere(portable_source(scale), "scale", tmp_path)(x), 3 * x + 2)


def test_a_function_of_a_function_travels_with_what_it_closes_over(tmp_path):
    factor = 5

    def times(x):
        return math.floor(x * factor)

    assert elsewhere(portable_source(times), "times", tmp_path)(1.5) == 7


def test_what_only_a_comprehension_or_an_inner_function_uses_travels(tmp_path):
    def many(sizes):
        def one(n):
            return math.sqrt(rounded(n))

        return [one(n) + rounded(n) for n in sizes], (lambda n: rounded(n) * SCALE)(5)

    assert elsewhere(portable_source(many), "many", tmp_path)([16, 3]) == ([20, 6], 24)
    assert "rounded" in reachable(many)


def test_a_kernel_alone_needs_neither_torch_nor_the_course():
    source = portable_source(fused_matmul_kernel, kernels_only=True)
    assert "import torch" not in source and "labs_helpers" not in source and "def grouped_tile" in source


def test_reachable_finds_the_file_s_own_functions_callees_first():
    names = list(reachable(scale))
    assert names[-1] == "scale" and set(names) == {"scale", "rounded", "scale_kernel", "scaled"}
    assert names.index("scaled") < names.index("scale_kernel")


def test_a_function_without_source_is_named():
    namespace = {}
    exec("def typed_in(x):\n    return x", namespace)
    with pytest.raises(OSError, match="typed_in"):
        source_of(namespace["typed_in"])
