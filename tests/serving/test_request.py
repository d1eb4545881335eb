"""Test that sampling parameters name the field that does not fit."""

import pytest

from labs_helpers.serving.request import SamplingParameters


@pytest.mark.parametrize("name, values", [
    ("max_tokens", (0, -1, 1.5, True, "3", None)),
    ("temperature", (-0.1, float("nan"), float("inf"), "1", None, True)),
    ("top_k", (0, -1, 2.5, True, "1")),
    ("top_p", (0, 1.1, -1, float("nan"), None, "1")),
    ("seed", (2**63, -(2**63) - 1, 0.5, True, "1")),
    ("stop", ("abc", ["a"], ("",), (1,))),
])  # fmt: skip
def test_a_wrong_value_is_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} is "):
            SamplingParameters(**{name: value})


def test_what_fits():
    SamplingParameters(1, 0, 1, 1, -(2**63), ("a", "é"))
    SamplingParameters(max_tokens=10**6, temperature=1e-3, top_p=1e-9, seed=2**63 - 1)
