"""Test that the study measures on a CPU as well, with a tiny model, and that the engine makes the counted passes."""

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import frame
from labs_helpers.serving import study
from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.counting import count, workload
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.study import STUDY, attentions, batching, model_of, named, steps, table

FORMATS = ("bf16", "int8", "int4-32")


@pytest.fixture(scope="module")
def model():
    return model_of("tiny", 64, dtype=torch.float32)


def test_every_part_gives_records_that_the_table_shows(model, tmp_path):
    work = [(5, 3), (12, 9), (7, 1), (20, 5)]
    found = named(steps(model, 2, 30, 2, each=2), "tiny", "bf16")
    found += named(attentions(model, 2, 20, 32, 1, (16,)), "tiny", "bf16")
    found += named(batching(model, work, 2, 16, 8, 1), "tiny", "bf16")
    assert [record["kind"] for record in found] == ["step", "attention", "attention", "batching", "batching"]
    STUDY.keep(found, tmp_path, table=table)
    (file,) = tmp_path.glob("serving.*.jsonl")
    assert len(file.read_text().splitlines()) >= len(found)
    shown = table(frame(found))
    assert (shown["ms"] > 0).all() and shown["GB/s"].notna().tolist() == [True] + [False] * 4
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


@pytest.mark.skipif(not this_machine().interpreted, reason="needs a machine without a GPU")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit):
        study.main([])
    assert "serving is measured on a GPU" in capsys.readouterr().err
