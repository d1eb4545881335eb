"""Test that portable kernels use the tensor cores of every target, and that the T4's configurations fit their data."""

import json
import re
from pathlib import Path

import pytest
import torch

from labs_helpers.compile import ahead_of_time as aot
from labs_helpers.compile.ahead_of_time import SHARED_LIMIT, TARGETS, CompileError, triton_for
from labs_helpers.compile.report import COLUMNS, warp_size
from labs_helpers.gemm import compile_report, fused_matmul
from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.ladder import KERNELS
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.measure.machine import this_machine

INSTRUCTION = {
    "sm_75": r"mma\.sync",
    "sm_80": r"mma\.sync",
    "sm_90": r"wgmma\.mma_async",
    "sm_100": r"tcgen05\.mma",
    "gfx90a": r"v_mfma_\w+",
    "gfx942": r"v_mfma_\w+",
}
T4 = json.loads((Path(compile_report.__file__).parent / "tuned" / "t4.json").read_text())
needs_triton_3_2 = pytest.mark.skipif(
    triton_for("sm_75") is None,
    reason="Triton 3.2.0 is not installed beside the environment: `make t4` installs it, up to Python 3.13 on x86-64",
)


@pytest.fixture(scope="module")
def table():
    targets = [target for target in TARGETS if target != "sm_75" or triton_for(target)]
    return compile_report.compile_everywhere(KERNELS, targets)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("target", [pytest.param("sm_75", marks=needs_triton_3_2), *list(TARGETS)[1:]])
def test_tensor_cores_within_the_chip_and_without_spills(table, kernel, target):
    (row,) = table[(table["kernel"] == kernel) & (table["target"] == target)].to_dict("records")
    assert re.fullmatch(INSTRUCTION[target], row["instruction"].split(", ")[0]) and row["count"] > 0
    assert 0 < row["shared"] <= row["shared_limit"] and row["spills"] == 0
    assert row["registers"] > 0 and row["binary"] > 0 and row["chip"] == TARGETS[target]
    config = compile_report.config_for(target)
    assert row["tile"] == f"{config.BLOCK_M}×{config.BLOCK_N}×{config.BLOCK_K}"
    assert row["num_warps"] == config.num_warps
    assert row["threads"] == config.num_warps * (64 if target.startswith("gfx") else 32)
    assert row["triton"].startswith("3.2.0") == (target == "sm_75")


def test_the_table_has_a_row_for_each_kernel_and_target_in_order(table):
    assert tuple(table.columns) == COLUMNS
    order = list(zip(table["kernel"], table["target"], strict=True))
    targets = list(dict.fromkeys(table["target"]))
    assert order == [(kernel, target) for kernel in KERNELS for target in targets]


def test_the_limits_are_those_of_the_datasheets():
    assert set(SHARED_LIMIT) >= set(TARGETS)
    assert SHARED_LIMIT["sm_75"] == 65_536 and SHARED_LIMIT["sm_100"] == 232_448
    assert all(warp_size(entry.architecture) == entry.warp_size for entry in DATASHEET.values())


def build_for_t4(**configs):
    """Return one row per configuration of fused_matmul, at 512 and at 504, which is not a multiple of 16."""

    def at(n, config):
        return lambda a, b, c, _: fused_matmul(*(x[:n, :n].contiguous() for x in (a, b, c)), config=config)

    kernels = {f"{name} at {n}": at(n, config) for name, config in configs.items() for n in (512, 504)}
    return compile_report.compile_everywhere(kernels, ["sm_75"]).set_index("kernel").to_dict("index")


def agree(row, facts):
    """Return whether two builds agree. They may differ by a few bytes if the kernel spills, and else not at all."""
    assert {key: row[key] for key in facts} == pytest.approx(facts, rel=0.1)


@needs_triton_3_2
def test_the_facts_of_the_t4_file_are_the_compilers():
    built = build_for_t4(**{str(i): Config(**entry["config"]) for i, entry in enumerate(T4)})
    for i, entry in enumerate(T4):
        even, odd = built[f"{i} at 512"], built[f"{i} at 504"]
        facts = dict(entry["facts"])
        agree(odd, facts.pop("odd_sizes"))
        agree(even, facts)
        assert even["spills"] == 0 and even["shared"] <= 65_536 and even["triton"] == entry["triton"]
        assert even["instruction"] == odd["instruction"] == "mma.sync"
        assert entry["multiples_of_16"] or odd["spills"] == 0


@needs_triton_3_2
def test_a_larger_tile_or_fewer_warps_would_spill_on_a_t4():
    largest = Config(**T4[0]["config"])
    built = build_for_t4(
        larger=Config(256, 256, 32, num_warps=8, num_stages=2),
        fewer=Config(largest.BLOCK_M, largest.BLOCK_N, largest.BLOCK_K, num_warps=4, num_stages=2),
        other=Config(256, 128, 32, num_warps=8, num_stages=2),
    )
    assert built["larger at 512"]["spills"] > 800 and built["fewer at 512"]["spills"] > 1100
    assert built["other at 512"]["registers"] == pytest.approx(238, rel=0.02)


def test_the_t4_file_is_marked_as_not_measured_and_ordered_by_tile():
    assert all(entry["measured"] is False and entry["gpu"] == "T4" and entry["why"] for entry in T4)
    areas = [entry["config"]["BLOCK_M"] * entry["config"]["BLOCK_N"] for entry in T4]
    assert areas == sorted(areas, reverse=True)


@pytest.mark.parametrize("entry", T4, ids=lambda entry: str(entry["M"]))
def test_each_t4_configuration_is_the_default_at_the_shape_it_was_chosen_for(entry):
    assert default_config(entry["M"], entry["N"], entry["K"], torch.float16, "sm_75") == Config(**entry["config"])


def test_odd_sizes_get_no_configuration_that_spills_on_a_t4():
    spilling = [Config(**entry["config"]) for entry in T4 if entry["facts"]["odd_sizes"]["spills"]]
    for shape in ((4096, 4096, 4088), (4096, 4095, 4096), (4100, 4096, 4096)):
        assert default_config(*shape, torch.float16, "sm_75") not in spilling


def test_an_unknown_target_is_refused_with_the_list():
    with pytest.raises(ValueError, match="sm_42.*gfx942"):
        compile_report.compile_everywhere(targets=["sm_42"])


def test_without_triton_3_2_this_one_compiles_for_a_t4_and_a_line_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(aot, "TRITON_3_2", tmp_path)
    (row,) = compile_report.compile_everywhere(targets=["sm_75"]).to_dict("records")
    assert row["triton"] == this_machine().triton and "3.2.0 is not installed" in capsys.readouterr().out


def test_a_function_that_starts_no_kernel_is_named():
    with pytest.raises(ValueError, match="idle started no kernel"):
        compile_report.compile_everywhere({"idle": lambda a, b, c, config: a @ b})


def test_what_does_not_build_is_named_with_its_target():
    narrow = {
        "fine": KERNELS["fused_matmul"],
        "narrow": lambda a, b, c, _: fused_matmul(a, b, c, config=Config(64, 64, 8)),
    }
    with pytest.raises(CompileError, match="narrow does not build for sm_80"):
        compile_report.compile_everywhere(narrow, ["sm_80"])


def test_nothing_runs_and_kernels_run_again_afterwards():
    x = torch.ones(16, 16, device=this_machine().device)
    compile_report.compile_everywhere({"tile_matmul": KERNELS["tile_matmul"]}, ["sm_80"])
    assert torch.equal(exercises.tile_matmul(x, x, 16, 16, 16), x * 16)
