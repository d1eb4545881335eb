"""Each job has the symptom that it claims, in counts that a busy machine does not change, and its cure ends it."""

import sys

import cloudpickle
import pytest

from labs_helpers.clinic.autopsy import autopsy, explain, findings
from labs_helpers.clinic.causes import CAUSES, HEALTHY
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.records import known
from labs_helpers.clinic.training import Training
from labs_helpers.launch.failure import RanksFailed
from tests import real_ranks
from tests.clinic import clinic_cases

cloudpickle.register_pickle_by_value(clinic_cases)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SYMPTOMS = {  # job → (finding, whether it tells the sick job from the cured one)
    "item_every_step": ("waits", lambda sick, cured: sick > 20 and cured < 1),
    "print_every_step": ("lines printed", lambda sick, cured: sick >= 1 and cured == 0),
    "tiny_batch": ("FLOPs", lambda sick, cured: 8 * sick == cured),
    "all_reduce_per_parameter": ("collectives", lambda sick, cured: sick == 20 and cured == 1),
    "across_nodes": ("bytes between nodes", lambda sick, cured: sick > 5 * cured > 0),
    "straggler": ("spread of FLOPs", lambda sick, cured: sick >= 4 and cured == 1),
    "leak": ("growth", lambda sick, cured: sick > 0.03 and cured == 0),
    "no_checkpointing": ("headroom", lambda sick, cured: sick < 0 < cured),
    "full_memory": ("headroom", lambda sick, cured: 0 < sick < 0.1 and sick == cured),
    "stuck_loss_scale": ("steps without a change", lambda sick, cured: sick == 1 and cured == 0),
    "recompiling": ("compilations", lambda sick, cured: sick >= 0.4 and cured == 0),
    "diverging": ("replicas that differ", lambda sick, cured: sick == 1 and cured == 0),
    "same_shuffle": ("shared data", lambda sick, cured: sick == 0.5 and cured == 0),
    "nan_check": ("waits", lambda sick, cured: sick > 15 and cured < 1),
    "step_in_graph": ("compilations", lambda sick, cured: sick > 0.2 and cured == 0),
    "first_part": ("shared data", lambda sick, cured: sick == 0.5 and cured == 0),
    "kept_logits": ("growth", lambda sick, cured: sick > 0.01 and cured == 0),
    "own_weights": ("replicas that differ", lambda sick, cured: sick == 15 and cured == 0),
    "evaluating_rank": ("spread of FLOPs", lambda sick, cured: sick > 2 and cured == 1),
}
TIMED = [name for name, job in known().items() if job.slower or job.waits]
# Judged by time, in soak, by an autopsy, or on a GPU.
OTHERWISE = {"healthy", "starved_loader", "deadlock", "dead_rank", "fragmentation"}


def test_every_job_is_here():
    assert set(SYMPTOMS) | OTHERWISE == set(known())
    assert {job.cause for job in known().values()} == set(CAUSES)
    assert len([job for job in jobs().values() if job.part]) >= 12
    assert [job.cause for job in jobs().values()].count(HEALTHY) == 2
    assert len(jobs("later")) == 6


def test_a_job_differs_from_the_program_in_one_part_and_its_cure_puts_it_back():
    for name, job in known().items():
        if job.part and job.other is None:
            assert getattr(job.cured, job.part) == getattr(Training, job.part), name
        assert job.cured.__mro__[-1] is object and issubclass(job.cured, job.sick)


def of_folder(name):
    return pytest.param(name, marks=[pytest.mark.soak] if name in jobs("later") else [])


@pytest.mark.parametrize("name", [of_folder(name) for name in SYMPTOMS])
def test_a_job_has_its_symptom_and_loses_it(name):
    found, *same = real_ranks.run(clinic_cases.examine, known()[name].sick.ranks, [name])
    assert all(of_rank == found for of_rank in same)
    finding, tells = SYMPTOMS[name]
    sick, cured = (found[name, state][finding] for state in ("sick", "cured"))
    assert tells(sick, cured), (finding, sick, cured)
    assert not set(found[name, "sick"]) - set(MEANING)


@pytest.mark.soak
@pytest.mark.parametrize("name", TIMED)
def test_times_show_a_job_sick_and_its_cure_effective(name):
    job = known()[name]
    (slower, waits), _ = real_ranks.run(clinic_cases.timed, 2, name)
    assert slower > job.slower
    assert waits["sick"] > job.waits
    assert not job.waits or waits["cured"] < job.waits


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_dead_rank_leaves_no_report(seed):
    reports = autopsy(jobs()["dead_rank"].sick, seed)
    ((survivor, report),) = reports.items()
    assert findings(reports, 2) == {"dead ranks": 1, "waiting ranks": 0}
    assert "RuntimeError" in report.state
    assert explain(reports, 2).startswith(f"rank {1 - survivor} has left no report: it was killed")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_an_autopsy_names_who_waits_where_and_for_whom(seed):
    reports = autopsy(jobs()["deadlock"].sick, seed)
    (waiting,) = [rank for rank, report in reports.items() if report.state == "waiting"]
    assert findings(reports, 2) == {"dead ranks": 0, "waiting ranks": 1}
    told = explain(reports, 2)
    assert f"rank {waiting}: waiting in average_gradients, line" in told
    assert f"rank {1 - waiting} never began gloo:all_reduce number 6, 459,392 elements" in told


class CannotStart(Training):
    def make_loader(self):
        raise OSError("the data are not there")


@pytest.mark.soak
def test_a_job_that_cannot_start_is_no_dead_rank():
    with pytest.raises(RanksFailed, match="the data are not there"):
        autopsy(CannotStart, 1)


def test_a_healthy_job_comes_to_its_end():
    reports = autopsy(jobs()["deadlock"].cured, 1)
    assert findings(reports, 2) == {"dead ranks": 0, "waiting ranks": 0}
    assert explain(reports, 2) == "rank 0: done\nrank 1: done"
