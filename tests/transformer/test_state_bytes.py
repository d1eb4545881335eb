"""Compare the bytes of parameters, gradients and AdamW's states by formula with those of a real step."""

import pytest
import torch

from labs_helpers.transformer import SIZES, Transformer, counts
from labs_helpers.transformer.train import adamw, next_token_loss

TINY = SIZES["tiny"]


def _bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("layout, dtype", [("autocast over float32", torch.float32), ("bf16", torch.bfloat16)])
def test_states_in_memory(layout, dtype):
    model = Transformer(TINY).to(dtype)
    optimizer = adamw(model, 1e-3)
    tokens = torch.arange(8)[None]
    next_token_loss(model(tokens), tokens).backward()
    optimizer.step()
    moments = [t for state in optimizer.state.values() for name, t in state.items() if name != "step"]
    assert counts.state_bytes(TINY, layout) == {
        "parameters": _bytes(model.parameters()),
        "gradients": _bytes(p.grad for p in model.parameters()),
        "optimizer": _bytes(moments),
    }


def test_states_with_master_weights():
    model = Transformer(TINY).bfloat16()
    master = [p.detach().float() for p in model.parameters()]
    optimizer = torch.optim.AdamW(master)
    for weight in master:
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    moments = [t for state in optimizer.state.values() for name, t in state.items() if name != "step"]
    states = counts.state_bytes(TINY, "bf16 with float32 master")
    assert states["optimizer"] == _bytes(master) + _bytes(moments)
    assert states["parameters"] == states["gradients"] == _bytes(model.parameters())


@pytest.mark.parametrize("layout, each", [("bf16 with float32 master", 16), ("autocast over float32", 16), ("bf16", 8)])
def test_bytes_a_parameter(layout, each):
    assert sum(counts.state_bytes(SIZES["1b"], layout).values()) == each * 953_223_168


def test_another_layout_is_refused():
    with pytest.raises(ValueError, match="layout is 'fp8'; it may be 'bf16 with float32 master'"):
        counts.state_bytes(TINY, "fp8")
