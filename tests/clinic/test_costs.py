"""What instruments cost is measured on steps that they watch, on the slowest rank, in turns."""

import pytest

from labs_helpers.clinic import costs
from labs_helpers.clinic.examine import INSTRUMENTS
from labs_helpers.clinic.records import recorded_costs
from tests import real_ranks


def test_each_instrument_watches_steps_of_its_own():
    by_rank = real_ranks.run(costs._on_rank, 2, 1, False)
    for samples in by_rank:
        assert list(samples) == [costs.NOTHING, *INSTRUMENTS]
        assert all(len(seconds) == 1 and 0 < seconds[0] < 60 for seconds in samples.values())


def test_samples_of_all_starts_count_on_the_slowest_rank(monkeypatch):
    sizes = []

    def started(function, ranks, rounds, recorder, timeout, env):
        sizes.append(env["TORCH_FR_BUFFER_SIZE"])
        name = costs.RECORDER if recorder else costs.NOTHING
        return [{name: [rank + 0.1 * len(sizes)]} for rank in range(ranks)]

    monkeypatch.setattr(costs, "run_on_ranks", started)
    nothing, recorder = costs.costs()
    assert sizes == ["0", "2000"] * 3
    assert (nothing["instrument"], nothing["runs"]) == (costs.NOTHING, 3)
    assert nothing["step_ms"] == pytest.approx(1300) and recorder["step_ms"] == pytest.approx(1400)


def test_the_recorded_costs_are_relative_to_steps_that_nothing_watches():
    rows = recorded_costs()
    assert list(rows.index) == [costs.NOTHING, *INSTRUMENTS, costs.RECORDER]
    assert rows["relative"][costs.NOTHING] == 1
    assert (rows["step_p20_ms"] <= rows["step_ms"]).all() and (rows["step_ms"] <= rows["step_p80_ms"]).all()
