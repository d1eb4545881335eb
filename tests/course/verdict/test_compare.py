"""The bound lets correct arithmetic pass and nothing worse; the message says where, how much and why."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.verdict.compare import close, matmul_bound
from labs_helpers.course.verdict.wrong import Wrong


def product(K, dtype, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    a = (scale * torch.randn(8, K, generator=generator)).to(dtype)
    b = torch.randn(K, 8, generator=generator).to(dtype)
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    return a, b, exact, matmul_bound(exact, magnitude, K, dtype)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(K=st.integers(1, 2000), seed=st.integers(0, 99), half=st.booleans(), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_float32_accumulation_with_one_rounding_passes(K, seed, half, scale):
    dtype = torch.float16 if half else torch.float32
    a, b, exact, bound = product(K, dtype, seed, scale if not half else 1.0)
    close((a.float() @ b.float()).to(dtype), exact, bound, "", "")


@pytest.mark.parametrize("K", [64, 512, 4096])
def test_float16_accumulation_does_not(K):
    a, b, exact, bound = product(K, torch.float16, 0)
    total = torch.zeros(8, 8, dtype=torch.float16)
    for k in range(K):
        total += a[:, k, None] * b[None, k]
    with pytest.raises(Wrong, match="elements are off"):
        close(total, exact, bound, "", "")


def test_tf32_does_not():
    a, b, exact, bound = product(256, torch.float32, 0)
    rounded = (a.view(torch.int32) & ~0x1FFF).view(torch.float32) @ (b.view(torch.int32) & ~0x1FFF).view(torch.float32)
    with pytest.raises(Wrong):
        close(rounded, exact, bound, "", "")


def test_the_message_names_the_worst_element_the_bound_and_the_cause():
    expected = torch.arange(12, dtype=torch.float64).view(3, 4)
    got = expected.clone()
    got[1, 2] += 5
    with pytest.raises(Wrong) as caught:
        close(got, expected, 1e-6, "3×4", "one rounding", {"unlikely": expected * 7, "five too many at (1, 2)": got})
    text = str(caught.value)
    assert "3×4" in text and "worst is at [1, 2]" in text and "got 11, expected 6" in text
    assert "error 5, allowed 1e-06 (one rounding)" in text and text.endswith("Likely cause: five too many at (1, 2)")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "not a tensor"),
        ([1.0], "not a tensor"),
        (torch.zeros(2), r"shape \(2,\), expected \(3,\)"),
        (torch.tensor([0.0, torch.nan, 0.0]), "not finite"),
        (torch.tensor([0.0, torch.inf, 0.0]), "not finite"),
    ],
)
def test_results_that_are_no_result(value, message):
    with pytest.raises(Wrong, match=message):
        close(value, torch.zeros(3, dtype=torch.float64), 1.0, "", "")
