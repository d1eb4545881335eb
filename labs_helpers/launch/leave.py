"""The end of a rank of torch.distributed."""

import os
import sys
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
