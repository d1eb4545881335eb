"""Test that the study times only right results and that its table and figures show the records."""

import itertools
import sys

import pandas
import pytest
import torch

from labs_helpers.attention import baselines, charts, error_study, study
from labs_helpers.attention.plain_steps import measure_plain_steps
from labs_helpers.course.prediction import Prediction
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.draw import figures
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text

SMALL = {"tokens": 64, "width": 32}
RATES = {study.OURS: 620, study.FLASH: 350, study.CUDNN: 600, study.FLEX: 420, study.PORTABLE: 480}


def speed(name, direction, L, D, causal, rate, dtype="float16", graph=False):
    """Return a record of `name` at `rate` TFLOP/s, with lower rates at short lengths."""
    B, H = study.TOKENS // L, study.WIDTH // D
    ms = study.flops(direction, B, H, L, D, causal) / (rate * (1 - 300 / (L + 1000))) / 1e9
    return {
        "study": "attention",
        "kind": "speed",
        "name": name,
        "direction": direction,
        "dtype": dtype,
        "B": B,
        "H": H,
        "L": L,
        "D": D,
        "causal": causal,
        "median_ms": ms,
        "p20_ms": 0.98 * ms,
        "p80_ms": 1.03 * ms,
        "runs": 9,
        "rounds": 3,
        "cold_l2": not graph,
        "graph": graph,
        "relative_error": 4e-4,
    }


def invented() -> list[dict]:
    """Return records of every kind like those of a run on a GPU, with made-up numbers."""
    shapes = list(itertools.product(study.DIRECTIONS, study.LENGTHS, study.HEAD_DIMS, (True, False)))
    records = [
        speed(name, direction, L, D, causal, rate * (0.85 if causal else 1) * (0.8 if D == 64 else 1), dtype)
        for direction, L, D, causal in shapes
        for dtype in baselines.NAMES
        for name, rate in RATES.items()
        if name in baselines.NAMES[dtype]
    ]
    records += [speed(name, "forward", 1024, 128, True, rate, graph=True) for name, rate in RATES.items()]
    records += [
        speed(study.PLAIN, direction, L, 128, False, 40) for direction in study.DIRECTIONS for L in study.LENGTHS
    ]
    drawn = (study.OURS, study.FLASH, study.PLAIN)
    for direction, L, name in itertools.product(study.DIRECTIONS, study.LENGTHS, drawn):
        extra = study.tiled_bytes(direction, 1, 16, L, 128) * (1.2 if name == study.FLASH else 1)
        extra += 2 * study.score_bytes(1, 16, L) * (name == study.PLAIN)
        records.append(
            {
                "study": "attention",
                "kind": "memory",
                "name": name,
                "direction": direction,
                "B": 1,
                "H": 16,
                "L": L,
                "D": 128,
                "causal": False,
                "dtype": "float16",
                "extra_bytes": int(extra),
            }
        )
    sizes = {error_study.ROUNDED: 2e-4, study.OURS: 3e-4, study.FLASH: 3.1e-4, study.PLAIN: 5e-4}
    for dtype, L, (name, size), of in itertools.product(
        baselines.NAMES, error_study.LENGTHS, sizes.items(), error_study.QUANTITIES
    ):
        rms = (2.7 / L) ** 0.5
        records.append(
            {
                "study": "attention",
                "kind": "error",
                "name": name,
                "of": of,
                "dtype": dtype,
                "B": 1,
                "H": 1,
                "L": L,
                "D": 128,
                "causal": False,
                "rms_error": size * rms * (8 if dtype == "bfloat16" else 1),
                "max_error": 5 * size * rms,
                "reference_rms": rms,
            }
        )
    return records


@pytest.fixture(scope="module")
def rows():
    return pandas.DataFrame(invented())


def lines(ax) -> dict:
    return {line.get_label(): line for line in ax.get_lines()}


