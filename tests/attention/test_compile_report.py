"""Test that the portable kernels use every target's tensor cores and fit into its shared memory."""

import re

import pytest
import torch

from labs_helpers.attention import compile_report
from labs_helpers.attention.configs import DIRECTIONS, default_config
from labs_helpers.compile.ahead_of_time import TARGETS, triton_for
from labs_helpers.compile.report import COLUMNS

INSTRUCTION = {
    "sm_75": r"mma\.sync",
    "sm_80": r"mma\.sync",
    "sm_90": r"wgmma\.mma_async",
    "sm_100": r"tcgen05\.mma",
    "gfx942": r"v_mfma_\w+",
}
# A few registers' worth of bytes is accepted (Triton 3.9: 184 on sm_90); a spilled tile would be thousands.
MOST_SPILLS = 256
needs_triton_3_2 = pytest.mark.skipif(
    triton_for("sm_75") is None,
    reason="Triton 3.2.0 is not installed beside the environment: `make t4` installs it, up to Python 3.13 on x86-64",
)


@pytest.fixture(scope="module")
def table():
    targets = [target for target in INSTRUCTION if target != "sm_75" or triton_for(target)]
    rows = compile_report.compile_everywhere(targets).to_dict("records")
    return {(row["kernel"], row["target"], row["head_dim"]): row for row in rows}


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("target", [pytest.param("sm_75", marks=needs_triton_3_2), *list(INSTRUCTION)[1:]])
@pytest.mark.parametrize(("kernel", "direction"), list(zip(compile_report.KERNELS, DIRECTIONS, strict=True)))
def test_tensor_cores_within_the_chip(table, kernel, direction, target, head_dim):
    row = table[kernel, target, head_dim]
    assert re.fullmatch(INSTRUCTION[target], row["instruction"]) and row["count"] > 0
    assert 0 < row["shared"] <= row["shared_limit"] and row["spills"] <= MOST_SPILLS and row["registers"] > 0
    config = default_config(direction, head_dim, torch.float16, target)
    assert row["tile"] == f"{config.BLOCK_M}×{config.BLOCK_N}" and row["num_warps"] == config.num_warps
    assert row["chip"] == TARGETS[target] and row["triton"].startswith("3.2.0") == (target == "sm_75")
    if target == "sm_80":
        assert row["shared"] <= 99 * 1024  # consumer chips, 8.6 and 8.9, use the same configuration


def test_a_padded_head_dim_without_the_causal_mask_builds_too():
    table = compile_report.compile_everywhere(["sm_90"], [80], causal=False)
    assert tuple(table.columns) == (*COLUMNS, "head_dim") and list(table["kernel"]) == list(compile_report.KERNELS)
    assert (table["instruction"] == "wgmma.mma_async").all() and (table["spills"] <= MOST_SPILLS).all()


def test_float32_is_not_rounded_to_tf32_and_so_uses_no_tensor_cores():
    table = compile_report.compile_everywhere(["sm_90"], [64], dtype=torch.float32)
    assert (table["instruction"] == "").all() and (table["shared"] <= table["shared_limit"]).all()


def test_an_unknown_target_is_refused_with_the_list():
    with pytest.raises(ValueError, match="sm_42.*gfx942"):
        compile_report.compile_everywhere(["sm_42"])
