"""The job on two nodes trains what the program on two ranks trains, and a slow link makes its sick placement slow."""

import sys

import cloudpickle
import pytest

from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.training import Training
from labs_helpers.launch.pretend_nodes import can_pretend, pretend_nodes
from tests import real_ranks
from tests.clinic import clinic_cases

cloudpickle.register_pickle_by_value(clinic_cases)
cloudpickle.register_pickle_by_value(sys.modules[__name__])
JOB = jobs()["across_nodes"]


class Plain(Training):
    batch = JOB.sick.batch


def test_the_placement_changes_no_loss():
    sick, cured = (sorted(real_ranks.run(clinic_cases.losses, 4, program)) for program in (JOB.sick, JOB.cured))
    assert sick == cured and len(sick[0]) == 2
    assert sick[0] == sick[1] != sick[2] == sick[3]  # the ranks of a pair read the same data
    plain = sorted(real_ranks.run(clinic_cases.losses, 2, Plain))
    assert sick[::2] == [pytest.approx(one, rel=1e-5) for one in plain]


@pytest.mark.soak
@pytest.mark.skipif(bool(can_pretend()), reason=f"no nodes can be pretended here: {can_pretend()}")
def test_over_a_slow_link_the_cure_makes_steps_faster():
    with pretend_nodes(2, rate="100mbit") as nodes:
        by_rank = nodes.run_torch(clinic_cases.fastest_steps, 2, (JOB.sick, JOB.cured), timeout=120)
    sick, cured = map(max, zip(*by_rank, strict=True))
    assert sick > 2 * cured
