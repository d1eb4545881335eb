"""Test that plain attention with named ranges computes the same bits as plain attention."""

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.trace import record
from labs_helpers.transformer import attentions
from labs_helpers.transformer.lab01 import ranges


def operands(dtype, H=4, Hkv=4, L=33):
    generator = torch.Generator().manual_seed(0)
    draw = lambda heads: torch.randn(2, heads, L, 16, generator=generator).to(this_machine().device, dtype)  # noqa: E731
    return [draw(heads).requires_grad_() for heads in (H, Hkv, Hkv)]


@pytest.mark.parametrize("Hkv", [4, 2, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equal_to_plain_attention_to_the_bit(Hkv, dtype):
    mine, theirs = operands(dtype, Hkv=Hkv), operands(dtype, Hkv=Hkv)
    o, expected = ranges.plain(*mine), attentions.plain(*theirs)
    assert torch.equal(o, expected)
    o.square().sum().backward()
    expected.square().sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(mine, theirs, strict=True))


def test_every_operator_that_works_stands_in_one_of_four_ranges():
    q, k, v = (x.detach() for x in operands(torch.float32))
    events = record(lambda: ranges.plain(q, k, v)).events
    parts = [e for e in events if e["cat"] == "user_annotation"]
    assert [part["name"] for part in parts] == ["scores", "mask", "softmax", "values"]
    for part, following in zip(parts, parts[1:], strict=False):
        assert part["ts"] + part["dur"] <= following["ts"]
    calls = [e for e in events if e["cat"] == "cuda_runtime" and "Synchronize" not in e["name"]]
    assert calls
    for call in calls:
        assert sum(part["ts"] <= call["ts"] < part["ts"] + part["dur"] for part in parts) == 1


def test_a_range_ends_with_an_error():
    def failing():
        with ranges.named("outer"), ranges.named("failing"):
            raise ZeroDivisionError

    def caught():
        try:
            failing()
        except ZeroDivisionError:
            pass

    names = [e["name"] for e in record(caught).events if e["cat"] == "user_annotation"]
    assert names == ["outer", "failing"]
