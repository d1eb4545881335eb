"""A temporary folder that is removed at the end, even if this process is killed."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs_helpers.launch.process import MARK

# The shell waits for the end of its stdin. The pipe closes when the block ends, after one word, or when this process
# dies. Ranks that are still dying may write into the folder during its removal, so it tries again. Ranks that
# were starting when this process died may even create the folder again, so in that case it keeps trying for 2 s.
# Whoever ends a run kills its marked processes and their descendants. The guard has to outlive them, so it drops the
# mark, and its parent exits immediately.
_GUARD = """trap "" HUP INT TERM
exec 3<&0
{ word=$(cat)
eval "$2"
for _ in $(seq ${word:-20}); do rm -rf -- "$1" && [ "$word" ] && exit; sleep 0.1; done; } <&3 &"""
_TRIES = b"8"


@contextmanager
def scratch(prefix: str, where: str | Path | None = None, first: str = "") -> Iterator[Path]:
    """Yield the folder's Path. `where`: the folder to create it in, by default that of temporary files. first: shell
    commands to run before its removal; "$1" is the folder."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=where)
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, "sh", folder, first],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # its end is the guard's
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != MARK},
        start_new_session=True,
    )
    try:
        yield Path(folder)
    finally:
        guard.communicate(_TRIES)
