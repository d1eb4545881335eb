"""Run a script or a function on MPI ranks, with a time limit, separate outputs, and nothing left behind.

    mpirun("mpi_scripts/hello.py", 4, timeout=30)      # the text that each rank printed, in rank order
    run_on_ranks(lambda comm: comm.rank, 4, timeout=30)   # [0, 1, 2, 3]

This works with Open MPI 4.1 and 5 and with MPICH, as root or not, and with more ranks than cores. Within 5 s of the
time limit, of an interrupt or of a rank's death, every process is gone, and the error says where each rank stood.
"""

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

from labs_helpers.launch import singleton, worker
from labs_helpers.launch.cell_lines import cell_lines
from labs_helpers.launch.failure import RanksFailed, RanksTimeout, failure, read_outputs
from labs_helpers.launch.flavour import find_flavour, shared_memory
from labs_helpers.launch.patience import limit_text
from labs_helpers.launch.process import ProcessFailed, ProcessStopped, ProcessTimeout, how_it_ended, run
from labs_helpers.launch.scratch import scratch

__all__ = ["RanksFailed", "RanksTimeout", "mpirun", "run_on_ranks"]


def mpirun(
    script: str | os.PathLike[str],
    ranks: int,
    *arguments: object,
    timeout: float,
    env: Mapping[str, str] | None = None,
    hostfile: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Run a Python script with `arguments` on `ranks` ranks; return what each printed, in rank order.

    `timeout` is in seconds. The ranks get `env` in addition to this process's environment. A `hostfile`, in the form
    that the installed mpirun reads, spreads the ranks over its hosts. All of them must see this folder and the script's
    under the same paths; the ranks' output then passes through this folder.

    Raises RanksFailed, RanksTimeout, FileNotFoundError (no such script, host file or mpirun), ValueError (ranks below
    1, a time limit that is not positive).
    """
    script = _existing(script, "script")
    hostfile = None if hostfile is None else _existing(hostfile, "hostfile")
    # The ranks' messages to this process: with several hosts, in a folder that all of them see.
    with scratch("ranks-", os.getcwd() if hostfile else None) as folder:
        _run(folder, ranks, [str(script), *map(str, arguments)], script.name, timeout, dict(env or {}), hostfile)
        return read_outputs(folder, ranks)


def run_on_ranks(
    function: Callable[..., Any],
    ranks: int,
    *args: Any,
    timeout: float,
    env: Mapping[str, str] | None = None,
    within: Sequence[str] = (),
    hosts: Sequence[str] | None = None,
) -> list[Any]:
    """Call `function(comm, *args)` with comm = MPI.COMM_WORLD on `ranks` ranks; return the results in rank order.

    cloudpickle sends the function, so it may be defined in a notebook cell and use names from other cells. This process
    prints what the ranks print, in rank order. `timeout`, `env` and the errors are those of `mpirun`; TypeError reports
    an object that cannot be pickled. For pretended nodes (see there): `within`, the command that runs mpirun, and
    `hosts`, the name of the host that each rank must be on.
    """
    with scratch("ranks-") as folder:
        with (folder / "call").open("wb") as file:
            # The ranks import what this process imports, and show a cell's lines in their tracebacks.
            pickle.dump((sys.path, ranks, hosts, cell_lines()), file)
            cloudpickle.dump((function, args), file)
        _run(folder, ranks, [], getattr(function, "__name__", repr(function)), timeout, dict(env or {}), within=within)
        for text in read_outputs(folder, ranks):
            print(text, end="")
        results = [(folder / f"{rank}.done").read_bytes() for rank in range(ranks)]
        return [pickle.loads(result) if result else None for result in results]  # no result: the rank called sys.exit()


def _run(
    folder: Path,
    ranks: int,
    program: list[str],
    name: str,
    timeout: float,
    env: dict[str, str],
    hostfile: Path | None = None,
    within: Sequence[str] = (),
) -> None:
    check_ranks(ranks)
    flavour = find_flavour()
    command = [*within, *flavour.command(ranks, hostfile, export=env if hostfile else ())]
    command += [sys.executable, worker.__file__, str(folder), *program]
    session = None if hostfile else str(folder)
    said, headline = "", f"{name} failed on {ranks} ranks."
    try:
        with shared_memory(flavour) if hostfile is None else nullcontext() as memory:
            here = ranks if hostfile is None else 1  # only the host file knows how many ranks each host runs
            environment = flavour.environment(session, memory, here) | singleton.environment() | env
            ask = partial(worker.ask_where, folder)
            over = None
            if flavour.kills_at_once and hostfile is None:
                environment[worker.LEAVE_GROUP] = "1"
                over = partial(worker.died, folder)
            said = run(command, timeout=timeout, env=environment, before_end=ask, keep=True, over=over)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(str(failure(folder, ranks, f"{name} on {ranks} ranks was interrupted.")))
        raise
    except ProcessTimeout as error:
        headline = f"{name} on {ranks} ranks did not end within {limit_text(timeout)} and was stopped."
        raise failure(folder, ranks, headline, error.output, RanksTimeout) from None
    except ProcessFailed as error:
        said = error.output
        if error.returncode < 0 and not isinstance(error, ProcessStopped):
            headline += f" mpirun itself {how_it_ended(error.returncode)}, and the ranks with it."
            raise failure(folder, ranks, headline, said, with_mpirun=True) from None
    if not all((folder / f"{rank}.done").exists() for rank in range(ranks)):
        raise failure(folder, ranks, headline, said)


def check_ranks(ranks: int) -> None:
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise ValueError(f"ranks must be a positive whole number, not {ranks!r}")


def _existing(path: str | os.PathLike[str], name: str) -> Path:
    if not Path(path).is_file():
        raise FileNotFoundError(f"the {name} does not exist: {os.fspath(path)}")
    return Path(path).resolve()
