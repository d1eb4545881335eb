"""Test that each submission of a generated class gets its points, even if grading was interrupted."""

import signal

import pytest

from labs_helpers.grading.jails.bubblewrap import why_not
from tests.grading.broken_files import FILES, make_class
from tests.grading.interrupted import faults, grade
from tests.grading.made_class import SEED

OF_16 = ["several", "own_helpers", "syntax_error", "renamed", "deleted", "doubled", "reordered", "edited_metadata",
         "older_version", "magics"]  # fmt: skip
STOPS = [(3, signal.SIGINT), (6, signal.SIGINT), (9, signal.SIGKILL)]


@pytest.mark.soak
@pytest.mark.timeout(1300)
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_class_of_16_that_is_interrupted_and_killed_gets_its_points(tmp_path):
    made = make_class(tmp_path, OF_16, list(FILES), seed=3)
    run = grade(tmp_path, STOPS, ["--seed", str(SEED)], timeout=1200)
    assert faults(made, run, tmp_path) == []
    assert not any("Traceback" in log for log in run.log)
    assert len(run.log) == len(STOPS) + 1 and run.status == 3  # cells that were deleted are to be looked at
