"""Test that a student's function, as on a machine with a GPU, is interpreted in another process with everything it
uses."""

import threading
from types import SimpleNamespace

import pytest
import torch

from labs_helpers.compile import interpreter_process
from labs_helpers.compile.interpreter_process import call, call_interpreted, interpreted
from tests.compile.cells import Cells

IMPORTS = """
import math, functools, enum, dataclasses
import torch
import triton
import triton.language as tl
from math import floor as down
"""
# A cell before, the cell with `f`, and what f(3) is. Each row failed in another way where sources traveled.
TABLE = {
    "a default": ("EPS = 4", "def f(x, eps=EPS): return x + eps", 7),
    "a default of a name only": ("EPS = 4", "def f(x, *, eps=EPS): return x + eps", 7),
    "a default that is computed": ("SIZES = {'a': 5}", "def f(x, n=SIZES['a'] + 1): return x + n", 9),
    "a default bound before": ("EPS = 4", "def f(x, eps=EPS): return x + eps\nEPS = None", 7),
    "a default of a closure": ("def make(n):\n    def f(x, k=n): return x + k\n    return f", "f = make(6)", 9),
    "a decorator": ("def twice(g): return lambda x: 2 * g(x)", "@twice\ndef f(x): return x", 6),
    "a decorator with arguments": (
        "def times(n):\n    def made(g):\n        @functools.wraps(g)\n        def h(x): return n * g(x)\n"
        "        return h\n    return made", "@times(5)\ndef f(x): return x", 15,
    ),
    "an annotation": ("class Number: pass", "def f(x: Number) -> list[Number]: return x", 3),
    "an annotation as text": ("", "def f(x: 'Unknown') -> 'Unknown': return x", 3),
    "a closure": ("def make(n):\n    def f(x): return x + n\n    return f", "f = make(4)", 7),
    "a class": (
        "UNIT = 2\nclass Scale:\n    unit = UNIT\n    def of(self, x): return x * self.unit",
        "def f(x): return Scale().of(x)", 6,
    ),
    "a class and its base": (
        "class A:\n    def go(self, x): return x + 1", "class B(A): pass\ndef f(x): return B().go(x)", 4,
    ),
    "a class inside": ("START = 1", "def f(x):\n    class Sum:\n        total = START\n    return Sum.total + x", 4),
    "a dataclass": ("@dataclasses.dataclass\nclass P:\n    x: int = 4", "def f(x): return P(x).x + P().x", 7),
    "an enumeration": ("class Way(enum.Enum):\n    UP = 1", "def f(x, way=Way.UP): return x + way.value", 4),
    "a comprehension": ("SIZES = (1, 2)", "def f(x): return sum(n * x for n in SIZES)", 9),
    "a nested function's default": ("N = 2", "def f(x):\n    def g(y=N): return y\n    return g() + x", 5),
    "a lambda": ("N = 2", "f = lambda x: x + N", 5),
    "recursion": ("", "def f(x): return x * f(x - 1) if x else 1", 6),
    "one calls the other": ("def g(x): return f(x - 1)", "def f(x): return g(x) if x else 8", 8),
    "a name from a module": ("", "def f(x): return down(x + 0.5) + math.floor(0.5)", 3),
    "a name under another": ("def _g(x): return x + 1\nhelper = _g", "def f(x): return helper(x)", 4),
    "a local that hides a global": (
        "lock = __import__('threading').Lock()", "def f(x):\n    lock = 1\n    return x + lock", 4,
    ),
    "a dtype": ("KIND = torch.float64", "def f(x): return torch.ones(x, dtype=KIND).sum().item()", 3.0),
    "a tensor": ("W = torch.arange(3)", "def f(x): return (W * x).sum().item()", 9),
    "infinity": ("LOW = float('-inf')", "def f(x): return max(x, LOW)", 3),
    "partial": ("def g(a, x): return a + x", "f = functools.partial(g, 4)", 7),
    "a kernel": (
        "OFFSET = tl.constexpr(2)\n@triton.jit\ndef add(x): return x + OFFSET\nBLOCK_SIZE = tl.constexpr(16)\n"
        "@triton.jit\ndef k(x_ptr, y_ptr, BLOCK: tl.constexpr = BLOCK_SIZE):\n    i = tl.arange(0, BLOCK)\n"
        "    tl.store(y_ptr + i, add(tl.load(x_ptr + i)))",
        "def f(x):\n    y = torch.empty(16)\n    k[(1,)](torch.full((16,), float(x)), y)\n    return y.sum().item()",
        80.0,
    ),
}  # fmt: skip


def each(first, others):
    """What each function gives, or its error."""
    found = []
    for function in (first, *others):
        try:
            found.append(function(3))
        except Exception as error:
            found.append(repr(error))
    return found


@pytest.fixture(scope="module")
def elsewhere():
    functions = []
    for before, cell, _ in TABLE.values():
        cells = Cells()
        for text in (IMPORTS, before, cell):
            cells.run(text)
        functions.append(cells["f"])
    return dict(zip(TABLE, call_interpreted(each, functions[0], functions[1:]), strict=True))


@pytest.mark.parametrize("name", TABLE)
def test_what_a_function_refers_to_travels_with_it(elsewhere, name):
    assert elsewhere[name] == TABLE[name][2]


def test_what_cannot_be_sent_is_named():
    cells = Cells()
    cells.run("import threading\nguard = threading.Lock()\ndef f(x):\n    with guard:\n        return x")
    with pytest.raises(TypeError, match=r"(?s)`f` is sent to another process with all .* and `guard` cannot be sent"):
        call_interpreted(call, cells["f"], 3)


def test_a_traceback_shows_the_cells_line():
    cells = Cells()
    cells.run("def f(x):\n    return x / 0  # here")
    with pytest.raises(RuntimeError, match=r"return x / 0  # here"):
        call_interpreted(call, cells["f"], 3)


def test_where_kernels_are_compiled_another_process_is_asked(monkeypatch):
    def thread(student):
        return threading.get_native_id()

    def machine(interpreted):
        monkeypatch.setattr(interpreter_process, "this_machine", lambda: SimpleNamespace(interpreted=interpreted))

    machine(interpreted=True)
    here = interpreted(thread, len)
    assert here == threading.get_native_id()
    machine(interpreted=False)
    assert interpreted(call, torch.add, torch.ones(2), torch.ones(2)).tolist() == [2, 2]
