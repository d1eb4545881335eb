"""The kernels that read quantized weights use every target's tensor cores and fit into its shared memory."""

import re
from itertools import product

import pytest
import torch

from labs_helpers.compile.ahead_of_time import TARGETS, compile_all, job, triton_for
from labs_helpers.compile.launches import record_launches
from labs_helpers.measure.datasheet import KIB
from labs_helpers.quantization import compile_report
from labs_helpers.quantization.kernels.few_rows import few_rows, few_rows_config
from tests.gemm.test_compile_report import INSTRUCTION, needs_triton_3_2

PRODUCTS = ("few_rows_kernel", "many_rows_kernel")


@pytest.fixture(scope="module")
def table():
    return compile_report.compile_everywhere([target for target in TARGETS if target != "sm_75" or triton_for(target)])


@pytest.mark.parametrize("target", [pytest.param("sm_75", marks=needs_triton_3_2), *list(TARGETS)[1:]])
def test_tensor_cores_within_the_chip(table, target):
    rows = table[table.target == target].to_dict("records")
    assert {row["kernel"] for row in rows} == {*PRODUCTS, "dequantize_kernel", "round_rows_kernel"}
    for row in rows:
        assert row["shared"] <= row["shared_limit"] and row["registers"] > 4, row
        # Two sums of 64 × 64 take half of the registers.
        assert row["spills"] <= (200 if "SwiGLU" in row["format"] and "64×64×" in row["tile"] else 0), row
        if row["kernel"] in PRODUCTS:
            # Triton takes the older instruction for int8 on sm_100, and where each warp has a matrix of its own.
            older = target == "sm_100" and row["format"] == "int8 × int8" or row["tile"].startswith(("8×", "16×16×"))
            expected = r"mma\.sync" if older and target.startswith("sm_") else INSTRUCTION[target]
            assert re.fullmatch(expected, row["instruction"]) and row["count"], row
    with_float8 = {"fp8", "fp8 × fp8"} if target in compile_report.WITH_FLOAT8 else set()
    formats = {row["format"] for row in rows if "SwiGLU" not in row["format"]}
    assert formats == {"16 bits", "int8", "int8 × int8", "int4", *with_float8}


def test_float32_weights_fit_into_a_consumer_chip():
    """Chips of 8.6 and 8.9 have sm_80's configurations, and 99 KB of shared memory per program."""
    x, w = torch.zeros(64, 1024), torch.zeros(512, 1024)
    with record_launches(run=False) as launches:
        for M, N, up in product((1, 8, 64), (512, 4096, 32_000), (None, w)):
            few_rows(x[:M], w, norm=w[0], up=up, config=few_rows_config(M, N, 4, up is not None, "sm_80", 132))
    jobs = {str(built := job(launch, "sm_80", until="ptx")): built for launch in launches}
    found = compile_all(list(jobs.values()), timeout=300)
    assert len(found) > 6 and max(each.shared for each in found) <= 99 * KIB


def test_an_unknown_target_is_refused_with_the_list():
    with pytest.raises(ValueError, match="sm_42.*gfx942"):
        compile_report.compile_everywhere(["sm_42"])
