"""Let a judge call an answer whose code runs in another process."""

from __future__ import annotations

import io
import linecache
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any

from labs_helpers.course.time_limit import TimeLimit
from labs_helpers.grading.far.answer import Nursery, started
from labs_helpers.grading.far.as_text import functions
from labs_helpers.grading.far.kernels import kernels
from labs_helpers.grading.far.served import JudgeWire
from labs_helpers.grading.far.wire import Lost
from labs_helpers.grading.judged import ANSWER, SHARE


def made_far(
    job: dict[str, Any], known: dict[str, Any], seconds: float
) -> tuple[FarFunction, Callable[[], FarFunction]]:
    """Do the same as `judged.made_here`, in a process of job["nursery"]. Raise Refused if a kernel is not in
    Triton's language."""
    nursery: Nursery = job["nursery"]
    function = FarFunction(job, nursery.born, monotonic() + SHARE * seconds)
    function.run_cells()
    return function, function.anew


class FarFunction:
    """Stands for the answer's function, and is called like it. as_text: the same function for reading only
    (`as_text.functions`).

    job: as for `judged`. start: starts its process. until: the time, by `monotonic`, at which all its calls together
    exceed their limit.
    """

    def __init__(self, job: dict[str, Any], start: Callable[[], tuple[Any, int]], until: float) -> None:
        self.job, self.start, self.until = job, start, until
        self.wire: JudgeWire | None = None
        source = job["source"]
        linecache.cache[ANSWER] = len(source), None, io.StringIO(source, newline=None).readlines(), ANSWER
        texts = functions("\n".join(job["before"]), "<before>") | functions(source, ANSWER)
        for one in texts.values():
            one.__globals__.update(texts)
        self.as_text = (
            texts.get(job["name"])
            or functions(f"def {job['name']}(*args, **named):\n    pass\n", "<none>")[job["name"]]
        )
        self.kernels = kernels([*job["before"], source])
        self.lost, self.withheld = "", False
        self.error: BaseException | None = None

    def run_cells(self) -> None:
        """Run the answer's cells now, so that code in them does not count as part of the first call, which a check
        may meter. The first call raises their error."""
        try:
            self._started()
        except (Exception, TimeLimit) as error:
            self.error = error.with_traceback(None)  # whose frames would keep the process

    def anew(self) -> FarFunction:
        """Return the same answer in a new process."""
        return FarFunction(self.job, self.start, self.until)

    def elsewhere(self, env: Mapping[str, str]) -> FarFunction:
        """Return the same answer in a process whose interpreter starts with these variables set."""
        return FarFunction(self.job, partial(started, env), self.until)

    def __call__(self, *args: Any, **named: Any) -> Any:
        try:
            wire = self._started()
            wire.memory.withheld = self.withheld
            return wire.ask_for_answer(args, named)
        except Lost as lost:
            self.lost = str(lost)
            raise

    def _started(self) -> JudgeWire:
        if self.error is not None:
            raise self.error
        if self.wire is None:
            self.wire = JudgeWire(*self.start(), self.kernels, self.job.get("asked", ()), self.until)
            job = {key: self.job[key] for key in ("imports", "before", "source", "name")}
            self.wire.ask({"do": "define"}, (job | {"kernels": bool(self.kernels.names)},))
            self.wire.beside()
        return self.wire

    # its global names, as `course.own_memory.global_names` gives them

    def get(self, name: str) -> Any:
        return self._started().ask({"do": "name"}, (name,))

    def random_state(self) -> Any:
        return self._started().ask({"do": "random"})

    def __setitem__(self, name: str, value: Any) -> None:
        self._started().ask({"do": "name"}, (name, value))

    @contextmanager
    def kernels_alone(self) -> Iterator[list[str]]:
        """Hide the contents of tensors from an answer's process inside the block, but not from its kernels.

        Otherwise numbers, shapes and constants passed to a kernel could carry results that PyTorch computed. Yields a
        list that tells at the end whether PyTorch computed something.
        """
        beside = list[str]()
        self.withheld = bool(self.kernels.names)
        try:
            yield beside
        finally:
            self.withheld = False
            beside += self.wire.beside() if self.wire is not None and self.kernels.names else []
