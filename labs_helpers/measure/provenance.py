"""Describe where and when a measurement is made."""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime

from labs_helpers.measure.results import ROOT

# mpirun describes the job to its ranks with these: addresses and paths, not settings.
_LAUNCHER_PRIVATE = re.compile(
    r"OMPI_MCA_(orte_|ess|pmix|initial_wdir|shmem_RUNTIME_QUERY_hint|PREFIXES|cpu_type|num_procs)"
)


def provenance() -> dict:
    """Return where and when a measurement is made: machine, versions, MPI and its settings, commit, UTC time."""
    import numpy

    from labs_helpers.measure.machine import this_machine

    machine = this_machine()
    settings = {k: v for k, v in os.environ.items() if k.startswith("OMPI_MCA_")}
    return {
        "machine": machine.label,
        "name": machine.name,
        "device": machine.device,
        "architecture": machine.architecture,
        "capability": ".".join(map(str, machine.capability)) if machine.capability else None,
        "interpreted": machine.interpreted,
        "cores": machine.cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": machine.python,
        "torch": machine.torch,
        "triton": machine.triton,
        "numpy": numpy.__version__,
        "cuda": machine.cuda,
        "driver": machine.driver,
        "mpi": _mpi_library(),
        "mpi_settings": {k: v for k, v in sorted(settings.items()) if not _LAUNCHER_PRIVATE.match(k)},
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _mpi_library() -> str | None:
    # Importing mpi4py would start MPI, so only a program that uses it is asked.
    if "mpi4py.MPI" not in sys.modules:
        return None
    return sys.modules["mpi4py.MPI"].Get_library_version().strip(" \0\n").splitlines()[0].strip()


def _commit() -> str | None:
    """Return the checkout's short commit, with '+' if anything outside results/ changed; None outside a checkout."""
    if "LABS_COMMIT" in os.environ:
        return os.environ["LABS_COMMIT"] or None
    if not (ROOT / ".git").exists():
        return None
    try:
        commit = _git("rev-parse", "--short=10", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", ".", ":!results") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    # Not `launch.process.run`, whose output would include git's warnings.
    command = ["git", "--no-optional-locks", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
