"""Test that a rank that is stopped, dies, stalls or fails ends the others with its name, and how ranks are found."""

import os
import re
import sys
from pathlib import Path

import pytest
import torch

from labs_helpers.launch.process import run
from labs_helpers.launch.world import connect, environment, first_host

ROOT = Path(__file__).parents[2]
SLURM = {
    "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "123", "SLURM_STEP_ID": "2",
    "SLURM_STEP_NODELIST": "gpu[07-08,12]",
}  # fmt: skip
PLACES = ("start", "collective", "between", "alone", "end")
SILENT = {
    0: r"rank 0, which keeps the store, does not answer \(killed, or stopped\) since .+\.",
    1: r"rank 1 does not answer \(killed, or stopped\) since .+\.",
}


def failing(folder, program, *cases, gpus=False):
    """{case: {rank: what it said at its end}}; all healthy ranks have to end by themselves."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OUT": str(folder), "TORCH_CPP_LOG_LEVEL": "ERROR"}
    environ["RES_OPTIONS"] = "timeout:1 attempts:1"  # the store looks up every peer's name, and DNS may be slow
    if not gpus:
        environ["LABS_DEVICE"] = "cpu"
    arguments = ["gpus"] * gpus + [program, *cases]
    output = run([sys.executable, Path(__file__).with_name("failing.py"), *arguments], timeout=120, env=environ)
    found = {case: {} for case in cases}
    for line in output.splitlines():
        place, _, text = line.partition(": ")
        case, _, rank = place.partition(" ")
        if case in found:
            found[case][int(rank)] = text
    return found


QUICK = ["stopped-between-1", "killed-collective-1", "stopped-start-0", "stuck-alone-1", "raised-between-1",
         "stopped-arrival-1", "killed-end-1", "busy-between-1", "paused-between-1"]  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return failing(tmp_path_factory.mktemp("said"), "world", *QUICK)


@pytest.mark.parametrize("case", ["stopped-between-1", "killed-collective-1", "stopped-start-0", "killed-end-1"])
def test_a_rank_that_is_stopped_or_dies_is_named_by_the_others(said, case):
    victim = int(case[-1])
    assert set(said[case]) == {0, 1, 2} - {victim}
    assert all(re.match(SILENT[victim], text) for text in said[case].values()), said[case]


def test_what_the_silent_rank_had_begun_is_told(said):
    assert all(
        re.search(r" since wrappers(, collective 1)?\. Rank", text) for text in said["stopped-between-1"].values()
    )


def test_a_rank_that_never_arrives_is_named(said):
    assert set(said["stopped-arrival-1"]) == {0, 2}
    for text in said["stopped-arrival-1"].values():
        assert text.startswith("rank 1 has not arrived within 10 s (killed, stopped or never started).")


def test_a_rank_that_lives_but_keeps_the_others_waiting_is_named(said):
    assert set(said["stuck-alone-1"]) == {0, 1, 2}
    for text in said["stuck-alone-1"].values():
        assert text.startswith(
            "no rank has gone on for 10 s: rank 1 is stuck since wrappers, collective 3, in fail, line "
        )


@pytest.mark.parametrize("case", ["busy-between-1", "paused-between-1"])
def test_a_rank_that_holds_pythons_lock_and_a_job_that_is_paused_go_on(said, case):
    assert said[case] == dict.fromkeys(range(3), "ended without an error")


def test_the_error_of_the_rank_that_fails_first_is_everybodys(said):
    assert said["raised-between-1"].pop(1) == "rank 1 failed: ValueError: no such size."
    assert set(said["raised-between-1"]) == {0, 2}
    for text in said["raised-between-1"].values():
        assert text.startswith("rank 1 failed: ValueError: no such size. Rank ")


@pytest.mark.soak
@pytest.mark.parametrize("program", ["study", "race"])
@pytest.mark.parametrize("way", ["stopped", "killed"])
@pytest.mark.parametrize("victim", [0, 1])
def test_wherever_a_rank_of_a_program_stops_it_is_named(program, way, victim, tmp_path):
    cases = [f"{way}-{place}-{victim}" for place in PLACES]
    for case, texts in failing(tmp_path, program, *cases).items():
        assert set(texts) == {1 - victim}, (case, texts)
        assert re.match(SILENT[victim], texts[1 - victim]), (case, texts)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs")
def test_on_gpus_a_rank_that_waits_in_nccl_ends_and_names_the_other(tmp_path):
    cases = ["killed-between-1", "stuck-between-1", "raised-between-1"]
    said = failing(tmp_path, "world", *cases, gpus=True)
    assert re.match(SILENT[1], said["killed-between-1"][0])
    assert "rank 1 is stuck since wrappers, collective 1, in fail, line " in said["stuck-between-1"][0]
    assert said["raised-between-1"][1] == "rank 1 failed: ValueError: no such size."
    assert said["raised-between-1"][0].startswith("rank 1 failed: ValueError: no such size. Rank 0 ")


def test_the_absence_of_the_rank_that_keeps_the_store_is_told(monkeypatch):
    said = []

    def end(told):
        said.append(told)
        raise SystemExit(1)

    monkeypatch.setattr("labs_helpers.launch.world.end_process", end)
    monkeypatch.setattr("torch.distributed.TCPStore", _absent)
    with pytest.raises(SystemExit):
        connect({"MASTER_ADDR": "there", "MASTER_PORT": "29500", "RANK": "1"}, 3)
    assert said == ["rank 0, which keeps the store at there:29500, has not arrived within 3 s."]


def _absent(*_, **__):
    raise torch.distributed.DistNetworkError("The client socket has timed out")


def test_torchruns_environment_goes_before_slurms():
    torchrun = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "here", "MASTER_PORT": "29500"}
    assert environment(SLURM | torchrun | {"HOME": "/root"}) == torchrun


def test_slurms_tasks_are_ranks():
    found = environment(SLURM)
    assert found["MASTER_ADDR"] == "gpu07" and 20_000 <= int(found.pop("MASTER_PORT")) < 40_000
    assert found == {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "gpu07"}
    assert environment(SLURM | {"SLURM_STEP_ID": "3"})["MASTER_PORT"] != environment(SLURM)["MASTER_PORT"]
    assert environment(SLURM | {"MASTER_ADDR": "there"})["MASTER_ADDR"] == "there"


def test_inside_sbatch_but_outside_srun_there_are_no_ranks():
    for environ in ({}, {"SLURM_PROCID": "0", "SLURM_JOB_ID": "123"}):
        with pytest.raises(RuntimeError, match="no ranks: start this with torchrun .* or with srun .*"):
            environment(environ)


@pytest.mark.parametrize("hosts, first", [
    ("one", "one"), ("one,two", "one"), ("gpu[07-08,12]", "gpu07"), ("gpu[3],login", "gpu3"), ("a-[1-2]-b", "a-1-b"),
])  # fmt: skip
def test_the_first_host_of_a_list(hosts, first):
    assert first_host(hosts) == first
