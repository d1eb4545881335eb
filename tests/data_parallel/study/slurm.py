"""Run Slurm on one machine, in one folder: munge, the controller and one node's daemon, until the block ends."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager

from labs_helpers.launch.process import end_marked, put_mark

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scancel")
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
CORES = 4  # that the node claims to have; config_overrides lets it
SECONDS = 30  # that the node may take to be idle
CONFIG = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing() -> str:
    """Name the Slurm programs that are missing; '' if there are none."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=PLACES) is None]
    return f"{', '.join(absent)} not found (Debian: slurm-wlm, munge)" if absent else ""


@contextmanager
def one_machine_slurm(folder):
    """Yield the environment for srun and sbatch. RuntimeError with the logs if Slurm does not start."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    controller, daemon = _free_ports(2)
    config = CONFIG.format(
        host=host, controller=controller, daemon=daemon, folder=folder, user=getpass.getuser(),
        cores=CORES,
    )  # fmt: skip
    (folder / "slurm.conf").write_text(config)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    environ |= {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PLACES}
    mark = put_mark(environ)
    munge = ["--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}"]
    munge += [f"--{what}-file={folder}/munge.{what}" for what in ("pid", "log", "seed")]
    daemons = []
    with ExitStack() as files:
        try:
            for command in (["munged", *munge], ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
                said = files.enter_context((folder / f"{command[0]}.said").open("wb"))
                daemons.append(subprocess.Popen(command, env=environ, stdout=said, stderr=said, start_new_session=True))
            _wait_for_the_node(folder, environ)
            yield environ
            subprocess.run(["scancel", f"--user={getpass.getuser()}"], env=environ, timeout=20)
        finally:
            end_marked(mark)
            for daemon in daemons:
                daemon.wait(10)


def _wait_for_the_node(folder, environ) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        asked = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environ, capture_output=True, text=True, timeout=20)
        if asked.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    told = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")) + sorted(folder.glob("*.said")))
    raise RuntimeError(f"Slurm's node is not idle after {SECONDS} s: {asked.stdout}{asked.stderr}\n{told}")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]
