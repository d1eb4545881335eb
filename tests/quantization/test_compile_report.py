"""The kernels that read quantized weights use every target's tensor cores and fit into its shared memory."""

import re

import pytest

from labs_helpers.compile.ahead_of_time import TARGETS, triton_for
from labs_helpers.quantization import compile_report
from tests.attention.test_compile_report import MOST_SPILLS
from tests.gemm.test_compile_report import INSTRUCTION, needs_triton_3_2

# An A100 spills 528 bytes in few_rows with 64 rows of int4.
SPILLED = {"few_rows_kernel": 600, "many_rows_kernel": MOST_SPILLS}


def instruction(row):
    """Return a pattern of the instruction that the row's product should use."""
    # Triton multiplies int8 on sm_100, and the slices of few_rows, with the older instruction.
    sliced = row["kernel"] == "few_rows_kernel" and row["tile"].startswith("16×")
    older = row["target"] == "sm_100" and row["format"] == "int8 × int8" or sliced and row["target"].startswith("sm_")
    return r"mma\.sync" if older else INSTRUCTION[row["target"]]


@pytest.fixture(scope="module")
def table():
    return compile_report.compile_everywhere([target for target in TARGETS if target != "sm_75" or triton_for(target)])


@pytest.mark.parametrize("target", [pytest.param("sm_75", marks=needs_triton_3_2), *list(TARGETS)[1:]])
def test_tensor_cores_within_the_chip(table, target):
    rows = table[table.target == target].to_dict("records")
    few = {"few_rows_kernel"} if compile_report.FEW_ROWS[target] else set()
    assert {row["kernel"] for row in rows} == {"many_rows_kernel", "dequantize_kernel", "round_rows_kernel", *few}
    for row in rows:
        assert row["shared"] <= row["shared_limit"] and row["registers"] > 4, row
        assert row["spills"] <= SPILLED.get(row["kernel"], 0), row
        if row["kernel"] in SPILLED:
            assert re.fullmatch(instruction(row), row["instruction"]) and row["count"] > 0, row
    with_float8 = {"fp8", "fp8 × fp8"} if target in compile_report.WITH_FLOAT8 else set()
    assert {row["format"] for row in rows} == {"int8", "int8 × int8", "int4", *with_float8}


def test_an_unknown_target_is_refused_with_the_list():
    with pytest.raises(ValueError, match="sm_42.*gfx942"):
        compile_report.compile_everywhere(["sm_42"])
