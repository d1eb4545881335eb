"""Test that the study measures on a CPU as well, with a tiny model, and that the engine makes the counted passes."""

from types import SimpleNamespace

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import frame
from labs_helpers.serving import study
from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.counting import count, workload
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.measurements import agreements, attentions, batching, model_of, speculation, steps
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.study import STUDY, measured, named, table

FORMATS = ("bf16", "int8", "int4-32")


@pytest.fixture(scope="module")
def model():
    return model_of("tiny", 64, dtype=torch.float32)


def test_every_part_gives_records_that_the_table_shows(model, tmp_path):
    work = [(5, 3), (12, 9), (7, 1), (20, 5)]
    found = steps(model, 2, 30, 2, each=2) + attentions(model, 2, 20, 32, 1, (16,))
    found += batching(model, work, 2, 16, 8, 1) + agreements(model, work, 3, 8)
    found += speculation(model, model, 2, 20, 2, 1, each=3)
    found = named(found, "tiny", "bf16")
    kinds = ["step", "attention", "attention", "batching", "batching", "agreement", "speculation"]
    assert [record["kind"] for record in found] == kinds
    STUDY.keep(found, tmp_path, table=table)
    (file,) = tmp_path.glob("serving.*.jsonl")
    assert len(file.read_text().splitlines()) >= len(found)
    shown = table(frame(found))
    assert (shown["ms"][:5] > 0).all() and shown["GB/s"].notna().tolist() == [True] + [False] * 6
    assert found[6]["accepted"] > 0.99 and found[5]["equal"] == 4 and found[5]["wrong"] == 0
    assert found[1]["ratio"] == 1 and found[3]["predicted_ratio"] > 1


def test_a_quantized_model_counts_the_bytes_of_its_codes(model):
    found = {weights: steps(model_of("tiny", 64, weights, torch.float32), 1, 30, 1, each=2)[0] for weights in FORMATS}
    read = {weights: record["weight_bytes"] for weights, record in found.items()}
    output = model.embedding.weight.nbytes  # which stays as it is, and is the embedding's
    assert read["int8"] - output < (read["bf16"] - output) / 3.5 and read["int4-32"] < read["int8"]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_engine_makes_the_passes_that_were_counted(model, static, ahead):
    work = workload(12, (10, 30), (5, 30), seed=3)
    counts = count(work, Blocks(8, 8, sharing=False), 4, 16, static)
    engine = Engine(model, blocks=8, block_size=8, slots=4, budget=16, static=static, ahead=ahead, sharing=False)
    for prompt, output in work:
        engine.add([1] * prompt, SamplingParameters(output, temperature=0))
    while engine.has_work():
        engine.step()
    now = engine.statistics()
    assert (now.steps, now.preemptions) == (counts.passes, counts.preemptions) and counts.preemptions > 0
    assert 0 < counts.waste < 0.5


def test_the_workload_is_the_one_described():
    work = workload(20_000)
    prompts, outputs = (torch.tensor(lengths).double() for lengths in zip(*work, strict=True))
    assert (prompts.min(), prompts.max(), outputs.min(), outputs.max()) == (100, 1000, 16, 1024)
    assert abs(prompts.mean() - 550) < 10
    assert abs(outputs.log().mean().exp() - 128) < 4
    assert work == workload(20_000) != workload(20_000, seed=1)


def test_the_options_reach_the_measurements(model, monkeypatch):
    given = SimpleNamespace(
        batches=[1, 3], used=9, rounds=4, capacity=64, slots=2, requests=5, budget=7, size="tiny", weights="bf16"
    )
    monkeypatch.setattr(study, "model_of", lambda *size, vocabulary: (*size, vocabulary))
    for name in ("steps", "attentions", "agreements", "speculation", "batching"):
        monkeypatch.setattr(study, name, lambda model, *rest, name=name: [name, *rest])
    found = [records for part in study.PARTS for records in measured(part, model, given)]
    assert found[:4] == [["steps", b, 9, 4] for b in (1, 3)] + [["attentions", b, 9, 64, 4] for b in (1, 3)]
    assert [len(found[4][1]), *found[4][2:]] == [32, 2, 8] and found[-1] == ["batching", workload(5), 2, 7, 8, 2]
    assert found[5:7] == [["speculation", ("small", 64, 256), 1, 9, count, 4] for count in (2, 4)]


@pytest.mark.skipif(not this_machine().interpreted, reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit):
        study.main([])
    assert "serving is measured on a GPU" in capsys.readouterr().err
