"""An operation that reports how many elements are reduced with it."""

import numpy as np


class WatchedOp:
    """A ufunc that calls `watch` before each reduction, with the number of elements reduced into others."""

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
