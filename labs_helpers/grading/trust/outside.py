"""Names that an answer reads from outside of itself, as Python's compiler resolves them.

A name that an answer binds somewhere is not bound everywhere: `def unused(exec): …` leaves `exec` to the others what
it was, and `exec = 1` in the last line changes nothing about the line before.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from inspect import CO_NEWLOCALS
from types import CodeType

from labs_helpers.grading.trust.vocabulary import Vocabulary


def read_from_outside(tree: ast.Module, vocabulary: Vocabulary) -> Iterator[tuple[int, str]]:
    """(line, name) of what is read before the answer has bound it, or without: of code that runs with the definitions
    by what was bound until then, of functions' by all that the answer binds at its top level. Names with underscores
    before them and modules' are looked at elsewhere."""
    known = vocabulary.names | vocabulary.modules
    code = compile(tree, "answer", "exec", dont_inherit=True)
    at_top = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}
    for line, name in _read(code, set(), at_top, at_once=True):
        if name not in known and not name.startswith("__"):
            yield line, name


def _read(code: CodeType, bound: set[str], at_top: set[str], at_once: bool) -> Iterator[tuple[int, str]]:
    inner = set[str]()  # of a class's body
    line = code.co_firstlineno
    for one in dis.get_instructions(code):
        line = (one.positions.lineno if one.positions else None) or line
        if one.opname in ("STORE_NAME", "STORE_GLOBAL"):
            (bound if code.co_name == "<module>" else inner).add(one.argval)
        elif one.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            if one.argval not in (bound | inner if at_once else at_top):
                yield line, one.argval
        elif isinstance(one.argval, CodeType):
            # A comprehension, a class's body and a lambda, which may be called at once, run with the definitions.
            named = bool(one.argval.co_flags & CO_NEWLOCALS) and not one.argval.co_name.startswith("<")
            yield from _read(one.argval, bound | inner if at_once else set(at_top), at_top, at_once and not named)
