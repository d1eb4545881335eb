"""Grade several students at the same time on this machine; cluster.py does the same on the engines of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

from labs_helpers.grading.reading.inbox import HandedIn
from labs_helpers.grading.results.gradebook import Record

Over = Callable[[], object]  # asked while a jail runs: whether it shall be ended
GradeOne = Callable[[HandedIn, Over], Record]


def graded_here(jobs: int, todo: Iterable[HandedIn], grade_one: GradeOne) -> Iterator[Record]:
    """Yield the results of `grade_one(student, over)` as they arrive, `jobs` at the same time. Closing the iterator
    ends what still runs.

    A caller that may be interrupted between two records closes it: with contextlib.closing(graded_here(…)) as records.
    """
    over = Event()
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(grade_one, one, over.is_set) for one in todo]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            over.set()  # ends the jails, so that nothing has to be waited for
            pool.shutdown(wait=False, cancel_futures=True)
