"""An answer as one of several ranks has it: with global variables of its own."""

from __future__ import annotations

import copy
from types import CodeType, FunctionType

import numpy as np

from labs_helpers.compile.source import names_used, plain, reachable


def of_its_own(student):
    """The answer with memory of its own for what it keeps in global variables: real ranks have that, threads do not."""
    parts = [plain(part) for part in reachable(student).values()]
    if not any(isinstance(value, np.ndarray | list | dict) for part in parts for value in names_used(part).values()):
        return student
    home = dict(plain(student).__globals__)
    for name in {name for part in parts for name in names_used(part)} & home.keys():
        value = home[name]
        if isinstance(value, np.ndarray | list | dict):
            home[name] = copy.deepcopy(value)
        elif any(value is part for part in parts):
            home[name] = _with_globals(value, home)
    return _with_globals(plain(student), home)


def _with_globals(function, home: dict):
    return FunctionType(function.__code__, home, function.__name__, function.__defaults__, function.__closure__)


def names_in(student) -> set[str]:
    """All that the answer and what it calls look up, attributes too, and that of what is defined inside."""
    return {name for part in reachable(student).values() for name in _names(plain(part).__code__)}


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
