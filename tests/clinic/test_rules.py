"""The reference rules diagnose every recorded job, and at least five of the six that came after them."""

from collections import defaultdict

import pytest

from labs_helpers.clinic.allocator import found_in
from labs_helpers.clinic.causes import CAUSES, HEALTHY
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.job import jobs
from labs_helpers.clinic.records import cause_of, fragmentation, known, recorded
from labs_helpers.clinic.rules import GUIDE, REFERENCE, Rule, diagnose

RECORDS = recorded()


def test_every_job_is_recorded_with_three_seeds_sick_and_cured():
    seeds = {record["seed"] for record in RECORDS}
    wanted = {
        (name, state, seed)
        for name, job in known().items()
        if not job.needs_gpu
        for state in (("sick", "cured") if job.part else ("sick",))
        for seed in seeds
    }
    assert len(seeds) == 3
    assert {(record["job"], record["state"], record["seed"]) for record in RECORDS} == wanted
    assert len(RECORDS) == len(wanted)


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if r["job"] in jobs()], ids=lambda r: f"{r['job']}-{r['state']}-{r['seed']}"
)
def test_the_reference_rules_diagnose_every_job(record):
    assert diagnose(record["findings"], REFERENCE) == cause_of(record)


@pytest.mark.parametrize("record", fragmentation("nvidia-h200"), ids=lambda r: f"{r['state']}-{r['seed']}")
def test_the_reference_rules_diagnose_fragmentation(record):
    assert diagnose(record["findings"], REFERENCE) == cause_of(record)
    assert ("refused" in record) == (record["state"] == "sick")


def test_the_reference_rules_diagnose_five_of_six_later_jobs():
    wrong = {
        r["job"] for r in RECORDS if r["job"] in jobs("later") and diagnose(r["findings"], REFERENCE) != cause_of(r)
    }
    assert len(wrong) <= 1


def test_the_guide_diagnoses_few():
    sick = [r for r in RECORDS if r["job"] in jobs() and r["state"] == "sick" and cause_of(r) != HEALTHY]
    right = {r["job"] for r in sick if diagnose(r["findings"], GUIDE) == cause_of(r)}
    assert 1 <= len(right) <= 5


def test_rules_speak_of_known_causes_and_findings():
    for rule in (*REFERENCE, *GUIDE):
        assert rule.cause in CAUSES
        assert {name for name, *_ in rule.conditions} <= set(MEANING)
    assert {rule.cause for rule in REFERENCE} == set(CAUSES) - {HEALTHY}
    on_gpus = found_in([defaultdict(lambda: 1)], limit=1)["findings"]
    assert set(on_gpus).union(*(record["findings"] for record in RECORDS)) == set(MEANING)


def test_the_first_rule_that_holds_decides():
    rules = [Rule("leak", (("growth", ">", 1), ("waits", "<", 2))), Rule("straggler", (("growth", ">", 0),))]
    assert diagnose({"growth": 2, "waits": 1}, rules) == "leak"
    assert diagnose({"growth": 2, "waits": 2}, rules) == "straggler"
    assert diagnose({"growth": 2}, rules) == "straggler", "a finding that nobody made fulfils no condition"
    assert diagnose({"growth": 0}, rules) == HEALTHY
    assert diagnose({}, [Rule("leak", ())]) == "leak"
