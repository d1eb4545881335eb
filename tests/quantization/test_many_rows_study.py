"""The study's products are those of the dequantized weight, and it races what it says."""

from copy import deepcopy

import pytest
import torch

from labs_helpers.quantization.few_rows_study import WRONG
from labs_helpers.quantization.many_rows_study import WRONG_FLOAT8, ways, weights
from tests.quantization.test_few_rows import DEVICE

OURS = {"fused", "buffer", "rounded", "product", "portable", "portable, exact sums"}
NAMES = {
    "bf16": {"F.linear"},
    "int8": {"fused", "buffer", "rounded", "product", "portable", "_int_mm"},
    "int4": {"fused", "buffer"},
    "fp8": OURS | {"_scaled_mm, fast sums", "_scaled_mm, exact sums"},
}


@pytest.mark.parametrize("format", NAMES)
def test_products_of_a_copy_are_right(format):
    torch.manual_seed(0)
    x, w = (torch.randn(rows, 256, device=DEVICE).half() / 16 for rows in (40, 48))
    stored = weights(w)[format]
    found = list(ways(x, format, deepcopy(stored), False))
    assert {name for _, name, *_ in found} == NAMES[format]
    for of, name, run, exact, configs in found:
        if name in OURS:
            wrong = WRONG_FLOAT8 if of == "fp8 × fp8" else WRONG
            assert (run(x, stored).double() - exact).norm() < wrong * exact.norm() and not configs
