"""A temporary folder that is removed at the end, and also when this process is killed before."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# It waits for the end of its stdin: the pipe closes when the block ends, which is said in a word, or with the death of
# this process. Ranks that are still dying may write into the folder while it is being removed: then again. Those that
# were being started when this process died may even make it anew: then for 2 s.
_GUARD = """trap "" HUP INT TERM
word=$(cat)
eval "$2"
for _ in $(seq ${word:-20}); do rm -rf -- "$1" && [ "$word" ] && exit; sleep 0.1; done"""
_TRIES = b"8"


@contextmanager
def scratch(prefix: str, where: str | Path | None = None, first: str = "") -> Iterator[Path]:
    """Yields the folder's Path. `where`: the folder to make it in, by default that of temporary files. first: shell
    commands to run before it is removed, which is "$1" there."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=where)
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, "sh", folder, first],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield Path(folder)
    finally:
        guard.communicate(_TRIES)
