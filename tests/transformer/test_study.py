"""Test the study's command: its refusals, its records, and its behavior if a point fails."""

import dataclasses
import json
import math
import re
import sys

import pytest
import torch

from labs_helpers.launch.process import run
from labs_helpers.measure import results
from labs_helpers.measure.records import frame as as_frame
from labs_helpers.measure.study import as_text
from labs_helpers.transformer import SIZES, counts, grids, measure_step, study
from labs_helpers.transformer.grids import Point, gather, points, read
from labs_helpers.transformer.records import of_setup, with_rates
from labs_helpers.transformer.setups import ORDERS, Setup, walk
from labs_helpers.transformer.training_step import Training

FILES = sorted(path.name for path in grids.SHIPPED.glob("*.yaml"))
GRID = {"sizes": "tiny", "batches": 2, "lengths": 16}
MEASURED = {f"{phase}{which}_ms" for phase in measure_step.PHASES for which in ("", "_p20", "_p80")} | {
    "runs", "peak_bytes", "state_bytes", "launches", "forward_launches", "busy", "gpu_ms", "loss",
}  # fmt: skip
DESCRIBED = {
    "study", "kind", "size", "parameters", "layers", "batch", "length", "attention", "precision", "compiled", "graph",
    "regional", "optimizer", "segments", "accumulate", "seed", "flops_per_token", "out_of_memory",
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def command(*arguments, expect=0, capsys=None):
    """What the command prints, in this process."""
    if expect == 0:
        study.main([str(a) for a in arguments])
    else:
        with pytest.raises(SystemExit) as ended:
            study.main([str(a) for a in arguments])
        assert ended.value.code == expect
    said = capsys.readouterr()
    return said.out + said.err


def invented(point, rounds=10):
    """A record such as `measure` makes, without measuring."""
    step = 2.0 * point.batch * point.length / 32
    times = {f"{phase}{which}_ms": step for phase in measure_step.PHASES for which in ("", "_p20", "_p80")}
    measured = times | {
        "runs": 10,
        "peak_bytes": 10**9,
        "state_bytes": 10**8,
        "launches": 500,
        "busy": 0.5,
        "loss": 4.2,
    }
    measured |= {"forward_launches": 100, "gpu_ms": None}
    return {
        "study": "transformer",
        "kind": "step",
        "size": point.size,
        "parameters": 10**6,
        "layers": 2,
        "batch": point.batch,
        "length": point.length,
        **dataclasses.asdict(point.setup),
        "seed": point.seed,
        "flops_per_token": 6e6,
        "out_of_memory": False,
        **measured,
    }


# Grids


def test_a_grid_is_the_product_of_its_values():
    found = points(
        GRID | {"lengths": [16, 32], "attention": ["plain", "sdpa"], "compiled": [False, True], "seeds": [0, 3]}
    )
    assert len(found) == len(set(found)) == 16
    assert found[0] == Point("tiny", 2, 16, Setup()) and found[-1] == Point(
        "tiny", 2, 32, Setup(attention="sdpa", compiled=True), 3
    )


def test_a_grid_may_follow_orders():
    start = {"precision": "tf32"}
    (order,) = ["launches first"]
    found = points(GRID | start | {"orders": order})
    assert [point.setup for point in found] == list(walk(order, Setup(precision="tf32")).values())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"lenghts": 3}, "there is no key 'lenghts'; there are sizes, batches, lengths, seeds, attention,"),
        ({"sizes": "huge"}, "sizes has 'huge'; there are 'tiny', 'bytes', 'small'"),
        ({"sizes": [["tiny"]]}, r"sizes has \['tiny'\]"),
        ({"batches": 0}, "batches has 0, not an integer of 1 or more"),
        ({"lengths": "16"}, "lengths has '16'"),
        ({"lengths": True}, "lengths has True"),
        ({"seeds": -1}, "seeds has -1, not an integer of 0 or more"),
        ({"attention": "fash"}, "attention is 'fash'"),
        ({"compiled": "maybe"}, "compiled is 'maybe', not yes or no"),
        ({"segments": 3}, "segments is 3; 2 layers make 0 to 2"),
        ({"accumulate": 4}, "accumulate is 4, which does not divide a batch of 2"),
        ({"orders": "backwards"}, "orders has 'backwards'"),
        ({"precision": []}, "precision is an empty list"),
        ({"size": "tiny"}, "there is no key 'size'"),
    ],
    ids=str,
)
def test_a_wrong_key_or_value_is_named_with_its_file_and_grid(change, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps([GRID, GRID | change]))  # YAML has JSON in it
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, grid 2: {message}"):
        read(str(path), {})


