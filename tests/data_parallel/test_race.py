"""Test the race of wrappers and stages against PyTorch's on two gloo ranks, and its table and figure."""

import cloudpickle
import pytest

from labs_helpers.data_parallel.charts import draw_race, race_table
from labs_helpers.data_parallel.race import profile
from labs_helpers.measure.records import frame
from labs_helpers.measure.written_trace import trace
from tests import real_ranks
from tests.data_parallel import race_cases
from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(race_cases)


@pytest.fixture(scope="module")
def raced():
    found = real_ranks.run(on_ranks.run_cases, 2, {"race": race_cases.race})
    for of_rank in found:
        assert not isinstance(of_rank["race"], str), of_rank["race"]
    assert found[0] == found[1]
    return found[0]["race"]


def test_everybody_takes_part_and_trains_the_same(raced):
    records, _ = raced
    names = {record["name"] for record in records}
    assert {"NaiveDDP", "FlatDDP", "OverlappedDDP", "BucketedDDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"} < names
    assert {"DistributedDataParallel", "ZeroRedundancyOptimizer", "FSDP2"} < names
    for record in records:
        if record["name"] not in ("fails", "other"):
            assert "error" not in record and 0 < record["step_p20_ms"] <= record["step_ms"] <= record["step_p80_ms"]


def test_errors_and_other_losses_are_told_and_not_timed(raced):
    records, table = raced
    errors = {record["name"]: record["error"] for record in records if "error" in record}
    assert errors["fails"] == "ValueError: no" and "the first one's" in errors["other"] and len(errors) == 2
    assert all("step_ms" not in record for record in records if "error" in record)
    assert "ValueError: no" in table and "× theirs" not in table


def test_table_and_figure(raced):
    rows = frame([record | {"on": {"machine": "M", "name": "M", "time": "t"}} for record in raced[0]])
    table = race_table(rows, "wrappers", compiled=False).set_index("candidate")
    assert table.loc["NaiveDDP", "hidden"] == 0 and table.loc["no synchronisation", "hidden"] == 1
    theirs = table[table.index.str.startswith("DDP")]
    assert (theirs["× PyTorch's best"] == 1).all() and "fails" not in table.index
    assert len(draw_race(rows, "shards", compiled=False).axes) == 1
    with pytest.raises(ValueError, match="no records of the race's heat 'wrappers'"):
        race_table(rows, "wrappers", compiled=True)


def test_a_profile_is_of_those_asked_for_and_the_floor(raced):
    found = profile.table(frame(raced[0]))
    assert found["candidate"].str.split("(").str[0].tolist() == ["no synchronisation", "FSDP2"]
    assert (found["launches"] > 0).all() and (found["NCCL ms"] == 0).all()  # gloo has no kernels


def test_a_step_s_time_goes_to_computing_to_what_nothing_hides_and_to_waiting():
    events = trace(
        """op aten::mm 0+2 #1 > launch 1+1 =1 > kernel gemm 10+10 @7
        op all_gather 3+2 #2 > launch 4+3 =2 > kernel ncclDevKernel_AllGather 15+15 @9
        op aten::mm 8+2 #3 > launch 9+1 =3 > kernel gemm 41+10 @7"""
    )
    found = profile.summary(events)
    assert found == pytest.approx(
        {"traced_ms": 0.05, "nccl_ms": 0.015, "exposed_nccl_ms": 0.01, "idle_ms": 0.02, "launched_ms": 0.008,
         "launches": 3, "launch_us": 1}
    )  # fmt: skip
    assert profile.summary([]) == {}
