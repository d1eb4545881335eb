"""The study's ranks: found in torchrun's and Slurm's environment; one that dies or stalls ends the others by name."""

import os
import sys
from pathlib import Path

import pytest
import torch

from labs_helpers.data_parallel.study.world import environment, first_host
from labs_helpers.launch.process import run

ROOT = Path(__file__).parents[3]
SLURM = {
    "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "123", "SLURM_STEP_ID": "2",
    "SLURM_STEP_NODELIST": "gpu[07-08,12]",
}  # fmt: skip


def failing(*ways, gpus=False):
    """{way and victim: {rank: what it said at its end}}; all have to end by themselves."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    given = ["gpus", *ways] if gpus else ways
    output = run([sys.executable, Path(__file__).with_name("failing.py"), *given], timeout=90, env=environ)
    found = {way: {} for way in ways}
    for line in output.splitlines():
        place, _, text = line.partition(": ")
        way, _, rank = place.partition(" ")
        if way in found:
            found[way][int(rank)] = text
    return found


@pytest.fixture(scope="module")
def said():
    return failing("killed-1", "stuck-1", "raised-1", "killed-0")


@pytest.mark.parametrize("way", ["killed-1", "stuck-1"])
def test_a_rank_that_dies_or_stalls_is_named_by_the_others(said, way):
    assert set(said[way]) == {0, 2}
    for rank, text in said[way].items():
        assert text.startswith("rank 1 does not answer (killed, or stuck) since wrappers. ")
        assert f"Rank {rank} then failed: RuntimeError: " in text


def test_the_error_of_the_rank_that_fails_first_is_everybodys(said):
    assert said["raised-1"] == {
        1: "rank 1 failed: ValueError: no such size",
        0: "rank 0 failed after rank 1: ValueError: no such size",
        2: "rank 2 failed after rank 1: ValueError: no such size",
    }


def test_the_death_of_the_rank_that_keeps_the_store_is_told(said):
    assert set(said["killed-0"]) == {1, 2}
    assert all("rank 0" in text and "does not answer" in text for text in said["killed-0"].values())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs")
def test_on_gpus_a_rank_that_waits_in_nccl_ends_and_names_the_other():
    said = failing("killed-1", "stuck-1", "raised-1", gpus=True)
    assert said["killed-1"][0].startswith("rank 1 does not answer (killed, or stopped) since wrappers")
    assert said["stuck-1"][0].startswith("rank 1 is stuck since wrappers, collective ")
    assert said["raised-1"] == {
        1: "rank 1 failed: ValueError: no such size",
        0: "rank 1 failed: ValueError: no such size. Rank 0 ends.",
    }


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
        with pytest.raises(RuntimeError, match="no ranks: start this with torchrun .* srun .* --pretend-nodes 2"):
            environment(environ)


@pytest.mark.parametrize("hosts, first", [
    ("one", "one"), ("one,two", "one"), ("gpu[07-08,12]", "gpu07"), ("gpu[3],login", "gpu3"), ("a-[1-2]-b", "a-1-b"),
])  # fmt: skip
def test_the_first_host_of_a_list(hosts, first):
    assert first_host(hosts) == first
