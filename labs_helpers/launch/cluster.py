"""Run an MPI cluster for %%px cells: ipyparallel engines under mpirun, with time limits and a certain end.

    from labs_helpers.launch.cluster import start_cluster, stop_cluster
    start_cluster(4)      # in its own cell: takes some seconds

    %%px                  # on every rank; mpi4py's comm is MPI.COMM_WORLD, and an engine's number is its rank
    print(MPI.COMM_WORLD.rank)

    stop_cluster()        # in its own cell

A %%px cell shows its output when it ends, in rank order. If a cell exceeds its time limit or is interrupted, or if a
rank dies or waits forever, the message says where each rank stood, as `run_on_ranks` does (see px.py). The cluster is
then gone and has to be started again. After an ordinary error it goes on.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from labs_helpers.launch import keeper, singleton
from labs_helpers.launch.failure import RanksFailed, failure
from labs_helpers.launch.flavour import find_flavour, shared_memory
from labs_helpers.launch.mpirun import check_ranks
from labs_helpers.launch.process import end_marked, put_mark
from labs_helpers.launch.px import Cell, prepare_engine
from labs_helpers.launch.scratch import scratch
from labs_helpers.launch.worker import gone

# The second heartbeat registers an engine, so they come every 0.5 s instead of 3 s. 30 s without: lost.
HEARTBEAT = ["--HeartMonitor.period=500", "--HeartMonitor.max_heartmonitor_misses=60"]

_running: Cluster | None = None


def start_cluster(
    ranks: int, timeout: float = 60, cell_timeout: float = 60, env: Mapping[str, str] | None = None
) -> Cluster:
    """Start a cluster of `ranks` ranks and register %%px; return it (a context manager; `.view` is its DirectView).

    A cluster that this process started earlier is stopped first. `timeout` (seconds) limits the start, and
    `cell_timeout` each %%px cell. The ranks get `env` in addition to this process's environment. Raises ValueError
    (ranks below 1), TimeoutError, FileNotFoundError (no mpirun), and leaves nothing running.
    """
    global _running
    check_ranks(ranks)
    stop_cluster()
    _running = Cluster(ranks, timeout, cell_timeout, dict(env or {}))
    return _running


def stop_cluster() -> None:
    """Stop the cluster, if there is one: every process is gone within 5 s."""
    if _running is not None:
        _running.stop()


class Cluster:
    """A running cluster: `.ranks`, `.client` and `.view` (ipyparallel's), `.stop()`."""

    def __init__(self, ranks: int, timeout: float, cell_timeout: float, env: dict[str, str]):
        self.ranks, self.cell_timeout = ranks, cell_timeout
        self.client: Any = None  # ipyparallel has no types
        self._launcher: Any = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._left_behind = ExitStack()
        self._folder = str(self._left_behind.enter_context(scratch("cluster-")))
        self._mark = put_mark(env)
        atexit.register(self.stop)
        try:
            self._start(timeout, env)
        except BaseException:
            self.stop()
            raise

    def __repr__(self) -> str:
        return f"{self.ranks} ranks, {'stopped' if self.client is None else 'ready for %%px'}"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process of the cluster. Repeating it does nothing."""
        atexit.unregister(self.stop)
        client, self.client = self.client, None
        if client is not None:
            client.close()
        if self._guard is not None:
            self._guard.communicate()
        end_marked(self._mark)
        if self._launcher is not None:
            with suppress(Exception):  # its processes are gone; this only informs ipyparallel
                self._launcher.stop_cluster_sync()
            self._launcher = None
        self._left_behind.close()

    def _start(self, timeout: float, env: dict[str, str]) -> None:
        import ipyparallel
        from traitlets.config import Config

        flavour = find_flavour()
        memory = self._left_behind.enter_context(shared_memory(flavour))
        course = str(Path(__file__).parents[2])
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (env.get("PYTHONPATH", os.environ.get("PYTHONPATH")), course)))
        config = Config()
        not_watched = "0"  # the guard below ends it with this process; we don't know which of its threads starts it
        config.MPIEngineSetLauncher.mpi_cmd = [sys.executable, keeper.__file__, not_watched, flavour.mpirun]
        config.MPIEngineSetLauncher.environment = (
            flavour.environment(self._folder, memory, self.ranks) | singleton.environment() | env
        )
        config.LocalControllerLauncher.environment = env
        config.LocalControllerLauncher.connection_info_timeout = timeout
        self._guard = _guard(self._mark, course)
        self._launcher = ipyparallel.Cluster(
            engines="mpi", n=self.ranks, profile_dir=self._folder, config=config, load_profile=False,
            controller_args=HEARTBEAT, shutdown_atexit=False, log_level=50, delay=0,
        )  # fmt: skip
        self._launcher.start_cluster_sync()
        self.client = self._launcher.connect_client_sync()
        self.client.wait_for_engines(self.ranks, timeout=timeout, interactive=False)
        self.view = self.client[:]
        self.view.block = True
        answers = self.view.apply_async(prepare_engine, self._folder)
        answers.get(timeout=timeout)
        self._register_px()

    def _register_px(self) -> None:
        """Register %px and %%px in this notebook, with their time limit and with output in rank order."""
        if "IPython" not in sys.modules or (shell := sys.modules["IPython"].get_ipython()) is None:
            return
        self.view.activate()
        magics = shell.magics_manager.registry["ParallelMagics"]
        magics.stream_output, magics.progress_after_seconds = False, -1  # in rank order, and no progress bar
        magics.parallel_execute = partial(self._execute, magics.parallel_execute)

    def _execute(self, begin: Callable[..., Any], cell: str, block: bool | None = None, **options: Any) -> Any:
        """Execute a %px or %%px cell. begin: ipyparallel's function that sends the cell to the ranks."""
        if self.client is None:
            raise RuntimeError("the cluster is stopped: start it first, with start_cluster(ranks)")
        folder = Path(self._folder)
        if gone(folder):  # since the last cell; a new one would wait for them
            self._end_with(failure(folder, self.ranks, "The cluster has died: start it again."))
        for file in (*folder.glob("*.error"), *folder.glob("*.done")):
            file.unlink(missing_ok=True)
        result = begin(cell, block=False, save_name=options.get("save_name"))
        if block is False:
            return result
        running = Cell(folder, self.ranks, result, self._launcher.controller.process.is_running)
        if lost := running.wait(self.cell_timeout):
            self._end_with(lost)
        result.wait_for_output(1)
        result.display_outputs(options.get("groupby", "type"))
        if error := running.error():
            raise error
        return result.get() and None

    def _end_with(self, error: RanksFailed) -> NoReturn:
        try:
            raise error
        finally:
            self.stop()


def _guard(mark: str, course: str) -> subprocess.Popen[bytes]:
    """Start a process that ends everything marked when its stdin closes, which also happens when this process dies."""
    source = f"import sys; sys.path.append({course!r}); from labs_helpers.launch.process import end_marked\n"
    source += f"sys.stdin.read(); end_marked({mark!r})"
    return subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, start_new_session=True)
