"""A process that imports mpi4py.MPI without our launcher, a notebook's kernel for one, leaves no shared memory behind.

Open MPI gives a process without mpirun a session folder and 16 MiB of shared memory, and removes neither of them at its
end. Under mpirun it gives each rank as much, and removes it unless mpirun is killed.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

from labs_helpers.launch.flavour import SESSION_FOLDER, SHARED_MEMORY_FOLDER
from labs_helpers.launch.scratch import scratch

# Where the session folder is made cannot be chosen (Open MPI 5), but its number is in the shared memory's name:
# sm_segment.HOST.USER.NUMBER.0, in hexadecimal digits, and ompi.HOST.USER/jf.0/NUMBER, in decimal ones.
_SESSION = """for file in "$1"/sm_segment.*; do
  [ -e "$file" ] || continue
  name=${file##*/sm_segment.}; name=${name%.*}
  sessions=${TMPDIR:-/tmp}/ompi.${name%.*}
  rm -rf -- "$sessions/jf.0/$((0x${name##*.}))"
  rmdir "$sessions/jf.0" "$sessions" 2>/dev/null
done"""
_set: dict[str, str] = {}


def leave_nothing() -> None:
    """From now on this process's files of Open MPI lie in a folder that goes with it, even if it is killed. Call it
    before mpi4py.MPI is imported. Variables that are set already stay, as under `launch.mpirun`; a second call does
    nothing."""
    unset = [name for name in (*SESSION_FOLDER, *SHARED_MEMORY_FOLDER) if name not in os.environ]
    if _set or not unset:
        return
    place = Path("/dev/shm")
    stack = ExitStack()
    folder = str(stack.enter_context(scratch("alone-", place if os.access(place, os.W_OK) else None, _SESSION)))
    atexit.register(stack.close)
    for name in unset:
        os.environ[name] = _set[name] = folder


def refuse_alone(size: int) -> None:
    """OSError where srun has started several tasks of this program and each has an MPI of its own. size: this MPI's."""
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))
    if size == 1 < tasks and "OMPI_COMM_WORLD_SIZE" not in os.environ:
        raise OSError(f"srun started {tasks} tasks, but MPI did not join them: try srun --mpi=pmix")


def environment() -> dict[str, str]:
    """This process's, without what `leave_nothing` has set: ranks have folders of their own."""
    return {name: value for name, value in os.environ.items() if _set.get(name) != value}
