"""Give each of several ranks its own copy of an answer, with separate memory.

Real ranks are processes, each of which has run the cells. Practice ranks are threads of one process. Here, each
practice rank gets the result of another run of the cells or, if these are unknown as in a notebook, a copy of the
answer.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from labs_helpers.compile.source import names_used, plain, reachable

_known: list[tuple[Any, Callable[[], Any]]] = []  # an answer, and the function that recreates it


@contextmanager
def made_anew(answer, make: Callable[[], Any]) -> Iterator[None]:
    """Inside the block, make() recreates the answer so that it shares nothing with another copy."""
    _known.append((answer, make))
    try:
        yield
    finally:
        _known.pop()


class OnEachRank:
    """An answer that may be called on any thread and has separate memory on each. fn: the answer itself."""

    def __init__(self, student) -> None:
        self.fn, self._here = student, threading.local()

    def __call__(self, *args, **named):
        if not hasattr(self._here, "own"):
            self._here.own = of_its_own(self.fn)
        return self._here.own(*args, **named)


def of_its_own(student):
    """Return the answer with separate memory for its global variables, defaults and closures, as real ranks have it
    and threads do not."""
    for answer, make in _known:
        if answer is student:
            return _with_names(make(), student)
    if not isinstance(plain(student), FunctionType):
        return student
    parts = [plain(part) for part in reachable(student).values()]
    copies: dict[int, Any] = {}  # shared, so that two names of one object still refer to one object
    home = dict(plain(student).__globals__)
    for name in {name for part in parts for name in names_used(part)} & home.keys():
        value = home[name]
        home[name] = _with_memory(value, home, copies) if any(value is part for part in parts) else _copy(value, copies)
    return _with_memory(plain(student), home, copies)


def _with_names(made, student):
    """Return `made` after its module has got the names that the student's module got since its cells ran."""
    for name, value in getattr(plain(student), "__globals__", {}).items():
        getattr(plain(made), "__globals__", {}).setdefault(name, value)
    return made


def _copy(value, copies: dict[int, Any]):
    """Return a copy of a mutable value; a value that cannot be copied, such as a communicator, is returned itself."""
    if isinstance(value, FunctionType | BuiltinFunctionType | type | ModuleType):
        return value
    try:
        return copy.deepcopy(value, copies)
    except Exception:
        return value


def _with_memory(function, home: dict, copies: dict[int, Any]):
    cells = function.__closure__ and tuple(CellType(_copy(cell.cell_contents, copies)) for cell in function.__closure__)
    defaults = _copy(function.__defaults__, copies)
    made = FunctionType(function.__code__, home, function.__name__, defaults, cells)
    made.__kwdefaults__ = _copy(function.__kwdefaults__, copies)
    return made


def global_names(student) -> Any:
    """Return the answer's global names, with `get` and assignment; if it runs in another process, those of that
    process."""
    return student if hasattr(student, "anew") else getattr(plain(student), "__globals__", {})


def random_state(student) -> list[Any]:
    """Return the state of the global random number generators in this process or, if the answer has one, in its
    process."""
    if hasattr(student, "random_state"):
        return student.random_state()
    return [repr(random.getstate()), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()]


def names_in(student) -> set[str]:
    """Return all names and attributes that the answer, its inner functions and the functions it calls look up."""
    return {name for part in reachable(student).values() for name in _names(plain(part).__code__)}


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
