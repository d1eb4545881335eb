"""Test that a function's source is found with everything it uses, and that a kernel's source works in another
Triton."""

import pytest
import torch
import triton
import triton.language as tl

from labs_helpers.compile.source import names_used, portable_kernel, reachable, source_of
from labs_helpers.gemm.kernels.portable import fused_matmul_kernel
from tests.compile.cells import Cells

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


def test_what_only_a_comprehension_or_an_inner_function_uses_is_found():
    def many(sizes):
        def one(n):
            return rounded(n)

        return [one(n) + rounded(n) for n in sizes], (lambda n: SCALE * n)(5)

    assert {"rounded", "SCALE"} <= names_used(many).keys() and "rounded" in reachable(many)


def test_names_of_defaults_decorators_and_annotations_are_found():
    cells = Cells()
    cells.run("EPS = 1e-6\nMORE = 2\nclass Result: pass\ndef same(value):\n    return lambda function: function")
    cells.run("@same(MORE)\ndef norm(x, eps=EPS, *, dim: Result = None) -> Result:\n    return x")
    assert names_used(cells["norm"]).keys() == {"EPS", "MORE", "same", "Result"}


def test_a_kernel_needs_neither_torch_nor_the_course():
    source = portable_kernel(fused_matmul_kernel)
    assert "import torch" not in source and "labs_helpers" not in source and "def grouped_tile" in source


KERNELS = """
import triton
import triton.language as tl
from triton.language import exp as e_to
BLOCK_SIZE = tl.constexpr(32)
SHAPE = (tl.constexpr(4), 8)
LOWEST = tl.constexpr(float("-inf"))
ACC = tl.constexpr(tl.float32)
WARPS = 4
"""
TUNED = """
@triton.jit
def _inner(x):
    return e_to(x).to(ACC)

helper = _inner

@triton.autotune(
    configs=[triton.Config({}, num_warps=WARPS)],
    key=["n"],
)
@triton.jit(do_not_specialize=["n"])
def tuned_kernel(x_ptr, n, BLOCK: tl.constexpr = BLOCK_SIZE, NEGATIVE: tl.constexpr = LOWEST):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.where(i < SHAPE[0], helper(tl.load(x_ptr + i)), NEGATIVE))
"""


def test_what_the_interpreter_has_put_under_a_name_of_the_language_is_named_for_it(monkeypatch):
    monkeypatch.setattr(tl, "exp", lambda x: x)  # as it does while a kernel runs, and leaves some of it
    cells = Cells()
    cells.run(KERNELS + "@triton.jit\ndef k(x): return e_to(x)")
    assert "from triton.language import exp as e_to" in portable_kernel(cells["k"])


def test_a_kernels_defaults_constants_and_helpers_under_another_name_travel():
    cells = Cells()
    cells.run(KERNELS)
    cells.run(TUNED)
    source = portable_kernel(cells["tuned_kernel"])
    elsewhere = Cells()
    elsewhere.run(source)
    made = elsewhere["tuned_kernel"]
    assert made.fn.__name__ == "tuned_kernel" and 'triton.jit(do_not_specialize=["n"])' in source
    assert "@triton.autotune" not in source
    names = names_used(made)
    assert names["helper"] is elsewhere["_inner"] and names["LOWEST"].value == float("-inf")
    assert [getattr(part, "value", part) for part in names["SHAPE"]] == [4, 8] and names["BLOCK_SIZE"].value == 32


def test_reachable_finds_the_file_s_own_functions_callees_first():
    names = list(reachable(scale))
    assert names[-1] == "scale" and set(names) == {"scale", "rounded", "scale_kernel", "scaled"}
    assert names.index("scaled") < names.index("scale_kernel")


def test_a_function_without_source_is_named():
    namespace = {}
    exec("def typed_in(x):\n    return x", namespace)
    with pytest.raises(OSError, match="typed_in"):
        source_of(namespace["typed_in"])
