"""Test that the README's commands leave the tracked files unchanged, above all those that measure and draw."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.launch import start
from labs_helpers.launch.process import ProcessFailed, run

ROOT = Path(__file__).parents[2]
# Program → arguments that make it short. What is not named here runs as the README gives it.
SHORTER = {
    "labs_helpers.collectives.study": "--ranks 2 --turns 1 --functions allreduce --default-only",
    "labs_helpers.data_parallel.race": "--heats wrappers --length 8 --batch 1 --rounds 1 --steps 1",
    "labs_helpers.data_parallel.study": "losses --size tiny --steps 2 --length 8",
    "labs_helpers.first_kernels.lab00.study": "--kinds stride",
    "labs_helpers.gemm.lab02.ladder": "--sizes 32 --rounds 1",
    "labs_helpers.gemm.study": "--sizes 32 --rounds 1",
    "labs_helpers.gemm.tuning.sweep": "waves",
    "labs_helpers.training": "--steps 2",
    "labs_helpers.tensor_parallel.study": "--help",  # two minutes as root, and nothing else
    "labs_helpers.transformer.study": "--sizes tiny --lengths 16 --batches 1 --rounds 5",
    "mpi_scripts/bench_collectives.py": "--largest 64 --seconds 0.001",
    "mpi_scripts/check_collectives.py": "--sizes 3 --functions allreduce",
    "mpi_scripts/train_2d.py": "--steps 2",
}
MEASURE = set(SHORTER) - {  # and keep records, also without a GPU
    "labs_helpers.gemm.tuning.sweep", "labs_helpers.training", "mpi_scripts/check_collectives.py",
    "mpi_scripts/train_2d.py",
}  # fmt: skip
QUICK = {  # of those in `make test`; `make soak` runs all
    "labs_helpers.attention.study", "labs_helpers.first_kernels.lab00.study", "labs_helpers.transformer.study",
    "mpi_scripts/hello.py", "check", "help", "progress",
}  # fmt: skip


def commands(readme: str) -> list[list[str]]:
    """The commands of the README's shell blocks that start a program of the course, as they are typed, and for each
    topic or module that a comment lists behind `make study`, that one's. test_slurm.py tries sbatch."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            command, _, comment = line.partition("#")
            words = shlex.split(command)
            made = words[:2] in (["make", "study"], ["make", "mpirun"])
            if made or ("mpi_scripts" in command and words[0] != "sbatch"):
                found.append(words)
            others = comment if not command.strip() else comment.partition("also:")[2]
            for name in re.findall(r"[a-z_]\w*(?:\.\w+)*", others):
                ranks = [word for word in found[-1] if word.startswith("N=")]
                found.append(["make", "study", f"TOPIC={name}", *ranks])
    return found


def program_of(command: list[str]) -> str:
    """'labs_helpers.gemm.study', or 'mpi_scripts/hello.py'."""
    given = dict(word.split("=", 1) for word in command if re.match("[A-Z]+=", word))
    if "TOPIC" in given:
        return start.module_of(given["TOPIC"])
    if "SCRIPT" in given:
        return f"mpi_scripts/{given['SCRIPT']}.py"
    return next(word for word in command if word.startswith("mpi_scripts/"))


def shortened(command: list[str]) -> list[str]:
    """The command on this machine alone, on few ranks, and with its program's SHORTER arguments."""
    shorter = SHORTER.get(program_of(command), "")
    if command[0] == "srun":  # which is not here
        return ["make", "mpirun", f"SCRIPT={Path(program_of(command)).stem}", f"ARGS={shorter}"]
    own = [word.removeprefix("ARGS=") for word in command if word.startswith("ARGS=")]
    hosts = ["HOSTS=localhost:4", "N=4"] if any(word.startswith("HOSTS=") for word in command) else []
    return [*command, *hosts, f"ARGS={' '.join([*own, shorter])}"]


# What a row of the README's table is tried with; `make lab` and `make serve` run servers, and `make test` this test.
TARGETS = {
    "run": ["run", "LABS=00"], "check": ["check", "LAB=02"], "first-aid": ["first-aid"], "help": ["help"],
    "progress": ["progress"],
}  # fmt: skip
COMMANDS = commands((ROOT / "README.md").read_text())


def git(tree: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", tree, *identity, *arguments], capture_output=True, timeout=100, check=True)
    return done.stdout.decode()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with what git tracks here, or would track."""
    tree = tmp_path_factory.mktemp("clone")
    try:
        listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git repository")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    git(tree, "init", "--quiet")
    set_up(tree)
    return tree


def set_up(tree: Path) -> None:
    """Make `make` take this Python for the tree's environment, in which everything is installed."""
    python = tree / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    sum_of_path = run(["sh", "-c", f"printf %s '{tree}' | cksum"], timeout=100).split()[0]
    (tree / f".venv/.set-up-{sum_of_path}").touch()


@pytest.fixture
def clone(repository):
    """The repository, in which nothing has changed yet."""
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "All")
    return repository


def run_in(tree: Path, command: list[str]) -> str:
    """The command's output, as a reader's shell would run it in the clone's environment."""
    ours = ("LABS_RECORDS", "LABS_RESULTS", "MAKE", "MFLAGS")  # an outer make hands its variables down
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    try:
        return run(command, timeout=200, cwd=tree, env=env | {"PYTHONPATH": str(tree), "LABS_DEVICE": "cpu"})
    except ProcessFailed as error:  # what needs a GPU says so, and ends
        assert "Traceback" not in error.output
        return error.output


def test_the_readme_s_commands_are_found():
    programs = {program_of(command) for command in COMMANDS}
    assert set(SHORTER) <= programs and {"labs_helpers.attention.study", "mpi_scripts/hello.py"} <= programs


def tried(what, name: str):
    return pytest.param(what, id=name, marks=[] if name in QUICK else pytest.mark.soak)


@pytest.mark.parametrize("command", [tried(command, program_of(command)) for command in COMMANDS])
def test_a_command_changes_no_tracked_file(command, clone):
    said = run_in(clone, shortened(command))
    assert git(clone, "status", "--porcelain") == ""
    kept = [Path(path) for path in re.findall(r"records appended to (\S+)", said)]
    assert all(path.parent == clone / "build/records" and path.is_file() for path in kept)
    if program_of(command) in MEASURE:
        assert kept or "build/records/" in said or "records (not kept)" in said  # as --quick says


def test_the_readme_s_targets_are_known():
    named = set(re.findall(r"^\| `make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named == {*TARGETS, "lab", "serve", "test"}


@pytest.mark.parametrize("target", [tried(target, target) for target in TARGETS])
def test_a_target_changes_no_tracked_file(target, clone):
    said = run_in(clone, ["make", *TARGETS[target]])
    assert git(clone, "status", "--porcelain") == "" and "Setting up" not in said
