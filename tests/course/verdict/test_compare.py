"""The bound lets correct arithmetic pass and nothing worse; the message says where, how much and why."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.verdict import Wrong, expect_close, expect_number, expect_tuple, matmul_bound


def product(K, dtype, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    a = (scale * torch.randn(8, K, generator=generator)).to(dtype)
    b = torch.randn(K, 8, generator=generator).to(dtype)
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    return a, b, exact, matmul_bound(exact, magnitude, K, dtype)


@settings(max_examples=40)
@given(K=st.integers(1, 2000), seed=st.integers(0, 99), half=st.booleans(), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_float32_accumulation_with_one_rounding_passes(K, seed, half, scale):
    dtype = torch.float16 if half else torch.float32
    a, b, exact, bound = product(K, dtype, seed, scale if not half else 1.0)
    expect_close("", (a.float() @ b.float()).to(dtype), exact, bound, "")


@pytest.mark.parametrize("K", [64, 512, 4096])
def test_float16_accumulation_does_not(K):
    a, b, exact, bound = product(K, torch.float16, 0)
    total = torch.zeros(8, 8, dtype=torch.float16)
    for k in range(K):
        total += a[:, k, None] * b[None, k]
    with pytest.raises(Wrong, match="elements are off"):
        expect_close("", total, exact, bound, "")


def test_tf32_does_not():
    a, b, exact, bound = product(256, torch.float32, 0)
    rounded = (a.view(torch.int32) & ~0x1FFF).view(torch.float32) @ (b.view(torch.int32) & ~0x1FFF).view(torch.float32)
    with pytest.raises(Wrong):
        expect_close("", rounded, exact, bound, "")


EXPECTED = torch.arange(12, dtype=torch.float64).view(3, 4)


def told(*causes) -> str:
    """The message for 5 too many at [1, 2], with these candidate causes."""
    got = EXPECTED.clone()
    got[1, 2] += 5
    with pytest.raises(Wrong) as caught:
        expect_close("3×4", got, EXPECTED, 1e-6, "one rounding", causes)
    return str(caught.value)


FITS = "five too many at (1, 2)", EXPECTED + 5 * (EXPECTED == 6)
TOO = "the same, said otherwise", EXPECTED + 5 * (EXPECTED == 6)
AGAIN = "and once more", EXPECTED + 5 * (EXPECTED == 6)
UNLIKE = "unlikely", EXPECTED * 7


def test_the_message_names_the_worst_element_the_bound_and_the_cause():
    text = told(UNLIKE, FITS)
    assert text.startswith(
        "3×4: 1 of 12 elements are off in rows 1 to 1 and columns 2 to 2 of 3×4; the worst is at [1, 2]"
    )
    assert "\n  got 11, expected 6\n  error 5, allowed 1e-06 (one rounding)\n" in text
    assert text.endswith("Likely cause: five too many at (1, 2)")


def test_of_many_matrices_it_says_where_in_each():
    batched = EXPECTED.expand(2, 5, 3, 4).clone()
    batched[1, 2, 1:, 3] = batched[1, 4, 1:, 3] = -1
    with pytest.raises(
        Wrong,
        match=r"4 of 120 elements are off in rows 1 to 2 and columns 3 to 3 of 3×4; the worst is at \[1, 2, 2, 3\]",
    ):
        expect_close("", batched, EXPECTED.expand(2, 5, 3, 4), 0.0, "")


def test_where_two_causes_fit_both_are_named_and_where_three_do_none_is():
    assert told(FITS, UNLIKE, TOO).endswith("Likely cause: five too many at (1, 2); or: the same, said otherwise")
    for causes in ((FITS, TOO, AGAIN), (UNLIKE,), ()):
        assert told(*causes).endswith(
            "One thing to try: compute element [1, 2] by hand and follow the code step by step."
        )


def test_a_cause_that_changes_nothing_here_is_not_named():
    assert "Likely cause" not in told(("nothing is lost", EXPECTED))


def test_where_minus_infinity_is_expected_it_is_right_and_nothing_else_is():
    expected = torch.tensor([-torch.inf, 0.0, 1.0], dtype=torch.float64)
    expect_close("", expected.float(), expected, 0.0, "a maximum is exact")
    for found in ([-torch.inf, 0.0, 3.0], [5.0, 0.0, 1.0], [torch.inf, 0.0, 1.0]):
        causes = ("never", torch.zeros(3)), ("fits", torch.tensor(found))
        with pytest.raises(Wrong, match="1 of 3 elements are off(.|\n)*Likely cause: fits$"):
            expect_close("", torch.tensor(found), expected, 0.0, "a maximum is exact", causes)


def test_causes_are_not_worked_out_for_a_right_answer():
    def candidates():
        raise AssertionError("asked for")
        yield

    expect_close("", EXPECTED, EXPECTED, 0.0, "", candidates())
    expect_number("", "n", 3, 3, candidates())


def test_numbers_say_what_is_expected_and_why():
    with pytest.raises(Wrong, match="bytes is 96, expected 1,024\nLikely cause: elements, not bytes"):
        expect_number("", "bytes", 96, 1024, [("elements, not bytes", 96), ("twice", 2048)])
    with pytest.raises(Wrong, match="α is 2, expected 1e-06\nLikely cause: in µs"):
        expect_number("", "α", 2.0, 1e-6, [("in µs", (1.0, 2.0))], within=1e-6)
    with pytest.raises(Wrong, match="bytes is None, expected 7"):
        expect_number("", "bytes", None, 7)
    with pytest.raises(Wrong, match="a share is 'half', expected 0.5"):
        expect_number("", "a share", "half", 0.5, within=1e-9)


def test_a_tuple_of_another_length_is_asked_for_by_its_parts():
    assert expect_tuple("", (1, "runs"), "shared", "verdict") == (1, "runs")
    assert expect_tuple("", [1, "runs"], "shared", "verdict") == (1, "runs")
    for answer in ({1, "runs"}, (1,), None):
        with pytest.raises(Wrong, match=r", expected \(shared, verdict\)"):
            expect_tuple("", answer, "shared", "verdict")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "not a tensor"),
        ([1.0], "not a tensor"),
        (torch.zeros(2), r"shape \(2,\), expected \(3,\)"),
        (torch.tensor([0.0, torch.nan, 0.0]), "first step that gives NaN"),
        (torch.tensor([0.0, torch.inf, 0.0]), "first step that gives inf"),
    ],
)
def test_results_that_are_no_result(value, message):
    with pytest.raises(Wrong, match=message):
        expect_close("", value, torch.zeros(3, dtype=torch.float64), 1.0, "")