@pytest.mark.parametrize("missing", grids.REQUIRED)
def test_a_missing_key_is_named(missing):
    with pytest.raises(ValueError, match=f"the key '{missing}' is missing"):
        points({key: value for key, value in GRID.items() if key != missing})


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is not a list of grids"),
        ("sizes: tiny", "is not a list of grids"),
        ("- tiny", "is not a list of grids"),
        ("- {sizes: [", "is no YAML"),
    ],
)
def test_a_file_of_another_form_is_refused(text, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"mine.yaml {message}"):
        read(str(path), {})


def test_a_file_that_is_not_there_is_told_from_those_that_are():
    with pytest.raises(FileNotFoundError, match=r"no file sizs.yaml; shipped are batches.yaml, .*sizes.yaml"):
        read("sizs.yaml", {})


@pytest.mark.parametrize("name", FILES)
def test_shipped_files_are_sound_by_either_name(name):
    found = read(name, {})
    assert found and found == read(name.removesuffix(".yaml"), {})
    assert len(set(found)) == len(found)


def test_what_is_shipped_for_a_gpu_is_what_was_planned():
    assert sorted({*study.FILES["cpu"], *study.FILES["cuda"]}) == [name.removesuffix(".yaml") for name in FILES]
    assert {point.batch * point.length for point in read("sizes", {})} == {4096} and len(read("sizes", {})) == 12
    for order in ORDERS:
        assert set(walk(order).values()) <= {point.setup for point in read("orders", {})}
    chain = [point.setup for point in read("remedies", {}) if point.length == 4096]
    fast = Setup("flash", "bf16", True, True, "fused")
    assert set(chain) >= {
        *(Setup(precision=precision) for precision in ("fp32", "tf32", "bf16")),
        *(Setup(attention, "bf16") for attention in ("sdpa", "flash")),
        *(dataclasses.replace(fast, graph=False, compiled=compiled) for compiled in (False, True)),
        fast,
        dataclasses.replace(fast, attention="sdpa"),
        *(dataclasses.replace(setup, segments=4, graph=False) for setup in (Setup(precision="bf16"), fast)),
    }
    race = {(p.setup.attention, p.setup.regional) for p in read("race", {}) if p.setup.compiled and not p.setup.graph}
    assert race == {("sdpa", False), ("sdpa", True), ("flash", True)}
    assert [point.batch for point in read("batches", {})][:7] == [1, 2, 4, 8, 16, 32, 64]
    assert [point.setup.segments for point in read("checkpoints", {})] == [0, 1, 2, 4, 8, 16]


def test_files_together_have_each_point_once_and_options_replace_what_they_say():
    together = gather(["checkpoints", "remedies", "checkpoints"], {}, {})
    assert len(together) == len(set(together)) < 20 + 12
    replaced = gather(["checkpoints"], {"segments": [0, 2], "lengths": [512]}, {})
    assert [(p.setup.segments, p.length) for p in replaced] == [(0, 512), (2, 512)]
    assert gather([], {"lengths": [8]}, GRID) == [Point("tiny", 2, 8, Setup())]


def test_a_longer_context_than_the_sizes_own():
    assert Point("small", 1, 4096, Setup()).config == dataclasses.replace(SIZES["small"], context=4096)
    assert Point("small", 1, 16, Setup()).config == SIZES["small"]


# The command


