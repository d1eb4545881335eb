"""Ranks that stay between the tests' files: four that import PyTorch and its optimizers cost ten seconds of a core.

A file's fixture takes `rank_pool` and says what its ranks shall call:

    results = rank_pool.run(function, 4, *args, timeout=100)    # as run_on_ranks: function(comm, *args), in rank order

`comm` has that many of the ranks, and is new; process groups of torch.distributed are destroyed after each call. What a
function changes in a module stays changed. A rank that raises, dies or does not end takes the others with it: the error
is run_on_ranks', and the next call starts anew. Ranks without work read from a pipe, which takes no time of a core.
"""

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress

import cloudpickle

from labs_helpers.launch.flavour import BACKGROUND_SUMS, YIELD
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.launch.scratch import scratch

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks do not know the tests' folders

# Where the ranks do not have all cores to themselves, one that waits lets another work: ten times as quick.
# Background sums as train_2d.py has them; torch warns of layers that find_unused_parameters never missed.
ENVIRON = YIELD | BACKGROUND_SUMS | {"TORCH_CPP_LOG_LEVEL": "ERROR"}
LIFETIME_S = 3600


class RankPool:
    """`size` ranks, started by the first call. A context manager."""

    def __init__(self, size):
        self.size, self.thread = size, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, function, ranks, *args, timeout):
        """What function(comm, *args) returns on each of `ranks` ranks; timeout in seconds. RanksFailed as it says."""
        assert ranks <= self.size, f"the pool has {self.size} ranks, not {ranks}"
        if self.thread is None:
            self._start()
        self.calls += 1
        call = self.folder / f"{self.calls}.call"
        call.write_bytes(cloudpickle.dumps((sys.path, ranks, function, args)))
        for pipe in self.pipes[:ranks]:
            os.write(pipe, f"{self.calls}\n".encode())
        answers = [self.folder / f"{self.calls}.{rank}.answer" for rank in range(ranks)]
        deadline = time.monotonic() + timeout
        while not all(answer.exists() for answer in answers):
            self.thread.join(0.05)
            if not self.thread.is_alive():
                self.stop()
                raise self.error
            if time.monotonic() > deadline:
                self._abort(set(range(ranks)) - {r for r, answer in enumerate(answers) if answer.exists()})
                deadline = float("inf")
        return [pickle.loads(answer.read_bytes()) for answer in answers]

    def stop(self):
        """End the ranks, if there are any."""
        if self.thread is not None:
            for pipe in self.pipes:
                os.close(pipe)
            self.thread.join()
            self.thread = None
            self.scratch.__exit__(None, None, None)

    def _start(self):
        self.scratch, self.calls, self.error = scratch("pool-"), 0, None
        self.folder = self.scratch.__enter__()
        for rank in range(self.size):
            os.mkfifo(self.folder / f"{rank}.calls")
        # Open for both, so that it need not wait for the rank; closed here, the rank reads its end.
        self.pipes = [os.open(self.folder / f"{rank}.calls", os.O_RDWR) for rank in range(self.size)]
        self.thread = threading.Thread(target=self._keep, daemon=True)
        self.thread.start()

    def _keep(self):
        try:
            run_on_ranks(serve, self.size, self.folder, timeout=LIFETIME_S, env=ENVIRON)
            self.error = RuntimeError("the ranks have ended")
        except Exception as error:
            self.error = error

    def _abort(self, ranks):
        """These did not end in time: they say where they stand, and all ends."""
        for rank in ranks:
            with suppress(OSError, ValueError):
                os.kill(int((self.folder / f"{rank}.pid").read_text()), signal.SIGABRT)


def serve(comm, folder):
    """On every rank: the calls, until the pipe is closed."""
    import gc

    import torch._dynamo  # noqa: F401 (which any optimizer imports)

    # Races collect garbage before each measurement, and would go through all that was imported: 0.2 s each time.
    gc.freeze()
    (folder / f"{comm.rank}.pid").write_text(str(os.getpid()))
    with open(folder / f"{comm.rank}.calls") as calls:
        for number in map(int, calls):
            sys.path[:], ranks, function, args = pickle.loads((folder / f"{number}.call").read_bytes())
            group = comm.Create_group(comm.group.Incl(range(ranks)), tag=number)
            answer = cloudpickle.dumps(function(group, *args))
            if (dist := sys.modules.get("torch.distributed")) and dist.is_initialized():
                dist.destroy_process_group()
            del function, args
            gc.collect()
            gc.freeze()
            part = folder / f"{number}.{comm.rank}.part"
            part.write_bytes(answer)
            part.rename(folder / f"{number}.{comm.rank}.answer")
