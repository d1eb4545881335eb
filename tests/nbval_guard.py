"""pytest plugin that catches failures that nbval misses.

nbval alone passes a cell that exceeded its time if the cell returns normally after the interrupt, and expects every
later cell to fail. It waits a cell's whole time limit for a kernel that has died, and reads output without end. With
this plugin, each of these immediately fails its own cell and the notebook's later cells. One more test per notebook,
`form`, fails if the notebook is written so that nbval compares nothing.
"""

import time
from collections import deque
from queue import Empty

import nbval.plugin
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell

from tests.notebook_form import faults

OUTPUT_LIMIT = 5_000_000  # bytes a cell may put out
GIVE_UP_S = 5  # after an interrupt, for the kernel to become idle


class KernelLost(Exception):
    """The kernel died, or was stopped because it put out too much."""


class GuardedKernel(RunningKernel):
    """nbval's kernel, watched while nbval waits for it.

    Output is read while a cell runs, not after it, so that a flood is noticed and nothing is dropped.
    """

    def __init__(self, *args, **kwargs):
        self._forget_cell()
        super().__init__(*args, **kwargs)

    def _forget_cell(self):
        self.output, self.output_bytes, self.give_up_at = deque(), 0, float("inf")

    def execute_cell_input(self, *args, **kwargs):
        self._forget_cell()
        return super().execute_cell_input(*args, **kwargs)

    def interrupt(self):
        self.give_up_at = time.monotonic() + GIVE_UP_S
        super().interrupt()

    def get_message(self, stream, timeout=None):
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        deadline = min(deadline, self.give_up_at)
        while True:
            self._read_output()
            if stream == "iopub" and self.output and time.monotonic() < self.give_up_at:
                return self.output.popleft()
            wait = min(0.2, deadline - time.monotonic())
            if wait <= 0:
                raise Empty
            try:
                message = super().get_message(stream, timeout=wait)
            except Empty:
                if not self.is_alive():
                    raise KernelLost("The kernel died") from None
                continue
            if stream == "shell":
                return message
            self._keep(message)

    def _read_output(self):
        while time.monotonic() < self.give_up_at:
            try:
                self._keep(super().get_message("iopub", timeout=0))
            except Empty:
                return

    def _keep(self, message):
        self.output.append(message)
        if message["msg_type"] in ("stream", "display_data", "execute_result", "error"):
            self.output_bytes += len(str(message["content"]))
        if self.output_bytes > OUTPUT_LIMIT:
            self.stop()
            raise KernelLost(f"The cell put out more than {OUTPUT_LIMIT:,} bytes; its kernel was stopped")


def pytest_configure(config):
    nbval.plugin.RunningKernel = GuardedKernel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not isinstance(item, IPyNbCell):
        return (yield)
    notebook = item.parent
    if broken := getattr(notebook, "broken", None):
        item.raise_cell_error(f"Not run, because of an earlier cell. {broken}")
    try:
        result = yield
        if notebook.timed_out:
            limit = item.config.option.nbval_cell_timeout
            item.raise_cell_error(f"Timeout of {limit:g} seconds exceeded; it ended when interrupted")
        return result
    except KernelLost as error:
        notebook.broken = f"{item.name}: {error}"
        item.raise_cell_error(str(error))
    finally:
        if notebook.timed_out:
            notebook.broken = f"{item.name} ran out of time"
            notebook.timed_out = False  # else nbval expects the later cells to fail, and they count as no failure
        elif not hasattr(notebook, "broken") and not notebook.kernel.is_alive():
            notebook.broken = f"{item.name}: the kernel died"


def pytest_collect_file(file_path, parent):
    if parent.config.option.nbval and file_path.suffix == ".ipynb":
        return NotebookForm.from_parent(parent, path=file_path)


class NotebookForm(pytest.File):
    def collect(self):
        yield FormItem.from_parent(self, name="form")


class FormItem(pytest.Item):
    def runtest(self):
        if found := faults(self.path):
            pytest.fail("\n".join(found), pytrace=False)
