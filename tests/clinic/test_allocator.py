"""The findings about CUDA's caching allocator, from the numbers that it reports."""

import pytest

from labs_helpers.clinic import study
from labs_helpers.clinic.allocator import found_in
from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.rules import REFERENCE, diagnose
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.measure.machine import has_gpu

JOB = jobs("gpu")["fragmentation"]


def stats(reserved, allocated, split, retries, failed=0):
    peaks = {"reserved": reserved, "allocated": allocated, "inactive_split": split}
    counts = {"num_alloc_retries": retries, "num_ooms": failed}
    return {f"{name}_bytes.all.peak": nbytes for name, nbytes in peaks.items()} | counts


def test_findings_are_the_highest_peaks_and_the_last_counts():
    found = found_in([stats(700, 400, 20, 0), stats(990, 750, 300, 2), stats(950, 740, 100, 3)], limit=1000)
    assert found["findings"] == {
        "peak bytes": 750, "headroom": 0.25, "reserved bytes": 990, "split bytes": 300, "refused requests": 3,
        "out of memory": 0,
    }  # fmt: skip
    assert not set(found["findings"]) - set(MEANING)
    assert found["steps"] == {"reserved": [700, 990, 950], "allocated": [400, 750, 740]}
    assert diagnose(found["findings"], REFERENCE) == "fragmentation"


@pytest.mark.parametrize(
    "last", [stats(800, 750, 40, 0), stats(990, 970, 30, 3)], ids=["nothing was refused", "the memory is full"]
)
def test_a_reserve_or_a_full_memory_is_no_fragmentation(last):
    assert diagnose(found_in([last], limit=1000)["findings"], REFERENCE) == HEALTHY


def test_sequences_get_longer_and_the_cure_gives_all_batches_one_length():
    seen = {}
    for seed in (1, 2):
        for variant in (JOB.sick, JOB.cured):
            job = type("Small", (variant,), {"batch": 1})(SilentCommunication(0, 1), seed)
            forward, lengths = job.forward, seen.setdefault((variant, seed), [])
            job.forward = lambda x, forward=forward, lengths=lengths: lengths.append(x.shape[1]) or forward(x)
            job.run(8)
    for (variant, _), lengths in seen.items():
        assert lengths == ([64] * 8 if variant is JOB.cured else sorted(lengths))
    assert len({tuple(lengths) for lengths in seen.values()}) == 3
    assert all(lengths[0] < 64 for (variant, _), lengths in seen.items() if variant is JOB.sick)


@pytest.mark.skipif(has_gpu(), reason="here it would run")
def test_without_a_gpu_the_study_leaves_it_out_and_says_why(capsys, tmp_path):
    study.main(["--jobs", "fragmentation", "--out", str(tmp_path / "clinic.jsonl")])
    assert capsys.readouterr().out.startswith("fragmentation is left out: it is about CUDA's caching allocator")
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
@pytest.mark.skipif(not has_gpu(), reason="only CUDA has this allocator")
def test_on_a_gpu_the_job_is_refused_memory_and_its_cure_is_not():
    sick, cured = study.examined(["fragmentation"], seed=7)
    assert diagnose(sick["findings"], REFERENCE) == "fragmentation" and "refused" in sick
    assert diagnose(cured["findings"], REFERENCE) == HEALTHY and "refused" not in cured
