"""An answer as one of several ranks has it: with global variables of its own."""

from __future__ import annotations

import copy
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

from labs_helpers.compile.source import names_used, plain, reachable


def of_its_own(student):
    """The answer with memory of its own for what it keeps in global variables, defaults and closures: real ranks have
    that, threads do not."""
    parts = [plain(part) for part in reachable(student).values()]
    copies: dict[int, Any] = {}  # one for all, so that two names of one thing stay two names of one thing
    home = dict(plain(student).__globals__)
    for name in {name for part in parts for name in names_used(part)} & home.keys():
        value = home[name]
        home[name] = _with_memory(value, home, copies) if any(value is part for part in parts) else _copy(value, copies)
    return _with_memory(plain(student), home, copies)


def _copy(value, copies: dict[int, Any]):
    """A copy of what can be changed; what cannot be copied, such as a communicator, as it is."""
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


def names_in(student) -> set[str]:
    """All that the answer and what it calls look up, attributes too, and that of what is defined inside."""
    return {name for part in reachable(student).values() for name in _names(plain(part).__code__)}


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
