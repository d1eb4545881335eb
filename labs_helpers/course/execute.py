"""Execute one notebook from top to bottom in a new kernel."""

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.notebooknode import NotebookNode

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LAST_LINES = 8


def execute(notebook: NotebookNode, cell_timeout: float, on_cell: Callable[[NotebookNode, int], None]) -> str:
    """Run the code cells of `notebook` in place, in an empty folder; stop at the first that fails.

    `cell_timeout` is in seconds; `on_cell(cell, cell_index)` is called before each cell. Returns the end of the error,
    or '' if every cell ran. An interrupt (SIGINT) ends the kernel and is raised as KeyboardInterrupt.
    """
    interrupted = False
    os.environ["LABS_SLIDERS"] = "0"  # a notebook executed to be stored or read has a figure instead

    def end_on_interrupt(notebook):
        # nbclient's own handler also ends the kernel, but then fails because the kernel is gone.
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def interrupt():
            nonlocal interrupted
            interrupted = True
            task.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)

    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        client = NotebookClient(
            notebook,
            timeout=cell_timeout,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            on_notebook_start=end_on_interrupt,
            on_cell_start=on_cell,
        )
        log = Path(folder, "kernel.log")
        try:
            with log.open("wb") as file:
                client.execute(stdout=file, stderr=file, env=_headless())
        except CellTimeoutError:
            return f"it ran longer than {cell_timeout:g} s"
        except CellExecutionError as error:
            return _end(ANSI.sub("", str(error)))
        except (DeadKernelError, asyncio.CancelledError):
            if interrupted:
                raise KeyboardInterrupt from None
            return f"its kernel died\n{_end(log.read_text(errors='replace'))}".strip()
        except RuntimeError as error:
            return f"its kernel did not start: {error}\n{_end(log.read_text(errors='replace'))}".strip()
    return ""


def _headless() -> dict[str, str]:
    """Remove the variables of the JupyterLab session that may have started `make run`, so that its progress stays
    untouched."""
    return {name: value for name, value in os.environ.items() if name != "JPY_SESSION_NAME"}


def _end(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LAST_LINES:]).strip("\n")
