"""Test fused_matmul as a PyTorch operator, and its gradient, directly and under torch.compile."""

import re
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.gemm import Config, fused_matmul, operator
from labs_helpers.measure.machine import this_machine

DEVICE = this_machine().device
compiled = partial(torch.compile, fullgraph=True, backend="aot_eager")
checkpointed = partial(checkpoint, fused_matmul, use_reentrant=False)
SHAPES = [(33, 17, 20), (1, 5, 40), (64, 64, 64)]  # M, N, K


@pytest.fixture(autouse=True)
def forget_what_was_compiled():
    torch.compiler.reset()


def operands(M, N, K, dtype=torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((M, K), (K, N), (M, N))
    return [torch.randn(s, generator=generator).to(dtype).to(DEVICE).requires_grad_() for s in shapes]


def results(function, *inputs: Tensor) -> list[Tensor]:
    """Return the function's result and the gradients of its sum of squares."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    result = function(*leaves)
    return [result, *torch.autograd.grad(result.square().sum(), leaves)]


def three_steps(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.relu(a @ b + c)


def assert_agree(found: list[Tensor], wanted: list[Tensor], tolerance: float):
    """Assert that tensors agree within `tolerance` of the largest element of each."""
    for x, y in zip(found, wanted, strict=True):
        bound = tolerance * y.abs().max().item()
        torch.testing.assert_close(x.double(), y.double(), rtol=0.0, atol=bound)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float16, 5e-3)])
@pytest.mark.parametrize(
    "function",
    [fused_matmul, operator.fused_matmul, compiled(fused_matmul), checkpointed, compiled(checkpointed)],
    ids=["direct", "operator", "compiled", "checkpoint", "compiled checkpoint"],
)
def test_gradients_are_those_of_autograd_in_float64(function, shape, dtype, tolerance):
    inputs = operands(*shape, dtype)
    assert_agree(results(function, *inputs), results(three_steps, *(x.double() for x in inputs)), tolerance)


@pytest.mark.parametrize("wrap", [lambda f: f, compiled], ids=["direct", "compiled"])
def test_gradients_of_a_transposed_and_an_expanded_operand(wrap):
    def views(a, b, c):
        return a.mT, b, c.expand(33, 17)

    inputs = [x.to(DEVICE) for x in (torch.randn(20, 33), torch.randn(20, 17), torch.randn(1, 17))]
    wanted = results(lambda *x: three_steps(*views(*x)), *(x.double() for x in inputs))
    assert_agree(results(wrap(lambda *x: fused_matmul(*views(*x))), *inputs), wanted, 1e-5)


def test_gradients_with_a_configuration_and_of_single_operands():
    inputs = operands(*SHAPES[0])
    wanted = results(three_steps, *inputs)
    assert_agree(results(partial(fused_matmul, config=Config(16, 32, 16)), *inputs), wanted, 1e-5)
    for i in range(3):
        alone = [x.detach().requires_grad_(i == j) for j, x in enumerate(inputs)]
        for function in (fused_matmul, compiled(fused_matmul)):
            (found,) = torch.autograd.grad(function(*alone).square().sum(), alone[i : i + 1])
            assert_agree([found], wanted[1 + i : 2 + i], 1e-5)


def test_a_second_derivative():
    def gradient(function, *inputs):
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        first = torch.autograd.grad(function(*leaves).square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), leaves)

    inputs = operands(*SHAPES[0])
    assert_agree(gradient(fused_matmul, *inputs), gradient(three_steps, *(x.double() for x in inputs)), 1e-5)


def test_without_a_wish_for_gradients_nothing_is_kept():
    a, b, c = operands(*SHAPES[0])
    with torch.no_grad():
        assert not fused_matmul(a, b, c).requires_grad
    assert not fused_matmul(a.detach(), b.detach(), c.detach()).requires_grad


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_opcheck(shape, dtype):
    torch.library.opcheck(operator.fused_matmul, operands(*shape, dtype))


@pytest.mark.parametrize("function", [fused_matmul, operator.fused_matmul, compiled(fused_matmul)])
def test_autocast_casts_as_for_addmm(function):
    a, b, c = operands(*SHAPES[0])
    inputs = [a, b.detach().half(), c]
    with torch.autocast(DEVICE, dtype=torch.float16):
        found = results(function, *inputs)
        expected = results(lambda a, b, c: torch.relu(torch.addmm(c, a, b)), *inputs)
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    assert_agree(found, expected, 5e-3)


def test_flops_are_counted_and_export_has_the_operator():
    inputs = operands(*SHAPES[0])
    with FlopCounterMode(display=False) as counter:
        fused_matmul(*inputs).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 33 * 17 * 20

    class Layer(torch.nn.Module):
        def forward(self, a, b, c):
            return fused_matmul(a, b, c)

    exported = torch.export.export(Layer(), tuple(inputs))
    assert torch.ops.tile_to_cluster.fused_matmul.default in [node.target for node in exported.graph.nodes]


a, b, c = (torch.ones(s, device=DEVICE) for s in ((4, 3), (3, 5), (4, 5)))
BAD = {
    "one dimension": ((a, b[0], c), "b has 1 dimensions"),
    "empty": ((a[:0], b, c[:0]), "a is empty: (0, 3)"),
    "K differs": ((a, b[:2], c), "b has 2 rows, but a has 3 columns"),
    "C too small": ((a, b, c[:1]), "c is (1, 5), but A·B is (4, 5)"),
    "float64": ((a.double(), b.double(), c.double()), "a is torch.float64"),
    "mixed": ((a, b.half(), c), "b is torch.float16, but a is torch.float32"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_same_words_for_wrong_operands_compiled_or_not(case):
    arguments, words = BAD[case]
    for call in (fused_matmul, compiled(fused_matmul, dynamic=False)):
        with pytest.raises(Exception, match=re.escape(words)):
            call(*arguments)


def test_a_configuration_under_torch_compile_is_refused():
    with pytest.raises(Exception, match="config is for direct calls"):
        compiled(partial(fused_matmul, config=Config(16, 16, 16)))(a, b, c)