def test_operations_and_bytes_are_counted_as_the_papers_do():
    assert study.flops("forward", 2, 3, 64, 16, False) == 2 * 3 * (2 * 64 * 64 * 16) * 2
    assert study.flops("backward", 2, 3, 64, 16, True) == 5 * 2 * 3 * (2 * 64 * 64 * 16) / 2
    o, lse = torch.empty(2, 3, 64, 16, dtype=torch.float16), torch.empty(2, 3, 64)
    assert study.tiled_bytes("forward", 2, 3, 64, 16) == o.nbytes + lse.nbytes
    assert study.tiled_bytes("backward", 2, 3, 64, 16) == 4 * o.nbytes + lse.nbytes
    assert study.score_bytes(2, 3, 64) == torch.empty(2, 3, 64, 64, dtype=torch.float16).nbytes


def test_operands_hold_the_tokens_and_the_width_of_a_batch():
    q, k, v, do = baselines.operands(16, 8, torch.float16, "cpu", **SMALL)
    assert q.shape == k.shape == v.shape == do.shape == (4, 4, 16, 8)
    assert q.requires_grad and k.requires_grad and v.requires_grad and not do.requires_grad
    assert torch.equal(q, baselines.operands(16, 8, torch.float16, "cpu", **SMALL)[0]) and not torch.equal(q, k)


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_by_blocks_is_attention_and_its_gradients(causal):
    q, k, v, do = baselines.operands(21, 8, torch.float64, "cpu", tokens=42, width=16)
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    right = [o, *baselines.gradients(o, q, k, v, do)]
    for rows in (8, 21, 64):
        for got, exact in zip(error_study.reference(q, k, v, do, causal, rows), right, strict=True):
            torch.testing.assert_close(got, exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_plain_attention_is_attention(causal):
    q, k, v, _ = baselines.operands(13, 8, torch.float64, "cpu", tokens=26, width=16)
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(baselines.plain_attention(q, k, v, causal), exact)
    torch.testing.assert_close(baselines.plain_attention(q / 8**0.5, k, v, causal, scale=1), exact)


@pytest.mark.parametrize("name", [study.OURS, study.PORTABLE])
def test_the_kernels_by_their_public_way_have_the_gradients(name):
    q, k, v, do = baselines.operands(24, 16, torch.float32, study.this_machine().device, tokens=24, width=32)
    o = baselines.candidate(name, 24, True)(q, k, v)
    for got, exact in zip(
        [o.detach(), *baselines.gradients(o, q, k, v, do)], error_study.reference(q, k, v, do, True), strict=True
    ):
        assert error_study.relative_error(got, exact) < 1e-5


def test_errors_are_recorded_for_each_length_candidate_and_quantity():
    records = error_study.measure_errors((16, 40), 16, ("float16", "float32"), names=(study.OURS, study.PLAIN))
    assert len(records) == 2 * 2 * 3 * len(error_study.QUANTITIES)
    table = pandas.DataFrame(records).set_index(["dtype", "L", "of", "name"])
    for dtype, bound in (("float16", 3e-3), ("float32", 1e-5)):
        relative = table.loc[dtype]["rms_error"] / table.loc[dtype]["reference_rms"]
        assert (relative < bound).all() and (relative > 0).all()
    least = table.xs(error_study.ROUNDED, level="name")
    assert (table.xs(study.OURS, level="name")["rms_error"] >= least["rms_error"]).all()
    assert (table["max_error"] >= table["rms_error"]).all()


def test_memory_is_that_of_the_tensors_alive_at_the_peak():
    records = study.measure_memory((64, 128), 16, (study.OURS, study.PLAIN), width=32)
    extra = {(r["name"], r["direction"], r["L"]): r["extra_bytes"] for r in records}
    for L in (64, 128):
        least = {direction: study.tiled_bytes(direction, 1, 2, L, 16) for direction in study.DIRECTIONS}
        assert extra[study.OURS, "forward", L] == least["forward"]
        assert least["backward"] <= extra[study.OURS, "backward", L] <= least["backward"] + 2 * 2 * L * 4
        assert extra[study.PLAIN, "forward", L] >= 2 * study.score_bytes(1, 2, L)


def test_plain_attention_is_three_kernels_that_see_the_scores():
    q, k, v = torch.zeros(3, 1, 2, 32, 8).unbind()
    with TorchTraffic() as traffic:
        baselines.plain_attention(q, k, v)
    seen = [operation.bytes for operation in traffic.operations if operation.bytes >= study.score_bytes(1, 2, 32, 4)]
    records = measure_plain_steps((32,), 8, 1, 1, tokens=32, width=16)
    assert [2 * record["bytes"] for record in records] == seen  # float16 there, float32 here
    assert [record["step"] for record in records] == ["Q·Kᵀ", "softmax", "P·V"]


def test_a_measurement_has_a_record_for_each_candidate_and_direction(monkeypatch):
    monkeypatch.setattr(
        study, "candidate", lambda name, length, causal: lambda q, k, v: baselines.plain_attention(q, k, v, causal)
    )
    records = study.measure_speed(16, 8, True, {"float32": (study.OURS, study.FLASH)}, 1, 1, **SMALL)
    assert {(r["name"], r["direction"]) for r in records} == set(
        itertools.product((study.OURS, study.FLASH), study.DIRECTIONS)
    )
    assert all(r["median_ms"] > 0 and r["relative_error"] < 1e-5 and (r["B"], r["H"]) == (4, 4) for r in records)


def test_a_wrong_candidate_is_never_timed(monkeypatch):
    monkeypatch.setattr(study, "candidate", lambda *_: baselines.plain_attention)
    monkeypatch.setattr(study, "measure_rounds", lambda *_, **__: pytest.fail("timed"))
    with pytest.raises(ValueError, match="relative errors of o, dq, dk, dv against float64: 0.") as caught:
        study.measure_speed(16, 8, True, {"float32": (study.PORTABLE,)}, 1, 1, **SMALL)
    assert caught.value.__notes__ == [f"{study.PORTABLE} at L = 16, d = 8, causal, float32"]


def test_a_peer_that_fails_is_left_out_with_a_word_and_ours_is_not(monkeypatch, capsys):
    def some(name, length, causal):
        if name == study.PLAIN:
            return lambda q, k, v: baselines.plain_attention(q, k, v, causal)
        if name == study.CUDNN:
            return lambda q, k, v: 2 * v
        raise RuntimeError("no kernel here\nand more")

    monkeypatch.setattr(study, "candidate", some)
    records = study.measure_speed(16, 8, False, {"float32": (study.FLEX, study.PLAIN, study.CUDNN)}, 1, 1, **SMALL)
    assert {r["name"] for r in records} == {study.PLAIN}
    flex, cudnn = capsys.readouterr().out.splitlines()
    assert flex == "flex_attention is left out at L = 16, d = 8, full, float32: RuntimeError: no kernel here"
    assert cudnn.startswith("cuDNN (SDPA) is left out at L = 16, d = 8, full, float32: ")
    with pytest.raises(RuntimeError, match="no kernel here"):
        study.measure_speed(16, 8, False, {"float32": (study.OURS,)}, 1, 1, **SMALL)


def test_the_table_gives_rates_and_ratios_and_a_dash_where_a_peer_is_missing():
    records = [
        speed(study.OURS, "forward", 4096, 64, True, 600),
        speed(study.FLASH, "forward", 4096, 64, True, 300),
        speed(study.OURS, "backward", 4096, 64, True, 500),
        *invented()[-1:],
    ]
    head, backward, forward = as_text(study.table(frame(records))).splitlines()
    assert head.split()[6:10] == ["TFLOP/s", "spread", "×", "flash"]
    assert forward.split()[:6] == ["forward", "64", "causal", "4096", "float16", "call"]
    assert forward.split()[-5:] == ["5%", "2.000", "–", "–", "–"] and backward.split()[-4:] == ["–"] * 4
    assert float(forward.split()[6]) == pytest.approx(600 * (1 - 300 / 5096), abs=1)
    assert len(study.table(frame([speed(study.FLASH, "forward", 4096, 64, True, 300)]))) == 1


def test_without_a_gpu_the_command_says_why_it_does_not_run(tmp_path):
    if study.this_machine().device == "cuda":
        pytest.skip("there is a GPU")
    with pytest.raises(SystemExit, match="attention is timed on a GPU, and there is none here"):
        study.main(["--out", str(tmp_path / "never.jsonl")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_measures_every_shape_and_the_slow_ways_where_they_fit(monkeypatch, quick):
    class Gpu:
        device, cores, supports_bfloat16 = "cuda", 2, True

    measured, beforehand = {}, []
    monkeypatch.setattr(study, "this_machine", Gpu)
    monkeypatch.setattr(study, "compile_beforehand", lambda shapes, dtypes, pool: beforehand.extend(shapes))
    monkeypatch.setattr(
        study,
        "measure_speed",
        lambda L, D, causal, names, rounds, repeat_ms, graph: (
            measured.update({(L, D, causal): (names, graph)}) or [{"kind": "speed"}]
        ),
    )
    monkeypatch.setattr(study, "measure_memory", lambda: [{"kind": "memory"}])
    monkeypatch.setattr(study, "measure_errors", lambda dtypes: [{"kind": "error"}])
    monkeypatch.setattr(study, "measure_plain_steps", lambda lengths, D, rounds: [{"kind": "plain step"}])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (6 * study.score_bytes(2, 16, 8192) + 1, 0))
    records = study.everything(1, quick)
    lengths = study.QUICK_LENGTHS if quick else study.LENGTHS
    assert set(measured) == set(beforehand) == set(itertools.product(lengths, study.HEAD_DIMS, (True, False)))
    assert {record["kind"] for record in records} == (
        {"speed"} if quick else {"speed", "memory", "error", "plain step"}
    )
    for (L, D, causal), (names, graph) in measured.items():
        slow = D == 128 and not causal and not quick
        assert set(names) == ({"float16"} if quick else {"float16", "bfloat16"}) and graph == (L <= 2048)
        assert (study.EFFICIENT in names["float16"]) == slow
        assert (study.PLAIN in names["float16"]) == (slow and L <= 8192)


def test_a_quick_run_is_recorded_only_where_a_file_is_named(monkeypatch, tmp_path, capsys):
    class Gpu:
        device = "cuda"

    monkeypatch.setattr(study, "this_machine", Gpu)
    monkeypatch.setattr(study, "everything", lambda rounds, quick: invented()[:3] if quick else [])
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path))
    study.main(["--quick"])
    assert not list(tmp_path.iterdir()) and "3 records, not kept" in capsys.readouterr().out
    out = tmp_path / "quick.jsonl"
    study.main(["--quick", "--out", str(out)])
    assert len(results.load(out)) == 3 and results.load(out)["on.torch"].notna().all()


