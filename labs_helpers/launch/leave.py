"""The end of a rank of torch.distributed."""

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def leave() -> NoReturn:
    """End this process, whose work is done, with status 0 and without Python's own finalization.

    After a collective a thread of gloo's lets go of its tensors, for which it takes the interpreter's lock. Where the
    scheduler holds that thread back until the interpreter is finalizing, Python (before 3.14) ends the thread, and C++
    with it the process: 'terminate called without an active exception', SIGABRT (issue 190489 of PyTorch).
    `destroy_process_group` waits for these threads only if nothing refers to the group any more; with `fully_shard` and
    `parallelize_module` DTensor's caches do.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def end_process(told: str) -> NoReturn:
    """Print why, and end this process without its exit handlers, which would wait for the other ranks."""
    sys.stdout.flush()
    print(told, file=sys.stderr, flush=True)
    if report := os.environ.get("TORCHELASTIC_ERROR_FILE"):  # else torchrun's summary names this rank and no cause
        with suppress(OSError):
            Path(report).write_text(json.dumps({"message": told, "timestamp": int(time.time())}))
    os._exit(1)
