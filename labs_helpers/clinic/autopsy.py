"""Run a job that may hang or die, and report where each rank stood and which collectives it had begun."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs_helpers.clinic.training import Training
from labs_helpers.launch.failure import RanksFailed
from labs_helpers.launch.flight_recorder import Collective, compare, from_text
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.launch.patience import patience
from labs_helpers.launch.scratch import scratch
from labs_helpers.launch.stuck import stack_of

QUIET_S = 4.0


@dataclass(frozen=True)
class Report:
    """A rank's last words. state: 'done', 'waiting', or the error that ended it; stack: its calls, innermost first,
    outside installed packages; collectives: those it has begun."""

    state: str
    stack: tuple[str, ...]
    collectives: tuple[Collective, ...]


def autopsy(
    program: type[Training], seed: int, ranks: int = 2, steps: int = 6, quiet: float = QUIET_S
) -> dict[int, Report]:
    """Return the reports of a job's ranks after `steps` steps, or after they hang; a rank that died has none.

    quiet: a rank hangs if it has begun no collective for so many seconds. Raises RanksFailed if a rank fails before it
    can report, such as one that cannot start torch.distributed.
    """
    with scratch("autopsy-") as folder:
        try:
            run_on_ranks(_on_rank, ranks, str(folder), program, seed, steps, quiet, timeout=60)
        except RanksFailed as failed:
            if any(not (folder / str(rank)).exists() for rank in failed.errors):
                raise
        return {rank: _read(file) for rank in range(ranks) if (file := folder / str(rank)).exists()}


def findings(reports: dict[int, Report], ranks: int) -> dict[str, Any]:
    """Return the reports in numbers, as `rules` take them."""
    waiting = [one for one in reports.values() if one.state == "waiting"]
    return {"dead ranks": ranks - len(reports), "waiting ranks": 0 if len(reports) < ranks else len(waiting)}


def explain(reports: dict[int, Report], ranks: int) -> str:
    """Return in words who died, who waits where, and whom they wait for."""
    lines = [f"rank {rank} has left no report: it was killed" for rank in range(ranks) if rank not in reports]
    for rank, one in sorted(reports.items()):
        where = f" in {one.stack[0]}" if one.state == "waiting" and one.stack else ""
        lines.append(f"rank {rank}: {one.state}{where}")
    lines += compare({rank: one.collectives for rank, one in reports.items()})
    return "\n".join(lines)


def _read(file: Path) -> Report:
    told = json.loads(file.read_text())
    return Report(told["state"], tuple(told["stack"]), tuple(from_text(told["collectives"])))


def _on_rank(comm: Any, folder: str, program: type[Training], seed: int, steps: int, quiet: float) -> None:
    from labs_helpers.communication.torch_distributed import join
    from labs_helpers.launch import flight_recorder

    group = join(comm)
    job = program(group, seed)
    state, main = "waiting", threading.main_thread().ident or 0

    def report() -> None:
        if (file := Path(folder, str(comm.rank))).exists():
            return  # the first report counts: the end of another rank's process may follow from its own
        stack = stack_of(sys._current_frames()[main], __file__)
        told = {"state": state, "stack": stack, "collectives": flight_recorder.as_text(flight_recorder.recorded())}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(told))
        part.rename(file)

    _call_at_signal(signal.SIGTERM, report)  # by which mpirun ends the other ranks when one has died
    over = threading.Event()
    threading.Thread(target=_watch, args=(over, quiet, lambda: sum(group.calls.values()), report), daemon=True).start()
    try:
        job.run(steps)
        state = "done"
    except Exception as error:
        state = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        report()
        raise
    comm.Barrier()  # as before a checkpoint, by other means than the group's
    report()
    over.set()


def _call_at_signal(number: signal.Signals, function: Callable[[], None]) -> None:
    """Call a function at a signal, and end this process, even if the main thread waits for a GPU: a handler would run
    only after that."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(number, lambda *_: None)

    def wait() -> None:
        while os.read(reading, 1) != bytes([number]):
            pass
        function()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _watch(over: threading.Event, quiet: float, count: Callable[[], int], report: Callable[[], None]) -> None:
    """Report and end this process when the count has not changed for `quiet` seconds."""
    seen, since = count(), time.monotonic()
    while not over.wait(0.1):
        if (now := count()) != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > quiet * patience():
            report()
            over.wait(quiet * patience())  # the other ranks report too, before the end of this one disturbs them
            os._exit(1)
