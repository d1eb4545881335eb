"""Four ranks that import PyTorch once and run one task after another, for all files of a test worker.

    by_rank = real_ranks.run(function, 2, cases)      # like run_on_ranks, on the first two

Starting four ranks takes longer than most tasks, because each imports PyTorch and its optimizers.
"""

from __future__ import annotations

import atexit
import pickle
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any

import cloudpickle

from labs_helpers.launch.flavour import BACKGROUND_SUMS
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.launch.patience import limit_text, patience
from labs_helpers.launch.process import end_marked, put_mark
from labs_helpers.launch.scratch import scratch
from tests.tensor_parallel.ranks import YIELD

cloudpickle.register_pickle_by_value(sys.modules[__name__])

RANKS = 4
LIMIT_S = 300.0  # only guards against hanging; below pytest's own time limit
HOURS = 24 * 3600.0  # nobody limits the ranks themselves; each piece of work has its limit
# As train_2d.py has it, whose background sums are small at times. torch warns of layers that
# find_unused_parameters never missed.
ENVIRONMENT = YIELD | BACKGROUND_SUMS | {"TORCH_CPP_LOG_LEVEL": "ERROR"}


def run(function: Callable[..., Any], ranks: int, *args: Any, timeout: float = LIMIT_S) -> list[Any]:
    """Call `function(comm, *args)` on `ranks` ranks, at most RANKS; return the results in rank order.

    comm: a communicator of these alone. What the function starts of torch.distributed ends with it. RanksFailed, as of
    run_on_ranks: a rank raised or died. TimeoutError. Then the next call starts other ranks.
    """
    global _pool
    if _pool is None:
        _pool = _Pool()
    try:
        return _pool.run(cloudpickle.dumps((ranks, function, args)), timeout)[:ranks]
    except BaseException:
        pool, _pool = _pool, None
        pool.end()
        raise


class _Pool:
    """Ranks, each at the other end of a connection."""

    def __init__(self) -> None:
        self._environment = dict(ENVIRONMENT)
        self._mark = put_mark(self._environment)
        self._error: BaseException | None = None
        with scratch("real-ranks-") as folder, Listener(str(folder / "work"), "AF_UNIX") as listener:
            self._thread = threading.Thread(target=self._start, args=(listener.address,), daemon=True)
            self._thread.start()
            found = dict(self._accepted(listener) for _ in range(RANKS))
        self._connections = [found[rank] for rank in range(RANKS)]

    def _start(self, address: str) -> None:
        try:
            run_on_ranks(_serve, RANKS, address, timeout=HOURS, env=self._environment)
        except BaseException as error:
            self._error = error

    def _accepted(self, listener: Listener) -> tuple[int, Connection]:
        while not wait([listener._listener._socket], timeout=1):  # accept() itself would wait for ever
            self._raise_if_ended()
        connection = listener.accept()
        return connection.recv(), connection

    def _raise_if_ended(self) -> None:
        if not self._thread.is_alive():
            raise self._error or RuntimeError("the ranks have ended")

    def run(self, work: bytes, seconds: float) -> list[Any]:
        for connection in self._connections:
            connection.send_bytes(work)
        found: dict[Connection, Any] = {}
        deadline = time.monotonic() + seconds * patience()
        while waiting := [connection for connection in self._connections if connection not in found]:
            ready = wait(waiting, max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{len(waiting)} of {RANKS} ranks did not end within {limit_text(seconds)}")
            for connection in ready:
                try:
                    found[connection] = pickle.loads(connection.recv_bytes())
                except EOFError:  # the rank has ended, and mpirun ends the others
                    self._thread.join(seconds)
                    self._raise_if_ended()
                    raise
        return [found[connection] for connection in self._connections]

    def end(self) -> None:
        """End the ranks: those that wait for work by themselves, others by a signal."""
        for connection in self._connections:
            try:
                connection.send_bytes(b"")
            except OSError:
                pass
        self._thread.join(1)
        if self._thread.is_alive():
            end_marked(self._mark)
            self._thread.join()


_pool: _Pool | None = None


@atexit.register
def _end() -> None:
    if _pool is not None:
        _pool.end()


def _serve(comm: Any, address: str) -> None:
    """On a rank: do what comes, until nothing does."""
    from mpi4py import MPI

    with Client(address, "AF_UNIX") as connection:
        connection.send(comm.rank)
        while work := connection.recv_bytes():
            ranks, function, args = cloudpickle.loads(work)
            group = comm.Split(0 if comm.rank < ranks else MPI.UNDEFINED, comm.rank)
            result = function(group, *args) if comm.rank < ranks else None
            if (dist := sys.modules.get("torch.distributed")) and dist.is_initialized():
                dist.destroy_process_group()
            connection.send_bytes(cloudpickle.dumps(result))
