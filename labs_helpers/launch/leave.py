"""End a rank of torch.distributed without Python's finalization."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def leave() -> NoReturn:
    """End this process with status 0 after its work is done, skipping Python's own finalization.

    After a collective, a gloo thread releases its tensors, for which it takes the interpreter's lock. If the scheduler
    delays that thread until the interpreter is finalizing, Python (before 3.14) ends the thread, and C++ ends the
    process: 'terminate called without an active exception', SIGABRT (issue 190489 of PyTorch). `destroy_process_group`
    waits for these threads only if nothing refers to the group any more; DTensor's caches do refer to it after
    `fully_shard` and `parallelize_module`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def end_process(told: str, stopped: Iterable[int] = ()) -> NoReturn:
    """Print the reason and end this process without its exit handlers, which would wait for the other ranks. Kill the
    `stopped` processes, for which torchrun would otherwise wait 30 s."""
    sys.stdout.flush()
    print(told, file=sys.stderr, flush=True)
    if report := os.environ.get("TORCHELASTIC_ERROR_FILE"):  # otherwise torchrun's summary names this rank but no cause
        with suppress(OSError):
            Path(report).write_text(json.dumps({"message": told, "timestamp": int(time.time())}))
    for process in stopped:  # last, because torchrun ends this process as soon as it misses one of them
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    os._exit(1)
