"""Test that the sweep times only correct kernels, keeps its records when interrupted, and compiles without running."""

import pytest
import torch

from labs_helpers.gemm import Config, fused_matmul
from labs_helpers.gemm.tuning import build_first, compile_table, long_runs, operands, sweep
from labs_helpers.measure import results
from tests.gemm.lab03.silu_sweep import formula, silu_matmul

SMALL = Config(32, 32, 16, num_warps=4, num_stages=2)


def measure(**changes):
    return sweep.measure_sweep(
        **{"shapes": [(40, 33, 20)], "configs": [SMALL], "dtype": torch.float32, "repeat_ms": 1} | changes
    )


def test_a_measurement_says_what_was_measured():
    (record,) = measure()
    assert record["kind"] == "measured" and record["kernel"] == "fused_matmul" and record["relative_error"] < 1e-6
    assert record["median_ms"] > 0 and SMALL.keywords().items() <= record.items()


def test_another_kernel_has_its_own_formula():
    (record,) = measure(kernel=silu_matmul, name="silu_matmul", formula=formula)
    assert record["relative_error"] < 1e-6 and record["kernel"] == "silu_matmul"
    assert "relative error" in measure(kernel=silu_matmul)[0]["error"]


def test_what_is_wrong_is_not_timed_and_what_fails_is_recorded():
    def half(a, b, c, config):
        return torch.relu(a[:, :10] @ b[:10] + c)

    def not_a_number(a, b, c, config):
        return torch.full_like(c, torch.nan)

    for kernel in (half, not_a_number):
        (record,) = measure(kernel=kernel)
        assert "median_ms" not in record and record["error"].startswith("wrong")
    assert "ZeroDivisionError" in measure(kernel=lambda a, b, c, config: 1 / 0)[0]["error"]


def test_an_interrupt_keeps_what_was_measured(capsys):
    calls = []

    def kernel(a, b, c, config):
        calls.append(config)
        if config.num_stages == 4:
            raise KeyboardInterrupt
        return torch.relu(a @ b + c)

    configs = [Config(32, 32, 16, num_stages=stages) for stages in (2, 3, 4, 5)]
    assert [r["num_stages"] for r in measure(kernel=kernel, configs=configs)] == [2, 3]
    assert "2 measurements are kept" in capsys.readouterr().out


def test_another_layout_is_recorded_and_has_its_strides():
    (record,) = measure(layout="B transposed")
    assert record["layout"] == "B transposed" and record["relative_error"] < 1e-6
    assert "layout" not in measure()[0]
    assert operands.operands(8, 6, 4, layout="B transposed")[1].stride() == (1, 4)
    with pytest.raises(ValueError, match="layout is 'columns'"):
        operands.operands(8, 6, 4, layout="columns")


def test_one_wrong_element_among_many_is_wrong():
    def one_zero(a, b, c, config):
        d = torch.relu(a @ b + c)
        d.view(-1)[d.argmax()] = 0
        return d

    shape = (300, 400, 20)
    (record,) = measure(kernel=one_zero, shapes=[shape])
    assert record["error"].startswith("wrong: 1 elements")


def test_kernels_are_built_for_each_kind_of_shape_once(monkeypatch):
    jobs = []

    class Pool:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def map(self, function, orders):
            jobs.extend(orders)
            return map(function, orders)

    monkeypatch.setattr(build_first, "ProcessPoolExecutor", Pool)
    cases = [
        ((1024, 4096, 2048), "rows"),
        ((512, 512, 512), "rows"),
        ((2040, 64, 64), "rows"),
        ((64,) * 3, "B transposed"),
    ]
    built = build_first.build_first(
        cases, [SMALL, Config(64, 32, 16)], lambda a, b, c, config: 1 / (config.BLOCK_M - 64)
    )
    assert built == 3 and len(jobs) == 6 and jobs[0][4].BLOCK_M == 64  # three kinds; failures do not count
    assert {(job[1], job[2]) for job in jobs} == {
        ((512, 512, 512), "rows"),
        ((568, 512, 512), "rows"),
        ((512, 512, 512), "B transposed"),
    }


def test_the_clock_is_read_from_what_nvidia_smi_says_between_two_times():
    line = "2026/11/22 10:20:30.500, 1530, 690.32"
    when, clock, watts = long_runs.read_line(line)
    assert (clock, watts) == (1530, 690.32) and long_runs.read_line("2026/11/22 10:2") is None
    reader = long_runs.Clock()
    reader._lines = [line, line.replace("1530", "1485"), line.replace("1530", "1980"), "torn"]
    assert reader.between(when - 1, when + 1) == {"sm_mhz": 1530, "watts": 690.32}
    assert reader.between(when + 1, when + 2) == {}


def test_compiling_runs_no_kernel_and_reports_resources(monkeypatch):
    from triton.runtime.interpreter import GridExecutor

    monkeypatch.setattr(GridExecutor, "__call__", lambda *_, **__: pytest.fail("a kernel ran"))
    (record,) = compile_table.compile_table(("sm_90",), [Config(64, 64, 32, num_stages=3)])
    assert record["shared"] == 3 * (64 * 32 + 32 * 64) * 2 and record["tensor_core"] > 0 and record["spills"] == 0
    monkeypatch.undo()
    x = torch.ones(32, 32)
    assert torch.equal(fused_matmul(x, x, x, config=SMALL), torch.full((32, 32), 33.0))


def test_turing_without_its_triton_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_table, "TRITON_3_2", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="make t4"):
        compile_table.compile_table(("sm_75",), [SMALL])


def test_the_command_refuses_to_time_without_a_gpu(capsys):
    if sweep.this_machine().device == "cuda":
        pytest.skip("there is a GPU")
    with pytest.raises(SystemExit):
        sweep.main(["waves"])
    assert "this sweep needs a GPU" in capsys.readouterr().err


def test_the_command_appends_records_with_where_they_came_from(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "compile_table", lambda: [{"kind": "compiled"}])
    out = tmp_path / "compiled.jsonl"
    sweep.main(["compile", "--out", str(out)])
    assert results.load(out)["on.torch"].notna().all()
