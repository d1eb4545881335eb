"""Make every kernel of this environment record its cells from its start, so that a restart can be explained too."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER, NAME = Path("etc", "ipython", "startup"), "tile_to_cluster.py"  # IPython searches PREFIX/etc/ipython


def watch_from_the_start(prefix: str = sys.prefix) -> Path | None:
    """Install startup.py where IPython runs it, and return its path. Returns None if this Python does not belong to
    the course alone, such as the system's, or if the folder is not writable."""
    own = sys.prefix != sys.base_prefix or Path(prefix, "conda-meta").is_dir() or "COLAB_RELEASE_TAG" in os.environ
    if not own:
        return None
    folder, text = Path(prefix) / FOLDER, Path(__file__).with_name("startup.py").read_text()
    with suppress(OSError):
        if (folder / NAME).exists() and (folder / NAME).read_text() == text:
            return folder / NAME
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as part:
            part.write(text)
        os.chmod(part.name, 0o644)
        os.replace(part.name, folder / NAME)  # atomic, whichever kernel writes it first
        return folder / NAME
    return None
