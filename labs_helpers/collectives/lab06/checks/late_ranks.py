"""A rank that is late wherever it can be: after each barrier and in each reduction. It exposes missing barriers."""

import time

import numpy as np

DELAY_S = 0.01


class CountedOp:
    """A ufunc that counts the elements that it is given, and takes its time on a rank that is late."""

    def __init__(self, ufunc, late: bool = False):
        self.ufunc, self.late, self.reduced = ufunc, late, 0

    def __call__(self, a, b, *rest, **options):
        self._count(np.size(a))
        return self.ufunc(a, b, *rest, **options)

    def reduce(self, rows, *rest, **options):
        self._count(np.size(rows) - np.size(rows[:1]))
        return self.ufunc.reduce(rows, *rest, **options)

    def _count(self, elements: int) -> None:
        self.reduced += elements
        if self.late:
            time.sleep(DELAY_S)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ufunc, name)


class LateComm:
    """A communicator whose rank goes on only some time after each barrier."""

    def __init__(self, comm, late: bool):
        self._comm, self._late, self.rank, self.size = comm, late, comm.rank, comm.size

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Barrier(self) -> None:
        self._comm.Barrier()
        if self._late:
            time.sleep(DELAY_S)
