"""Test that the study's ranks are on the right nodes, train the same model, and send what the formula says; records
are kept."""

import math

import pytest

from labs_helpers.collectives.cost_model import Costs
from labs_helpers.collectives.nodes_study import terms as allreduce_terms
from labs_helpers.launch.flavour import BACKGROUND_SUMS
from labs_helpers.launch.pretend_nodes import can_pretend
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from labs_helpers.tensor_parallel import study
from labs_helpers.tensor_parallel.gpu_candidates import candidates
from labs_helpers.tensor_parallel.placement import axes, nodes_of_groups
from labs_helpers.tensor_parallel.predict import collective_seconds, group_terms, predict
from labs_helpers.tensor_parallel.records import select, variant_of
from labs_helpers.tensor_parallel.variants import Variant
from tests.communication.test_mesh import lines
from tests.tensor_parallel import study_cases, study_records

INSIDE, CABLE = Costs(1e-6, 1e-10, 1.5e-10, 8e-11), Costs(1e-5, 8e-9)


CASES = {
    name: getattr(study_cases, name) for name in ("placements", "race", "race_of_different_losses", "count", "gpu_race")
}


def of_case(results, name):
    return [of_rank[name] for of_rank in results]


@pytest.mark.parametrize("dp, tp", [(8, 1), (4, 2), (2, 4), (1, 8)])
def test_groups_are_on_few_nodes_inside_and_on_many_across(dp, tp):
    for placement in ("inside", "across"):
        sizes = axes(dp, tp, placement)
        for name, nodes in nodes_of_groups(dp, tp, placement, 4).items():
            of_groups = [[rank // 4 for rank in ranks] for ranks in lines(sizes, name)]
            assert {len(set(group)) for group in of_groups} == {nodes}
            assert all(group == sorted(group) for group in of_groups)  # in order of the nodes, as predictions take it
    assert nodes_of_groups(dp, tp, "inside", 4)["tp"] == max(1, tp // 4)
    assert nodes_of_groups(dp, tp, "across", 4)["tp"] == min(2, tp)
    assert nodes_of_groups(dp, tp, "across", 8) == {"dp": 1, "tp": 1}


def test_another_placement_is_refused():
    with pytest.raises(ValueError, match="placement is 'near', not one of inside, across"):
        axes(2, 2, "near")


def test_ranks_are_placed_and_their_hosts_are_asked(results):
    found = of_case(results, "placements")
    assert [of_rank["inside"] for of_rank in found][:2] == [([0, 1], [0, 2]), ([0, 1], [1, 3])]
    assert [of_rank["across"] for of_rank in found][:2] == [([0, 2], [0, 1]), ([1, 3], [0, 1])]
    assert all("2 × 2 across: the tensor-parallel group of rank" in of_rank["said"] for of_rank in found)
    assert "should be on 2 nodes, but is on" in found[3]["said"]


def test_all_variants_are_timed_and_have_one_loss(results):
    records, *others = of_case(results, "race")
    assert others == [[], [], []] and [variant_of(record) for record in records] == study_cases.variants()
    losses = {record["loss"] for record in records}
    assert max(losses) - min(losses) < 1e-5 and 3 < min(losses) < 4  # near log 32
    for record in records:
        assert record["tp_nodes"] == record["dp_nodes"] == 1 and len(record["step_ms_by_rank"]) == 4
        assert max(record["step_ms_by_rank"]) == record["step_ms"] > 0 and record["alone_ms"] > 0
        assert sum(record[f"{phase}_ms"] for phase in ("forward", "backward", "average")) > 0.5 * record["step_ms"]
        assert (record["tp_ms"] > 0) == (record["tp"] > 1) and (record["dp_ms"] > 0) == (record["dp"] > 1)


def test_a_loss_that_differs_is_not_timed(results):
    for found in of_case(results, "race_of_different_losses"):
        assert "4 × 1: the loss is" in found["said"]


def test_what_is_counted_is_what_the_formula_says_and_memory_shrinks(results):
    records, *_ = of_case(results, "count")
    for record in records:
        for what in ("bytes", "messages"):
            for group in ("tp", "dp"):
                assert record[f"{group}_{what}_by_rank"] == [record[f"{group}_{what}_by_formula"]] * 4, record
        assert record["gradient_bytes"] == record["parameter_bytes"] == record["optimizer_bytes"] / 2
        assert (record["buckets"] > 1) == record["overlap"]
    of = {str(variant_of(record)): record for record in records}
    assert of["1 × 4"]["parameter_bytes"] < 0.3 * of["4 × 1"]["parameter_bytes"]
    sequence, plain = (of[name]["activation_bytes"] for name in ("2 × 2 inside sequence-parallel", "2 × 2 inside"))
    assert 0 < sequence < plain


def test_the_race_on_gpus_runs_over_gloo(results):
    (records, said, table), *others = of_case(results, "gpu_race")
    assert all(other[0] == records for other in others)
    assert [line.partition(":")[0] for line in said] == ["4 × 1", "2 × 2", "1 × 4"]
    steps = [record for record in records if record["kind"] == "gpu_step"]
    failed = [record for record in steps if "error" in record]
    assert {record["attention"] for record in failed} == {"none such"} and "KeyError" in failed[0]["error"]
    ran = [record for record in steps if "error" not in record]
    losses = [record["loss"] for record in ran if record["library"] != "compute alone"]
    assert max(losses) - min(losses) < 1e-5
    assert {(r["library"], r["sequence_parallel"]) for r in ran if r["tp"] == 4} >= {
        ("ours", False), ("parallelize_module", False), ("ours", True), ("parallelize_module", True),
    }  # fmt: skip
    for record in ran:
        assert record["step_ms"] > 0 and record.get("tp_payload") == record.get("tp_payload_by_formula")
    assert {(r["group"], r["ranks"], r["bytes"]) for r in records if r["kind"] == "all_reduce"} >= {("tp", 4, 4096)}
    assert "parallelize_module" in table and "KeyError" in table


def test_candidates_of_a_layout():
    assert len(candidates(2, 1, ["sdpa", "flash"], [False, True])) == 6  # nobody to share a model with
    both = candidates(2, 2, ["sdpa", "flash"], [False, True])
    assert len(both) == len(set(both)) == 8 + 2 + 4 + 2 + 2
    assert {one.library for one in both if one.whole} == {"ours"}  # theirs where its blocks cannot be compiled apart
    assert not any(candidate.average for candidate in candidates(1, 4, ["sdpa"], [False]))


def test_a_group_that_crosses_has_its_messages_on_the_cable():
    for algorithm in ("ring", "rabenseifner"):
        assert group_terms("all_reduce", algorithm, 8, 2) == allreduce_terms(algorithm, 4, 2)
    here, between = group_terms("all_gather", "ring", 4, 2)
    assert (here.messages, here.sent) == (0, 0) and (between.messages, between.sent) == (3, 0.75)
    assert group_terms("reduce_scatter", "ring", 4, 1)[1].sent == 0


def test_groups_that_talk_at_once_share_the_cable():
    """Four pairs of ranks across two nodes: each node sends four times what one pair would."""
    n = 2**22
    pairs = collective_seconds("all_gather", n, 2, 2, 4, INSIDE, CABLE)
    alone = collective_seconds("all_gather", n, 2, 2, 1, INSIDE, CABLE)
    assert pairs - alone == pytest.approx(3 * n / 2 * CABLE.beta)
    assert collective_seconds("all_gather", n, 4, 1, 4, INSIDE, None) == pytest.approx(
        3 * INSIDE.alpha + n * (0.75 * INSIDE.beta + 0.25 * INSIDE.copy)
    )
    assert collective_seconds("all_reduce", 8, 6, 2, 3, INSIDE, CABLE) == pytest.approx(10 * CABLE.alpha, rel=0.01)


def test_a_link_without_records_is_refused():
    rows = frame(study_records.invented())
    with pytest.raises(ValueError, match="no records over 3 Gb/s"):
        predict(rows, rows[rows["kind"] == "step"].iloc[0].to_dict() | {"link": "3 Gb/s"})


@pytest.mark.skipif(bool(can_pretend()), reason=f"no nodes can be pretended here: {can_pretend()}")
@pytest.mark.soak  # collectives/test_nodes_study.py has a race over a link
def test_steps_over_a_link(monkeypatch):
    monkeypatch.setattr(study, "RANKS_PER_NODE", 2)
    variants = [Variant(4, 1), Variant(2, 2), Variant(2, 2, "across")]
    rows = frame(study.measure("1gbit", rounds=1, variants={8: variants, 4: variants[:1]}, config=study_cases.tiny()))
    assert set(rows["asked"]) == {"1gbit"} and set(rows["kind"]) == {"ping_pong", "local", "step", "link"}
    steps = select(rows, "step", length=8)
    assert list(zip(steps["tp_nodes"], steps["dp_nodes"], strict=True)) == [(1, 2), (1, 2), (2, 1)]
    assert rows["on.mpi_settings"].iloc[0] == BACKGROUND_SUMS
    shown = study.table(rows)
    assert list(shown["tokens"]) == [64, 64, 64, 32] and all(map(math.isfinite, shown["off"]))


def test_records_are_kept_link_by_link(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path))
    monkeypatch.setenv("LABS_DEVICE", "cpu")
    monkeypatch.setattr(study, "can_pretend", lambda: "")
    invented, asked = study_records.invented(), iter(study_records.LINKS)

    def measure(rate, shared, rounds):
        kept = [len(results.load(path)) for path in tmp_path.glob("*.jsonl")]
        measured.append((rate, shared, rounds, *kept))
        name = next(asked)
        return [{key: value for key, value in r.items() if key != "on"} for r in invented if r["link"] == name]

    monkeypatch.setattr(study, "measure", measure)
    measured = []
    study.main([])
    numbers = [sum(record["link"] == link for record in invented) for link in study_records.LINKS]
    assert measured == [("1gbit", False, 5), (None, False, 5, numbers[0]), (None, True, 5, sum(numbers[:2]))]
    (path,) = tmp_path.glob("tensor-parallel.*-core-cpu.jsonl")
    assert len(results.load(path)) == sum(numbers)
    said = capsys.readouterr().out
    assert "[3/3] shared memory, 5 rounds" in said and "2 × 4 across" in said and "+0%" in said
    asked, measured = iter(study_records.LINKS), []
    study.main(["--quick"])
    assert len(results.load(path)) == sum(numbers) and measured[0][2] == 2


def test_where_it_cannot_be_measured_it_says_why(monkeypatch, capsys):
    monkeypatch.setattr(study, "can_pretend", lambda: "only root may make network namespaces")
    for arguments, said in (([], "only root may make"), (["--rounds", "0"], "--rounds is 0")):
        with pytest.raises(SystemExit):
            study.main(arguments)
        assert said in capsys.readouterr().err


def test_a_candidate_with_other_gradients_is_not_timed():
    from labs_helpers.tensor_parallel.gpu_race import mark_disagreements

    def record(library, loss, norm, average=False):
        return {"library": library, "loss": loss, "gradient_norm": norm, "average": average}

    records = [
        record("ours", 2.0, 10.0),
        record("ours", 2.0, 7.0, average=True),
        record("compute alone", 1.0, 3.0),
        record("parallelize_module", 2.0, 5.0),
    ]
    mark_disagreements(records, (1e-4, 1e-3))
    assert ["error" in one for one in records] == [False, False, False, True]
    assert "gradient_norm is 5 instead of 10" in records[3]["error"]