def test_compiling_beforehand_runs_one_process_a_shape(monkeypatch, capsys):
    commands = []

    def run(command, **_):
        commands.append(command)
        if "--causal" in command:
            raise baselines.ProcessFailed(command, 1, "out of memory")

    monkeypatch.setattr(baselines, "run", run)
    with baselines.ThreadPoolExecutor(1) as pool:
        baselines.compile_beforehand([(16, 64, True), (32, 128, False)], ["float16"], pool)
    assert [command[3] for command in commands] == ["16", "32"] and commands[0][0] == sys.executable
    assert "out of memory" in capsys.readouterr().out


def test_the_process_that_compiles_runs_what_has_to_be_compiled(monkeypatch):
    ran = []

    def some(name, length, causal):
        ran.append((name, length, causal))
        return lambda q, k, v: baselines.plain_attention(q, k, v, causal)

    monkeypatch.setattr(baselines, "candidate", some)
    monkeypatch.setattr(baselines, "TOKENS", 16)
    monkeypatch.setattr(baselines.operands, "__defaults__", (16, 16))
    baselines.main(["16", "--head-dim", "16", "--causal", "--dtypes", "float16", "bfloat16"])
    assert ran == [(name, 16, True) for name in (study.OURS, study.PORTABLE, study.FLEX, study.OURS)]


