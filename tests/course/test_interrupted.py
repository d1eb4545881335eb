"""An interrupt shows the notebook's own line in three lines, through the cells of a real kernel."""

import re

import pytest
from jupyter_client.manager import start_new_kernel

from tests.processes import PATIENCE_S

SET_UP = """
import sys, threading, time, traceback
from labs_helpers.course.cells import watch
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.launch.process import run
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.measure_step import measure_step
from labs_helpers.transformer.setups import Setup
from labs_helpers.transformer.training_step import Training

watch()
def tell_when_waiting(thread=threading.get_ident()):
    def look():
        names = set()
        while "_wait" not in names or "find_flavour" in names:  # which asks mpirun for its version
            time.sleep(0.01)
            names = {call.name for call in traceback.extract_stack(sys._current_frames()[thread])}
        print("ready", flush=True)
    threading.Thread(target=look).start()
class Tells(Training):
    def step(self):
        print("ready", flush=True)
        return super().step()
def waits():
    tell_when_waiting()
    run(["sleep", "600"], timeout=600)
"""
MEASURES = "training = Tells(SIZES['tiny'], Setup(), 2, 16)\nmeasure_step(training, 10**9, 10**9)"


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=PATIENCE_S)
    assert client.execute_interactive(SET_UP, timeout=PATIENCE_S)["content"]["status"] == "ok"
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def interrupt(kernel, cell):
    """What a cell shows that is interrupted once it has said that it is ready."""
    manager, client = kernel
    shown = []

    def look(message):
        if "ready" in message["content"].get("text", "") and not shown:
            shown.append("")
            manager.interrupt_kernel()
        shown.extend(message["content"].get("traceback", []))

    client.execute_interactive(cell, output_hook=look, timeout=PATIENCE_S)
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown[1:])).splitlines()


def test_a_measurement_in_this_process(kernel):
    lines = interrupt(kernel, MEASURES)
    assert len(lines) == 3
    assert re.fullmatch(r"✗ KeyboardInterrupt in (line 2|step, line \d+) of cell \[\d+\]:", lines[0])
    assert re.fullmatch(r"  (It was in [\w<>]+, line \d+ of \w+\.py\. )?`%tb` shows every call\.", lines[2])


def test_a_command_that_is_waited_for(kernel):
    lines = interrupt(kernel, "waits()")
    assert len(lines) == 3 and re.match(r"✗ KeyboardInterrupt in waits, line \d+ of cell \[1\]:", lines[0])
    assert lines[1].strip() == 'run(["sleep", "600"], timeout=600)' and " of process.py. " in lines[2]


def test_ranks_still_say_where_they_stood(kernel):
    cell = "run_on_ranks(lambda comm: comm.recv(source=comm.rank), 2, timeout=600)"
    lines = interrupt(kernel, f"tell_when_waiting()\n{cell}")
    assert lines[0].startswith("✗ KeyboardInterrupt in line 2 of cell [") and "%tb" in lines[2]
    assert "was interrupted" in lines[3]


def test_every_call_is_still_to_be_had(kernel):
    interrupt(kernel, "waits()")
    shown = []
    kernel[1].execute_interactive(
        "%tb", output_hook=lambda message: shown.extend(message["content"].get("traceback", [])), timeout=PATIENCE_S
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(shown))
    assert "in run(command" in text and len(text.splitlines()) > 20