def test_from_the_command_line_to_records(tmp_path):
    out = tmp_path / "steps.jsonl"
    options = "--sizes tiny --batches 2 --lengths 16 --attentions plain sdpa --rounds 5 --out".split()
    module = "labs_helpers.transformer.study"
    said = run([sys.executable, "-m", module, *options, str(out)], timeout=100, env={"OMP_NUM_THREADS": "1"})
    frame = results.load(out)
    assert {name for name in frame if not name.startswith("on.")} == DESCRIBED | MEASURED
    # Between a point and its result may stand what the profiler says on stderr.
    assert re.findall(r"^\[(\d)/2\] tiny 2 × 16, (\w+) fp32 foreach: ", said, re.M) == [("1", "plain"), ("2", "sdpa")]
    first, second = re.findall(r"[\d.]+ ms, [\d,]+ tokens/s, .* GB(.*)$", said, re.M)
    assert re.fullmatch(r"; about \d+ s left", first) and second == ""
    assert said.rstrip().endswith(f"2 records appended to {out}")
    assert frame["on.torch"].notna().all() and (frame["study"] == "transformer").all()
    for phase in measure_step.PHASES:
        assert (frame[f"{phase}_p20_ms"] <= frame[f"{phase}_ms"]).all()
        assert (frame[f"{phase}_ms"] <= frame[f"{phase}_p80_ms"]).all() and (frame[f"{phase}_p20_ms"] > 0).all()
    assert (frame["runs"] == 5).all() and (frame["busy"].between(0, 1)).all()
    assert (frame["forward_launches"] > 10).all() and (frame["launches"] > 2 * frame["forward_launches"]).all()
    assert (frame["parameters"] == sum(counts.parameters(SIZES["tiny"]).values())).all()
    assert (frame["flops_per_token"] == counts.flops_per_token(SIZES["tiny"], 16, causal=True).step).all()
    assert frame["loss"][0] == pytest.approx(frame["loss"][1], rel=1e-5)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--sizes", "huge"], "argument --sizes: invalid choice: 'huge'"),
        (["--attentions", "fash"], "argument --attentions: invalid choice: 'fash'"),
        (["--lengths", "long"], "argument --lengths: invalid int value: 'long'"),
        (["--batches", "0"], "batches has 0, not an integer of 1 or more"),
        (["--rounds", "4"], "--rounds is 4; median and percentiles want 5 or more"),
        (["--segments", "5"], "segments is 5; 2 layers make 0 to 2"),
        (["--graph", "yes"], "graph: that is measured on a GPU, and there is none here"),
        (["orders", "--sizes", "tiny"], "that is measured on a GPU, and there is none here"),
        (["nowhere.yaml"], "no file nowhere.yaml; shipped are"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_anything_is_measured(arguments, message, tmp_path, monkeypatch, capsys):
    if study.this_machine().device == "cuda" and "GPU" in message:
        pytest.skip("there is a GPU")
    monkeypatch.setattr(study, "measure", lambda *_: pytest.fail("measured"))
    assert message in command(*arguments, "--out", tmp_path / "never.jsonl", expect=2, capsys=capsys)
    assert not list(tmp_path.iterdir())


def test_options_and_files_make_the_points(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "measure", invented)
    path, out = tmp_path / "mine.yaml", tmp_path / "steps.jsonl"
    path.write_text("- {sizes: tiny, batches: [1, 2], lengths: 16, compiled: [no, yes], precision: bf16}\n")
    command(path, "--lengths", "8", "16", "--compiled", "yes", "--optimizers", "fused", "--out", out, capsys=capsys)
    frame = results.load(out)
    assert frame[["length", "batch"]].values.tolist() == [[8, 1], [8, 2], [16, 1], [16, 2]]
    assert frame["compiled"].all() and (frame["optimizer"] == "fused").all() and (frame["precision"] == "bf16").all()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_without_arguments_it_measures_what_is_shipped_for_the_machine(device, tmp_path, monkeypatch, capsys):
    machine = dataclasses.replace(study.this_machine(), device=device)
    monkeypatch.setattr(study, "this_machine", lambda: machine)
    monkeypatch.setattr(study, "measure", invented)
    monkeypatch.setattr(study.results, "append", lambda path, record: None)
    measured = []
    monkeypatch.setattr(study, "run", lambda points, *_: measured.extend(points) or 0)
    command("--out", tmp_path / "steps.jsonl", capsys=capsys)
    assert measured == gather(study.FILES[device], {}, {})
    assert {point.size for point in measured} == ({"tiny"} if device == "cpu" else {"small", "medium", "1b"})


def failing(at, error):
    """`invented`, but the point with this length raises."""

    def measure(point, rounds):
        if point.length == at:
            raise error
        return invented(point)

    return measure


def test_an_interrupt_loses_nothing(tmp_path, monkeypatch, capsys):
    out = tmp_path / "steps.jsonl"
    monkeypatch.setattr(study, "measure", failing(24, KeyboardInterrupt()))
    said = command("--lengths", "8", "16", "24", "32", "--out", out, expect=130, capsys=capsys)
    assert list(results.load(out)["length"]) == [8, 16]
    assert f"2 records appended to {out}\ninterrupted" in said


def test_a_point_that_fails_is_told_and_the_others_are_measured(tmp_path, monkeypatch, capsys):
    out = tmp_path / "steps.jsonl"
    monkeypatch.setattr(study, "measure", failing(16, RuntimeError("no kernel here\nand more")))
    said = command("--lengths", "8", "16", "24", "--out", out, expect=1, capsys=capsys)
    assert re.search(r"^\[2/3\] tiny .* 16, plain fp32 foreach: RuntimeError: no kernel here; about", said, re.M)
    assert "\n1 of 3 points failed\n" in said and "no kernel here\nand more\n" in said  # all of it to stderr
    assert list(results.load(out)["length"]) == [8, 24]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        RuntimeError("Triton Error [CUDA]: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_out_of_memory_is_a_record_without_times(error, wrapped, tmp_path, monkeypatch, capsys):
    def small_memory(training, rounds):
        if training.setup.attention == "sdpa":
            return {name: value for name, value in invented(points(GRID)[0]).items() if name in MEASURED}
        if not wrapped:
            raise error
        try:
            raise error
        except RuntimeError:
            raise ValueError("the capture was ended") from None

    monkeypatch.setattr(study, "measure_step", small_memory)
    out, options = tmp_path / "steps.jsonl", "--batches 1 --lengths 8 --attentions plain sdpa --rounds 5".split()
    said = command(*options, "--out", out, capsys=capsys)
    plain, sdpa = results.load(out).to_dict("records")
    assert plain["out_of_memory"] is True and sdpa["out_of_memory"] is False
    assert all(math.isnan(plain[name]) for name in MEASURED) and sdpa["step_ms"] > 0
    assert "plain fp32 foreach: out of memory; about" in said and plain["attention"] == "plain"
    assert [line.split()[-8] for line in said.splitlines() if re.match(r" *tiny +1 +8 ", line)][0] == "–"


def test_another_error_is_no_lack_of_memory(monkeypatch):
    monkeypatch.setattr(study, "Training", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.measure(points(GRID)[0])


def test_several_micro_batches_and_a_checkpoint_are_measured_like_all():
    grid = GRID | {"batches": 4, "lengths": 64}
    one, two = (study.measure(point, 5) for point in points(grid | {"accumulate": [1, 2]}))
    assert set(one) == set(two) == DESCRIBED | MEASURED
    assert (
        two["loss"] == pytest.approx(one["loss"], rel=1e-5) and two["forward_launches"] == 2 * one["forward_launches"]
    )
    assert two["peak_bytes"] < one["peak_bytes"] and two["state_bytes"] == one["state_bytes"]
    (checkpointed,) = (study.measure(point, 5) for point in points(grid | {"segments": 2}))
    assert checkpointed["loss"] == one["loss"] and checkpointed["launches"] > one["launches"]
    assert checkpointed["peak_bytes"] < one["peak_bytes"]


@pytest.mark.soak
def test_a_compiled_step_is_measured_too():
    grid = GRID | {"attention": "sdpa", "precision": "bf16-autocast", "segments": 1}
    eager, compiled = (study.measure(point, 5) for point in points(grid | {"compiled": [False, True]}))
    assert compiled["loss"] == pytest.approx(eager["loss"], rel=1e-3) and compiled["peak_bytes"] is None
    assert compiled["launches"] < eager["launches"] and compiled["forward_launches"] < eager["forward_launches"] / 3


def test_states_and_peak_of_a_step_on_a_cpu():
    grid = GRID | {"batches": 8, "lengths": 64, "optimizer": "fused"}
    (found,) = (study.measure(point, 5) for point in points(grid))
    parameters, steps = found["parameters"], 4 * 20  # AdamW counts the steps for each of 20 tensors
    assert found["state_bytes"] == 3 * 4 * parameters + steps + 2 * 8 * 8 * 64
    saved = sum(counts.saved_activations(SIZES["tiny"], 8, 64).values())
    loss = 2 * 4 * 256 * 8 * 64  # the gradients of log-softmax and logits
    assert found["peak_bytes"] == pytest.approx(3 * 4 * parameters + saved + loss, rel=0.01)


# Tables


def test_rates_and_the_share_of_the_datasheets_peak():
    records = [
        invented(point) | {"on": {"name": name}}
        for point in points(GRID | {"batches": [2, 4]})
        for name in ("NVIDIA H200", "some processor")
    ]
    rows = with_rates(as_frame(records))
    assert rows["tokens_per_s"].tolist() == pytest.approx([16e3] * 4)
    assert rows["mfu"][0] == pytest.approx(6e6 * 16e3 / 989e12) and rows["mfu"].isna().tolist() == [False, True] * 2
    head, *lines = as_text(study.table(as_frame(records))).splitlines()
    assert head.split()[:5] == ["size", "batch", "length", "setup", "seed"] and len(lines) == 4
    assert lines[1].split()[-5:] == ["–", "1", "500", "50%", "4.200"]


def test_the_rows_of_a_setup():
    rows = as_frame([invented(p) for p in points(GRID | {"attention": ["plain", "sdpa"], "compiled": [True, False]})])
    (row,) = of_setup(rows, Setup(attention="sdpa", compiled=True)).to_dict("records")
    assert (row["attention"], row["compiled"]) == ("sdpa", True)
    assert of_setup(rows, Setup(graph=True)).empty


@pytest.mark.parametrize("seconds, text", [(3.2, "about 3 s"), (99, "about 99 s"), (170, "about 3 min")])
def test_time_left_in_words(seconds, text):
    assert study.duration(seconds) == text


def test_the_committed_record_is_whole_and_says_where_it_is_from():
    if not results.path_for("transformer", "nvidia-h200").is_file():
        pytest.skip("not measured yet")
    record = study.load("nvidia-h200")
    assert record.attrs["damaged"] == [] and (record["on.machine"] == "NVIDIA H200").all()
    assert record[["on.driver", "on.torch", "on.triton", "on.commit", "on.time"]].notna().all().all()
    record = record[record["kind"] == "step"]
    done = record[record["out_of_memory"] == False]  # noqa: E712
    assert (done["step_p20_ms"] <= done["step_ms"]).all() and (done["step_ms"] <= done["step_p80_ms"]).all()
    assert (done["peak_bytes"] > done["state_bytes"]).all() and with_rates(done)["mfu"].between(0.01, 0.9).all()
    there = {tuple(row) for row in record[["size", "batch", "length", *grids.FIELDS]].itertuples(index=False)}
    missing = [
        str(point)
        for point in gather(study.FILES["cuda"], {}, {})
        if (point.size, point.batch, point.length, *dataclasses.astuple(point.setup)) not in there
    ]
    if missing:
        pytest.skip(f"not measured yet: {'; '.join(missing)}")


def test_the_formula_of_peaks_holds_on_the_recorded_gpu():
    """Eager steps of one dtype and without checkpoints, which is what `counts.step_peak` describes."""
    rows = study.load("nvidia-h200")
    eager = rows[(rows["kind"] == "step") & (rows["compiled"] == False) & (rows["segments"] == 0)]  # noqa: E712
    eager = eager[eager["precision"].isin(["fp32", "bf16"]) & (eager["graph"] == False)]  # noqa: E712
    assert len(eager) > 30
    for row in eager.itertuples():
        config = dataclasses.replace(SIZES[row.size], context=4096)
        itemsize = {"fp32": 4, "bf16": 2}[row.precision]
        peak = counts.step_peak(config, int(row.batch), int(row.length), itemsize, row.attention, row.optimizer)
        assert peak == pytest.approx(row.peak_bytes, rel=0.06), (row.size, row.batch, row.length, row.attention)


def test_on_a_gpu_the_kernels_time_is_a_share_of_the_step_as_it_was_timed(monkeypatch):
    """The profiler makes a step wait longer for its launches, and leaves its kernels what they are."""
    from labs_helpers.measure import trace

    events = [
        {"ph": "X", "cat": cat, "name": "x", "ts": ts, "dur": dur}
        for cat, ts, dur in [("cpu_op", 0, 50), ("kernel", 100, 400), ("kernel", 900, 600), ("cpu_op", 1900, 100)]
    ]
    monkeypatch.setattr(trace, "record", lambda function: trace.Trace(events, {}))

    class Model:
        setup, device, step = Setup(), torch.device("cuda"), None

    found = measure_step._kernels(Model, step_ms=1.25)
    assert found == {"launches": 2, "forward_launches": 2, "busy": pytest.approx(0.8), "gpu_ms": pytest.approx(1.0)}
    Model.device = torch.device("cpu")
    assert measure_step._kernels(Model, 1.25)["busy"] == pytest.approx(0.5)
    events[:] = [event for event in events if event["cat"] != "kernel"]
    assert set(measure_step._kernels(Model, 1.25).values()) == {None}


def test_two_steps_find_the_memory_of_many():
    point = {"config": SIZES["tiny"], "setup": Setup(), "batch": 2, "length": 16}
    many = measure_step.measure_step(Training(**point), rounds=5)
    few = measure_step.measure_memory(Training(**point))
    assert few == {name: many[name] for name in ("peak_bytes", "state_bytes")}