def test_speed_is_drawn_in_a_panel_a_head_dim(rows):
    drawn = charts.draw_speed(rows, "backward", causal=False)
    small, large = map(lines, drawn.axes)
    assert list(large[study.OURS].get_ydata())[-1] == pytest.approx(620 * (1 - 300 / 17384))
    assert list(small[study.CUDNN].get_xdata()) == list(study.LENGTHS) and study.FLEX in large
    assert study.PLAIN not in large and study.PORTABLE not in large


def test_what_is_missing_is_not_drawn_and_nothing_at_all_is_an_error(rows):
    drawn = charts.draw_speed(rows[rows["name"] != study.FLEX])
    assert study.FLEX not in lines(drawn.axes[0]) and study.OURS in lines(drawn.axes[0])
    for draw, kind in ((charts.draw_memory, "memory"), (charts.draw_error, "error")):
        with pytest.raises(ValueError, match=f"no records of the kind '{kind}'"):
            draw(rows[rows["kind"] == "speed"])
    with pytest.raises(ValueError, match="of is 'dp'; expected one of o, dq, dk, dv"):
        charts.draw_error(rows, "dp")


def test_the_latest_record_of_a_run_is_drawn(rows):
    newer = pandas.DataFrame([speed(study.OURS, "forward", 16384, 128, True, 900)])
    drawn = charts.draw_speed(pandas.concat([rows, newer], ignore_index=True))
    assert lines(drawn.axes[1])[study.OURS].get_ydata()[-1] == pytest.approx(900 * (1 - 300 / 17384))


