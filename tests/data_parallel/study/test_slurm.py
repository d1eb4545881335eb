"""A one-machine Slurm runs the README's lines, the scripts in mpi_scripts/slurm, and a study whose rank dies."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.data_parallel.study import records
from labs_helpers.launch.flavour import YIELD, find_flavour
from labs_helpers.measure import results
from tests.data_parallel.study.slurm import CORES, missing, one_machine_slurm

ROOT = Path(__file__).parents[3]
STUDY = [sys.executable, "-m", "labs_helpers.data_parallel.study"]
SMALL = ["--size", "tiny", "--length", "32", "--rounds", "2", "--batches", "1", "--steps", "3"]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="its daemons are started by root"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    with one_machine_slurm(tmp_path_factory.mktemp("slurm")) as environ:
        yield environ | {"PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}


def told(command, environ, timeout=900):
    run = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_srun(environ, tmp_path, ranks):
    kinds = ["all_reduce", "wrappers", "buckets", "timeline", "scaling", "accumulate", "compression", "memory", "zero"]
    command = ["srun", f"--ntasks={ranks}", "--overcommit", "--kill-on-bad-exit=1", *STUDY, *SMALL]
    status, said = told([*command, "--out", str(tmp_path / "out.jsonl"), *kinds], environ)
    assert status == 0, said
    rows = results.load(tmp_path / "out.jsonl")
    assert rows["ranks"].max() == ranks and rows["kind"].nunique() == len(kinds)
    # Rank 0 alone records: two writers would record every case twice.
    assert sum(len(records.select(rows, kind)) for kind in rows["kind"].unique()) == len(rows)


README = [line.partition("#")[0] for line in re.findall(r"^(?:srun|sbatch) .*", (ROOT / "README.md").read_text(), re.M)]
SHORT = {
    "check_collectives.py": "--sizes 3 --functions allreduce",
    "collectives.sbatch": "--functions allreduce --algorithms native ring --largest 8 --seconds 0.001",
    "study.sbatch": f"{' '.join(SMALL)} wrappers losses",
    "train_2d.sbatch": "--steps 2 --data text --length 16 --width 32 --heads 4 --batch 8 --dp 2 --tp 2",
}
SAYS = {
    "check_collectives.py": f"{CORES} ranks: \\d+ cases agree",
    "collectives.sbatch": r"\d+ records appended to",
    "study.sbatch": r"\d+ records appended to",
    "train_2d.sbatch": r"step 2 of 2.*validation: loss",
}
OTHERS = [path.name for path in sorted(ROOT.glob("mpi_scripts/slurm/*.sbatch")) if path.name not in "".join(README)]


def on_this_machine(line: str, tmp_path) -> list[str]:
    """A command with as many ranks as the node has cores, and short; `--wait` for a job, whose output is kept."""
    words = shlex.split(re.sub(r"-n \d+", f"-n {CORES}", line))
    program = next(Path(word).name for word in words if word.startswith("mpi_scripts/"))
    if words[0] == "sbatch":
        words[1:1] = ["--wait", f"--output={tmp_path / 'said'}"]
    return [*words, *SHORT[program].split()]


def tried(command, environ, tmp_path):
    """What a command that ends well has said, its job included."""
    mpi = (
        YIELD
        | find_flavour().environment()
        | {"VENV": sys.prefix, "RANKS": "2", "CHECKPOINTS": str(tmp_path / "saved")}
    )
    activated = os.pathsep.join([str(Path(sys.executable).parent), environ["PATH"]])
    status, said = told(command, mpi | environ | {"LABS_RECORDS": str(tmp_path), "PATH": activated})
    said += "".join(path.read_text() for path in tmp_path.glob("said"))
    assert status == 0, said
    return said


@pytest.mark.parametrize("line", README)
def test_the_readme_s_line(line, environ, tmp_path):
    said = tried(on_this_machine(line, tmp_path), environ, tmp_path)
    assert any(name in line and re.search(pattern, said, re.DOTALL) for name, pattern in SAYS.items()), said


@pytest.mark.parametrize("script", OTHERS)
def test_a_script_that_the_readme_does_not_name(script, environ, tmp_path):
    ranks = "" if script == "study.sbatch" else "-n 4"  # torchrun starts its own
    said = tried(on_this_machine(f"sbatch {ranks} mpi_scripts/slurm/{script}", tmp_path), environ, tmp_path)
    assert re.search(SAYS[script], said, re.DOTALL), said


def test_tasks_that_mpi_does_not_join_say_so(environ):
    command = ["srun", "-n", "2", "--mpi=none", sys.executable, "mpi_scripts/hello.py"]
    status, said = told(command, find_flavour().environment() | environ)
    assert status != 0 and "srun started 2 tasks, but MPI did not join them: try srun --mpi=pmix" in said, said


def test_a_rank_that_is_killed_ends_the_job_and_is_named(environ, tmp_path):
    """Rank 1 kills itself when the second kind begins."""
    program = tmp_path / "dies.py"
    program.write_text(
        "import os, signal\n"
        "from labs_helpers.data_parallel.study import measure, __main__ as command\n"
        "def dies(task):\n"
        "    if os.environ['RANK'] == '1':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return measure.KINDS['wrappers'](task)\n"
        "measure.KINDS['buckets'] = dies\n"
        "command.main()\n"
    )
    # Without --kill-on-bad-exit, so that the others have the time to say so themselves.
    command = ["srun", "--ntasks=3", "--overcommit", sys.executable, str(program), *SMALL]
    options = ["--timeout", "20", "--out", str(tmp_path / "out.jsonl")]
    status, said = told([*command, *options, "wrappers", "buckets"], environ, timeout=120)
    assert status != 0 and "rank 1 does not answer (killed, or stopped) since buckets" in said, said
    left = subprocess.run(["pgrep", "-f", str(program)], capture_output=True, text=True)
    assert left.stdout == ""
