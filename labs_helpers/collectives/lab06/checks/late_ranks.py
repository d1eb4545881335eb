"""A rank that is late wherever it can be: after each barrier and in each reduction. It exposes missing barriers."""

import time

import numpy as np

DELAY_S = 0.01


class WatchedOp:
    """A ufunc that calls `watch` before each reduction, with the number of elements that are reduced into others."""

    def __init__(self, ufunc, watch):
        self._ufunc, self._watch = ufunc, watch

    def __call__(self, a, *rest, **options):
        self._watch(np.size(a))
        return self._ufunc(a, *rest, **options)

    def reduce(self, rows, *rest, **options):
        self._watch(np.size(rows) - np.size(rows[:1]))
        return self._ufunc.reduce(rows, *rest, **options)

    def __getattr__(self, name):
        return getattr(self._ufunc, name)


class LateComm:
    """A communicator whose rank goes on only some time after each barrier."""

    def __init__(self, comm):
        self._comm = comm

    def Barrier(self) -> None:
        self._comm.Barrier()
        time.sleep(DELAY_S)

    def __getattr__(self, name):
        return getattr(self._comm, name)
