"""Clean up Open MPI's shared memory after a process that imports mpi4py.MPI without mpirun, such as a notebook's
kernel.

Open MPI gives such a process a session folder and 16 MiB of shared memory, and removes neither at its end. Under mpirun
it gives each rank as much, and removes it unless mpirun is killed.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

from labs_helpers.launch.flavour import SESSION_FOLDER, SHARED_MEMORY_FOLDER
from labs_helpers.launch.scratch import scratch

# Open MPI 5 does not let us choose the session folder, but its number is part of the shared memory's name:
# sm_segment.HOST.USER.NUMBER.0 in hexadecimal digits, and ompi.HOST.USER/jf.0/NUMBER in decimal digits.
_SESSION = """for file in "$1"/sm_segment.*; do
  [ -e "$file" ] || continue
  name=${file##*/sm_segment.}; name=${name%.*}
  sessions=${TMPDIR:-/tmp}/ompi.${name%.*}
  rm -rf -- "$sessions/jf.0/$((0x${name##*.}))"
  rmdir "$sessions/jf.0" "$sessions" 2>/dev/null
done"""
_set: dict[str, str] = {}


def leave_nothing() -> None:
    """Put this process's Open MPI files into a folder that disappears with it, even if it is killed. Call this
    before importing mpi4py.MPI. Variables that are already set stay, as under `launch.mpirun`; repeating the call
    does nothing."""
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
    """Return this process's environment without the variables of `leave_nothing`, because ranks have their own
    folders."""
    return {name: value for name, value in os.environ.items() if _set.get(name) != value}
