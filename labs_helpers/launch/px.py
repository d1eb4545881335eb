"""Follow a %%px cell to its end, and report it like `run_on_ranks`: which rank raised or died, and where each rank was.

Each engine writes the same files to the cluster's folder as a rank of `run_on_ranks` (see worker.py); `prepare_engine`
runs there. `Cell` waits here for the ranks of one cell, and for anything that keeps it from ending.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labs_helpers.launch.failure import RanksFailed, RanksTimeout, failure
from labs_helpers.launch.patience import limit_text, patience
from labs_helpers.launch.worker import ask_where, gone, say_where_when_asked, write

OTHERS_MAY_END_S = 3.0  # seconds after an error on one rank; ranks still running then count as waiting for it
LOOK_S = 0.05


class Cell:
    """A running cell. result: ipyparallel's AsyncResult. controller_lives: returns whether the controller still
    runs."""

    def __init__(self, folder: Path, ranks: int, result: Any, controller_lives: Callable[[], bool]):
        self.folder, self.ranks, self.result, self.controller_lives = folder, ranks, result, controller_lives

    def wait(self, seconds: float) -> RanksFailed | None:
        """Return None when every rank has ended the cell, with or without an error; else the reason to end the
        cluster: a time limit, a dead rank or controller, an interrupt, or ranks that wait for one that raised."""
        deadline = time.monotonic() + seconds * patience()
        try:
            while not self.result.done():
                self.result.wait(LOOK_S)
                if gone(self.folder):
                    return self._failure("The cell failed.")
                if not self.controller_lives():
                    return self._failure("The cluster's controller has died: that is ipyparallel's, not the cell's.")
                if self._others_wait_for_an_error():
                    return self._failure("The cell failed, and other ranks did not end.")
                if time.monotonic() > deadline:
                    return self._failure(f"The cell did not end within {limit_text(seconds)}.", RanksTimeout)
        except KeyboardInterrupt:
            return self._failure("The cell was interrupted.")
        return None

    def error(self) -> RanksFailed | None:
        """Return the error of a cell that has ended on every rank, or None."""
        return failure(self.folder, self.ranks, f"The cell failed on {self.ranks} ranks.") if self._errors() else None

    def _errors(self) -> list[Path]:
        return list(self.folder.glob("*.error"))

    def _others_wait_for_an_error(self) -> bool:
        errors = self._errors()
        return (
            bool(errors) and time.time() - min(file.stat().st_mtime for file in errors) > OTHERS_MAY_END_S * patience()
        )

    def _failure(self, headline: str, kind: type[RanksFailed] = RanksFailed) -> RanksFailed:
        ask_where(self.folder)
        for rank, text in enumerate(self._printed()):
            (self.folder / f"{rank}.output").write_text(text)
        return failure(self.folder, self.ranks, f"{headline} The cluster is ended: start it again.", kind=kind)

    def _printed(self) -> list[str]:
        self.result.wait_for_output(0.3)
        return [f"{out}{err}" for out, err in zip(self.result.stdout, self.result.stderr, strict=True)]


def prepare_engine(folder: str) -> None:
    """Make this engine report the end of each cell from now on, and its place when it is asked."""
    from IPython import get_ipython
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    error, done = (Path(folder, f"{rank}.{kind}") for kind in ("error", "done"))

    def begin(_: object) -> None:
        error.unlink(missing_ok=True)
        done.unlink(missing_ok=True)

    def end(result: Any) -> None:
        raised = result.error_before_exec or result.error_in_exec
        write(error if raised else done, _described(raised).encode() if raised else b"")

    events = get_ipython().events
    events.register("pre_run_cell", begin)
    events.register("post_run_cell", end)
    say_where_when_asked(Path(folder), rank)


def _described(error: BaseException) -> str:
    """Return the traceback without IPython's own frames above the cell."""
    place = error.__traceback__
    while place is not None and "IPython" in place.tb_frame.f_code.co_filename:
        place = place.tb_next
    return "".join(traceback.format_exception(type(error), error, place)).strip()
