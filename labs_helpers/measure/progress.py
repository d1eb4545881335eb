"""Show a line of progress while something is measured and someone is waiting for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

AFTER_S = 2.0  # what takes less needs no line


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield `say(text)`, which replaces the text shown before. The line appears after AFTER_S and disappears at the
    end.

    It shows in JupyterLab, VS Code, Colab and terminals. A notebook that runs unattended shows and stores none.
    """
    started, shown = time.monotonic(), _shown_in()
    last: list[str] = []

    def say(text: str) -> None:
        if shown is not None and time.monotonic() - started >= AFTER_S:
            last.append(text)
            shown(text)

    try:
        yield say
    finally:
        if last and shown is not None:
            shown("")


def _shown_in() -> Callable[[str], None] | None:
    """Return an output that can replace its last text; None if nobody is watching."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return _terminal if sys.stderr.isatty() else None
    if not {"JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG"} & set(os.environ):
        return None
    return _Notebook().show


def _terminal(text: str) -> None:
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


class _Notebook:
    """One output of the running cell, rewritten in place."""

    handle: Any = None

    def show(self, text: str) -> None:
        from IPython.display import display

        data = {"text/plain": text}
        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)
