"""The race against PyTorch's schedules on two gloo ranks, its predictions, and its records."""

import cloudpickle
import pytest

from labs_helpers.pipeline.race.passes import Passes, own_work, predicted_peaks, times_of
from labs_helpers.pipeline.records import timeline
from labs_helpers.pipeline.schedules import gpipe, one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import Times
from tests import real_ranks
from tests.pipeline import race_cases
from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(race_cases)


@pytest.fixture(scope="module")
def raced():
    found = real_ranks.run(on_ranks.run_cases, 2, {"race": race_cases.race})
    for of_rank in found:
        assert not isinstance(of_rank["race"], str), of_rank["race"]
    assert found[0] == found[1]
    return found[0]["race"]


def test_everybody_takes_part_and_computes_the_same_loss(raced):
    records, _ = raced
    races = [record for record in records if record["kind"] == "race"]
    good = [record for record in races if record["name"] not in ("fails", "other")]
    assert [record["library"] for record in good] == ["PyTorch"] * 5 + ["ours"] * 7
    for record in good:
        assert "error" not in record, record
        assert 0 < record["step_p20_ms"] <= record["step_ms"] <= record["step_p80_ms"]
        assert record["loss"] == pytest.approx(good[0]["loss"], rel=1e-4)


def test_our_candidates_have_a_prediction_and_a_timeline(raced):
    records, _ = raced
    ours = [record for record in records if record["kind"] == "timeline"]
    assert len(ours) == 7
    for record in ours:
        drawn, kinds = timeline(record), 3 if record["name"] == "ZB-H1" else 2
        assert drawn.ranks == 2
        assert len(drawn.bars) == 4 * 2 * record["chunks"] * kinds
        assert 0 < record["own_work_ms"] <= record["predicted_ms"]


def test_errors_and_other_losses_are_told_and_not_timed(raced):
    records, table = raced
    errors = {record["name"]: record["error"] for record in records if "error" in record}
    assert errors["fails"] == "ValueError: no"
    assert "the first one's" in errors["other"]
    assert len(errors) == 2
    assert all("step_ms" not in record for record in records if "error" in record)
    assert "ValueError: no" in table


PEAK = {"F": 110, "B": 20, "I": 50, "W": 5}
STAGE = Passes({"F": 1.0, "B": 2.0, "I": 1.25, "W": 0.75}, stash=100, split=130, peak=PEAK, held=1000)


def test_predicted_memory_counts_stashes_and_the_pass_under_way():
    both = [STAGE, STAGE]
    assert predicted_peaks(gpipe(2, 4), both) == [1000 + 4 * 100 + 20] * 2
    assert predicted_peaks(one_f_one_b(2, 4), both) == [1000 + 2 * 100 + 20, 1000 + 100 + 20]
    # Rank 1 delays each W by one micro-batch: a split stash stays during the next forward pass and I.
    assert predicted_peaks(zero_bubble(2, 4), both) == [1000 + 2 * 100 + 50, 1000 + 130 + 100 + 50]


def test_own_work_is_that_of_the_busiest_rank():
    times = times_of([STAGE, STAGE], transfer=0.1)
    assert own_work(one_f_one_b(2, 4), times) == pytest.approx(12)
    assert own_work(one_f_one_b(2, 4), Times([1, 2], backward=[2, 5])) == pytest.approx(28)
