"""Test that flash_attention gives the same results under torch.compile, export, checkpoints, autocast and FSDP."""

import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.attention import flash_attention, operator
from labs_helpers.attention import plan as plans
from labs_helpers.attention.kernels import portable
from labs_helpers.compile.launches import record_launches
from labs_helpers.labs import ROOT
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import this_machine

HERE = this_machine()
FORWARD = torch.ops.tile_to_cluster.attention_forward.default
BACKWARD = torch.ops.tile_to_cluster.attention_backward.default
SHAPES = [(1, 1, 1, 5, 5, 16), (2, 4, 2, 33, 20, 24), (1, 3, 1, 1, 70, 32)]  # B, H, Hkv, Lq, Lk, D
compiled = partial(torch.compile, fullgraph=True, backend="aot_eager")


@pytest.fixture(autouse=True)
def forget_what_was_compiled():
    torch.compiler.reset()


def operands(B, H, Hkv, Lq, Lk, D, dtype=torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((B, H, Lq, D), (B, Hkv, Lk, D), (B, Hkv, Lk, D))
    return [torch.randn(s, generator=generator).to(dtype).to(HERE.device).requires_grad_() for s in shapes]


def results(function, *inputs: Tensor) -> list[Tensor]:
    """Return the function's result and the gradients of its sum of squares."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    result = function(*leaves)
    return [result, *torch.autograd.grad(result.float().square().sum(), leaves)]


def assert_equal(these: list[Tensor], those: list[Tensor], tolerance=0.0):
    for x, y in zip(these, those, strict=True):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


class Block(nn.Module):
    """Attention as in a Transformer, with grouped heads and transposed operands."""

    def __init__(self, attention=flash_attention):
        super().__init__()
        self.q, self.kv, self.out = (nn.Linear(32, width, bias=False, device=HERE.device) for width in (32, 32, 32))
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (2, 16)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, 1, 16)).movedim(2, 0).transpose(2, 3)
        return x + self.out(self.attention(q, k, v, causal=True).transpose(1, 2).flatten(2))


def block_and_input() -> tuple[Block, Tensor]:
    torch.manual_seed(0)
    return Block(), torch.randn(2, 19, 32).to(HERE.device)


def block_results(block: Block, call, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    y = call(x)
    return [y, *torch.autograd.grad(y.square().sum(), [x, *block.parameters()])]


@pytest.mark.parametrize(
    ("shape", "dtype", "causal", "scale"),
    [
        (SHAPES[0], torch.float32, False, None),
        ((1, 2, 1, 33, 20, 24), torch.float32, True, 0.3),
        ((1, 2, 1, 33, 20, 24), torch.float16, False, None),
        (SHAPES[2], torch.float16, True, -0.3),
    ],
    ids=str,
)
def test_opcheck(shape, dtype, causal, scale):
    inputs = operands(*shape, dtype)
    o, lse = operator.attention_forward(*(x.detach() for x in inputs), causal, scale)
    torch.library.opcheck(operator.attention_forward, (*inputs, causal, scale))
    plain = [x.detach() for x in inputs]
    for needs in ([True] * 3, [False, True, False]):
        torch.library.opcheck(operator.attention_backward, (*plain, o, lse, torch.ones_like(o), causal, scale, needs))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_compiled_equals_direct(shape, dtype):
    function = partial(flash_attention, causal=True, scale=0.3)
    inputs = operands(*shape, dtype)
    assert_equal(results(compiled(function), *inputs), results(function, *inputs))


def test_a_block_in_one_graph_of_any_length_equals_the_direct_one():
    block, x = block_and_input()
    call = compiled(block, dynamic=True)
    for length in (19, 7):
        assert_equal(block_results(block, call, x[:, :length]), block_results(block, block, x[:, :length]))


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs g++")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot build in a path with a space")
@pytest.mark.filterwarnings("ignore:TensorFloat32:UserWarning")  # on a GPU inductor recommends TF32
def test_a_block_through_inductor():
    block, x = block_and_input()
    call = torch.compile(block, fullgraph=True)
    assert_equal(block_results(block, call, x), block_results(block, block, x), tolerance=1e-4)


def test_only_the_gradients_that_are_asked_for_are_computed():
    q, k, v = operands(*SHAPES[1])
    o = compiled(flash_attention)(q.detach(), k.detach(), v)
    with record_launches() as launches:
        o.sum().backward()
    assert {launch.name for launch in launches} == {"delta_kernel", "key_value_gradients_kernel"}
    assert v.grad is not None and k.grad is None


def test_the_backward_pass_alone_is_an_operator_where_it_is_looked_at():
    o = flash_attention(*operands(*SHAPES[0]))
    with FlopCounterMode(display=False) as counter:
        o.sum().backward()
    assert list(counter.get_flop_counts()["Global"]) == [BACKWARD.overloadpacket]


def test_a_second_derivative_and_a_gradient_of_lse_are_refused():
    inputs = operands(*SHAPES[0])
    o, lse = operator.attention_forward(*inputs)
    assert o.requires_grad and not lse.requires_grad
    (gradient,) = torch.autograd.grad(o.sum(), inputs[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward"):
        gradient.sum().backward()


@pytest.mark.parametrize("wrap", [lambda f: f, compiled], ids=["direct", "compiled"])
def test_a_checkpoint_gives_the_same_gradients(wrap):
    block, x = block_and_input()
    call = wrap(lambda x: checkpoint(block, x, use_reentrant=False))
    assert_equal(block_results(block, call, x), block_results(block, block, x))


def test_a_selective_checkpoint_can_keep_attention_and_compute_the_rest_again():
    block, x = block_and_input()

    def policy(context, function, *arguments, **keywords):
        return CheckpointPolicy.MUST_SAVE if function is FORWARD else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    with record_launches() as launches:
        found = block_results(block, lambda x: checkpoint(block, x, use_reentrant=False, context_fn=contexts), x)
    assert [launch.name for launch in launches].count("attention_forward_kernel") == 1
    assert_equal(found, block_results(block, block, x))


@pytest.mark.parametrize("wrap", [lambda f: f, compiled], ids=["direct", "compiled"])
@pytest.mark.parametrize(
    "function", [flash_attention, lambda q, k, v: FORWARD(q, k, v)[0]], ids=["function", "operator"]
)
def test_autocast_casts_as_for_scaled_dot_product_attention(wrap, function):
    q, k, v = operands(*SHAPES[1])
    inputs = [q, k.detach().half(), v]  # autocast casts both dtypes to one
    with torch.autocast(HERE.device, dtype=torch.float16):
        found = results(wrap(function), *inputs)
        expected = results(partial(scaled_dot_product_attention, enable_gqa=True), *inputs)
    assert found[0].dtype == expected[0].dtype == torch.float16
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    assert_equal(found, expected, tolerance=2e-2)
    halves = results(flash_attention, *(x.detach().half() for x in inputs))
    assert_equal([x.half() for x in found], halves)


def test_autocast_to_bfloat16_does_what_a_bfloat16_operand_does():
    inputs = operands(*SHAPES[0])
    for call in (flash_attention, compiled(flash_attention)):
        with torch.autocast(HERE.device, dtype=torch.bfloat16):
            if HERE.supports_bfloat16:
                assert call(*inputs).dtype == torch.bfloat16
            else:
                with pytest.raises(Exception, match="q is bfloat16, and the interpreter"):
                    call(*inputs)


def test_export_has_the_operator_and_takes_any_length():
    block, x = block_and_input()
    length = torch.export.Dim("length", min=2, max=512)
    exported = torch.export.export(block, (x,), dynamic_shapes=({1: length},))
    assert FORWARD in [node.target for node in exported.graph.nodes]
    assert_equal([exported.module()(x[:, :7])], [block(x[:, :7])])


def test_a_dispatch_mode_sees_operators_and_flops_are_those_of_scaled_dot_product_attention():
    x = operands(2, 4, 4, 33, 20, 16)
    with FlopCounterMode(display=False) as counter:
        flash_attention(*x).sum().backward()
    forward = 4 * 2 * 4 * 33 * 20 * 16  # two products of (B, H, Lq, Lk, D), and five backward
    assert {str(name): flops for name, flops in counter.get_flop_counts()["Global"].items()} == {
        "tile_to_cluster.attention_forward": forward,
        "tile_to_cluster.attention_backward": forward * 5 // 2,
    }


def test_fake_tensors_have_shapes_and_run_nothing():
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    fakes = [mode.from_tensor(x) for x in operands(*SHAPES[1], torch.float16)]
    with record_launches() as launches:
        o = flash_attention(*fakes)  # outside of its mode
        o.sum().backward()
    assert not launches and o.shape == fakes[0].shape and fakes[1].grad.shape == fakes[1].shape


def test_a_direct_call_is_no_operator_and_torch_func_is_refused_in_words(monkeypatch):
    inputs = operands(*SHAPES[0])
    with monkeypatch.context() as without:
        without.setattr(operator, "attention_forward", None)
        without.setattr(operator, "attention_backward", None)
        results(flash_attention, *inputs)
    q, k, v = (x.detach() for x in inputs)

    def loss(q):
        return flash_attention(q, k, v).sum()

    for transformed in (torch.func.grad(loss), lambda q: torch.func.jvp(loss, (q,), (q,)), torch.vmap(loss)):
        with pytest.raises(RuntimeError, match="setup_context"):
            transformed(q)


def test_compiled_backward_asks_for_the_deterministic_kernels_when_it_runs(monkeypatch):
    launched = []

    def noted(name, direction):
        return lambda *arguments: launched.append((name, direction)) or getattr(portable, direction)(*arguments)

    def forward_launch(q, k, v, causal):
        return lambda q, k, v, scale: noted("hopper", "forward")(q, k, v, causal, scale)

    def backward_launch(q, k, v, o, do, causal):
        return lambda *given: noted("hopper", "backward")(*given[:-1], causal, given[-1])

    monkeypatch.setattr(plans, "_known", {})
    monkeypatch.setattr(plans.hopper, "why_not", lambda *operands: None)
    monkeypatch.setattr(plans.hopper, "forward_launch", forward_launch)
    monkeypatch.setattr(plans.hopper, "backward_launch", backward_launch)
    kernels = SimpleNamespace(forward=noted("portable", "forward"), backward=noted("portable", "backward"))
    monkeypatch.setitem(plans.KERNELS, "portable", kernels)
    call = compiled(flash_attention)
    for deterministic, kernel in ((False, "hopper"), (True, "portable")):
        launched.clear()
        torch.use_deterministic_algorithms(deterministic)
        try:
            results(call, *operands(*SHAPES[0]))
        finally:
            torch.use_deterministic_algorithms(False)
        assert launched == [("hopper", "forward"), (kernel, "backward")]


q, k, v = (torch.ones(2, heads, length, 16, device=HERE.device) for heads, length in ((4, 5), (2, 7), (2, 7)))
BAD = {
    "a list": ((q.tolist(), k, v), "q is a list, not a torch.Tensor"),
    "three dimensions": ((q, k[0], v), "k has 3 dimensions, not 4"),
    "empty": ((q, k[:, :, :0], v[:, :, :0]), "k is empty: (2, 2, 0, 16)"),
    "float64": ((q.double(), k.double(), v.double()), "q is torch.float64; float16"),
    "mixed": ((q, k.half(), v), "k is torch.float16, but q is torch.float32"),
    "no memory": ((q.to("meta"), k.to("meta"), v.to("meta")), "q is on meta"),
    "heads": ((q[:, :3], k, v), "q has 3 heads, which is no multiple of the 2 heads of k and v"),
    "head dim": ([x[..., :8] for x in (q, k, v)], "q has head dim 8; the kernels take 16 to 128"),
    "scale": ((q, k, v, False, float("nan")), "scale is nan; it has to be finite"),
    "scale as text": ((q, k, v, False, "small"), "scale is 'small', not a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_same_words_for_wrong_operands_compiled_or_not(case):
    arguments, words = BAD[case]
    for call in (flash_attention, compiled(flash_attention)):
        with pytest.raises(Exception, match=re.escape(words)):
            call(*arguments)


def test_fully_sharded_on_two_ranks():
    program = str(Path(__file__).with_name("fully_sharded.py"))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program]
    environment = os.environ | {"LABS_DEVICE": "cpu", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    assert run(command, timeout=60, cwd=ROOT, env=environment).count("equals one process") == 2