def test_memory_shows_the_linear_and_the_quadratic(rows):
    for ax in charts.draw_memory(rows).axes:
        plain, ours = (lines(ax)[name].get_ydata() for name in (study.PLAIN, study.OURS))
        assert ours[-1] / ours[-2] == pytest.approx(2) and plain[-1] / plain[-2] > 3.8


def test_causal_speed_up_and_its_prediction(rows):
    without = charts.draw_causal(rows, "forward", Prediction("?"))
    with_it = charts.draw_causal(rows, "forward", Prediction("?", 1.5))
    assert len(with_it.axes[0].get_lines()) == len(without.axes[0].get_lines()) + 1
    assert with_it.axes[0].get_lines()[-1].get_xydata().tolist() == [[16384, 1.5]]
    assert lines(without.axes[0])[study.OURS].get_ydata() == pytest.approx([1.7] * 5)


def test_the_figures_stay_small_and_a_name_has_one_colour(rows):
    drawn = [
        charts.draw_speed(rows),
        charts.draw_time(rows, "backward"),
        charts.draw_memory(rows),
        charts.draw_error(rows),
        charts.draw_error(rows, "dq"),
        charts.draw_causal(rows, "backward"),
    ]
    colours = {}
    for fig in drawn:
        assert len(figures.png(fig)) < 100_000
        for ax in fig.axes:
            for name, line in lines(ax).items():
                if name in charts.CURVES:
                    assert colours.setdefault(name, line.get_color()) == line.get_color()
    assert len(set(colours.values())) == len(colours)


def test_the_committed_record_is_whole_and_says_where_it_is_from():
    if not results.path_for("attention", "nvidia-h200").is_file():
        pytest.skip("not measured yet")
    record = study.load("nvidia-h200")
    assert record.attrs["damaged"] == [] and (record["on.machine"] == "NVIDIA H200").all()
    assert record[["on.driver", "on.torch", "on.triton", "on.commit", "on.time"]].notna().all().all()
    times = record[record["kind"] == "speed"]
    assert (times["p20_ms"] <= times["median_ms"]).all() and (times["median_ms"] <= times["p80_ms"]).all()
    for direction, L, D, causal in itertools.product(study.DIRECTIONS, study.LENGTHS, study.HEAD_DIMS, (True, False)):
        there = charts.chosen(record, "speed", direction=direction, L=L, D=D, causal=causal)
        assert {study.OURS, study.PORTABLE, study.FLASH, study.CUDNN} <= set(there["name"])
        again = charts.chosen(record, "speed", direction=direction, L=L, D=D, causal=causal, dtype="bfloat16")
        assert {study.OURS, study.FLASH} <= set(again["name"])
    for fig in (
        charts.draw_speed(record),
        charts.draw_time(record),
        charts.draw_memory(record),
        charts.draw_error(record),
        charts.draw_causal(record),
    ):
        assert len(figures.png(fig)) < 100_000
