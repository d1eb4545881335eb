"""Which answers need no look: every reference, and nothing with a way to the check, the course's files, the system."""

import ast
import importlib

import pytest

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.trust import own_classes
from labs_helpers.grading.trust.plain_answer import not_in_vocabulary
from labs_helpers.grading.trust.vocabulary import vocabulary
from labs_helpers.labs import LABS


def answers():
    for lab in LABS:
        earlier = []
        for exercise in lab.exercises():
            name = exercise.trial.__name__
            reference = exercise.reference or getattr(importlib.import_module(lab.transfer), name)
            yield pytest.param(cell_of(reference), tuple(earlier), id=exercise.id)
            earlier.append(name)


ANSWERS = list(answers())
REFERENCE = next(param.values[0] for param in ANSWERS if param.id == "02/5")
WORDS = vocabulary(REFERENCE)


@pytest.mark.parametrize("reference, earlier", ANSWERS)
def test_every_reference_is_plain(reference, earlier):
    assert not_in_vocabulary(reference, vocabulary(reference, earlier)) == []


@pytest.mark.parametrize("body", [
    "return torch.relu(a @ b + c)",
    "return [i ** 2 for i in range(3) if i % 2]",
    "rows: int = len(a); return {k: v for k, v in zip(range(rows), a)}",
    "import math; return math.ceil(len(a) / 3)",
    "from itertools import product; return list(product(a, b))",
    "assert a.is_contiguous(), f'{a.shape} is no shape'; return a.clone().contiguous()",
    "d = torch.empty_like(a, dtype=torch.float32); d[0] = 1; d += tl.cdiv(3, 2); return d.to(a.dtype)",
    "return torch.nn.functional.relu(a), F.silu(a), np.arange(3, dtype=np.int64).sum()",
    "print('here', a.shape)",
])  # fmt: skip
def test_ordinary_python_is_plain(body):
    assert not_in_vocabulary(f"def f(a, b, c):\n    {body}\n", WORDS) == []


ATTACKS = {
    "a check replaced": "check.traffic = None",
    "a check read": "return check",
    "imports": "import os",
    "a system behind torch": "torch.os.system('id')",
    "a module as a value": "m = torch\n    m.os",
    "a module's part as a value": "u = torch.utils",
    "a class's method replaced": "torch.Tensor.all = lambda self: True",
    "a class called for its methods": "return torch.Tensor.all(a)",
    "a function replaced": "torch.allclose = f",
    "files": "open('x')",
    "torch's files": "torch.load('x')",
    "numpy's files": "np.load('x')",
    "arrays' files": "a.tofile('x')",
    "dunder": "return f.__globals__",
    "dunder of a value": "return a.__class__.__mro__",
    "a frame": "return (i for i in a).gi_frame.f_back",
    "a traceback": "try:\n        1 / 0\n    except Exception as e:\n        return e.with_traceback(None).tb_frame",
    "getattr": "return getattr(a, 'sum')",
    "eval": "return eval('1')",
    "format": "return '{0.__class__}'.format(a)",
    "globals": "return globals()",
    "global": "global torch\n    return 1",
    "a name it should keep": "isinstance = lambda *x: True",
    "async": "async def g(): pass",
    "everything caught": "try:\n        pass\n    except BaseException:\n        pass",
    "all caught": "try:\n        pass\n    except:\n        pass",
    "magic": "get_ipython()",
    "an operator": "class A:\n        def __eq__(self, other): return True",
    "an array that lies": "class A:\n        def __array__(self): return 3",
    "an attribute of an argument": "a.requires_grad = True",
    "a default dtype": "torch.set_default_dtype(torch.float64)",
    "ctypes": "np.ctypeslib",
    "from elsewhere": "from labs_helpers.gemm.lab02 import exercises",
    "relative": "from . import x",
    "star": "from math import *",
    "from itertools, renamed": "from functools import singledispatch",
    "another torch": "torch = a",
    "match": "match a:\n        case int(): pass",
    "type": "return type('A', (), {})",
    "inline assembly by a longer chain": "tl.core.builtin",
    "exit": "raise SystemExit",
    "private": "return a._version",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_way_out_is_looked_at(name):
    assert not_in_vocabulary(f"def f(a, b, c):\n    {ATTACKS[name]}\n", WORDS) != []


@pytest.mark.parametrize("source", ["f(1)", "x = 1\nx += 1", "for i in range(3): pass", "def f(:", "-" * 40_000 + "1",
                                    "x.y = 1", "del x", "@f(1)\ndef g(): pass", "x: int = f.y.z = 3"])  # fmt: skip
def test_only_definitions_run_by_themselves(source):
    assert not_in_vocabulary(source, WORDS) != []


def test_what_is_beyond_is_told_with_its_line():
    told = not_in_vocabulary("def f(x):\n    open('x')\n    return x._y\n", WORDS)
    assert told == ["line 2: open", "line 3: ._y"] and ast.parse(REFERENCE)


def test_lines_are_counted_in_the_answers_own_cell():
    before = ("def own(x):\n    return x", "place = own.__dict__")
    told = not_in_vocabulary("def f(x):\n    open('x')\n    return own(x)\n", WORDS, before)
    assert told == ["in another cell: .__dict__", "line 2: open"]


@pytest.mark.parametrize("source", [
    "from torch import Tensor\ndef f(x: Tensor | None) -> list[Tensor]: return isinstance(x, (Tensor, list))",
    "def f(x: torch.Tensor):\n    y: torch.Tensor = torch.Tensor(x)\n    return isinstance(y, torch.Tensor | int)",
])  # fmt: skip
def test_others_classes_are_called_and_asked_for(source):
    assert not_in_vocabulary(source, vocabulary("")) == []


OF_AUTOGRAD = vocabulary("class A(torch.autograd.Function): pass\nA.apply")
STATIC = "class C(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
CONTEXTS = {
    "what its own function stores": (STATIC + "        ctx.scale = 2\n        return ctx.scale * x", []),
    "another": (STATIC + "        ctx = x\n        ctx.scale = 2", ["line 4: another ctx"]),
    "given": (STATIC + "        ctx.scale = 2\ndef f(x): C().forward(x)", ["line 5: .forward"]),
    "of another class": ("class C:\n    @staticmethod\n    def f(ctx): ctx.k = 1", ["line 3: a change of .k"]),
    "of no static method": ("class C(torch.autograd.Function):\n    def f(ctx): ctx.k = 1", ["line 2: a change of .k"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_ctx_is_autograd_s_own(name):
    source, told = CONTEXTS[name]
    assert not_in_vocabulary(source, OF_AUTOGRAD) == told


AROUND = {
    "self is anything": "def get(self): return self.Exercise",
    "self is another": "def f():\n    self = [1]\n    return self.count",
    "a class's method of another": "class C:\n    def put(self): self.tried = 1\ndef f(x): C.put(x)",
    "a class under another name": "class C:\n    def add(self): self.tried = 1\ndef f(x):\n    D = C\n    D.add(x)",
    "a frame": "class C:\n    def __init__(self): self.gi_frame = 1\n    def f(self): return self.gi_frame",
    "a module's module": "import statistics\ndef f(): return statistics.sys",
    "a module of torch": "def f(): return F.importlib",
    "a special name by import": "class A(int):\n    from math import isfinite as __eq__",
    "what runs with the definitions": "def look(): return 1\ndone = look()",
    "a decorator that does": "def look(f): return f\n@look\ndef f(): return 1",
    "a default that does": "def look(): return 1\ndef f(x=look()): return x",
    "an address": "def f(x): return x.data_ptr()",
    "self by import": "class C:\n    def put(self):\n        from torch import Tensor as self\n        self.all = 1",
    "self is an error": "class C:\n    def put(self):\n        try: pass\n        except OSError as self: self.x = 1",
    "self is a function": "class C:\n    def put(self):\n        def self(): pass\n        self.x = 1",
    "a static self": "class C:\n    @staticmethod\n    def put(self): self.all = 1\ndef f(x): C().put(torch.Tensor)",
    "a method renamed": "class C:\n    def put(self): self.all = 1\n    items = put\ndef f(x): C.items(torch.Tensor)",
    "a method as a default": "class C:\n    def put(self): self.all = 1\n    def get(self, x=put): return x",
    "a class's attribute": "from torch import Tensor\ndef f(x): Tensor.grad = property(len)",
    "a class in a list": "def f(x):\n    for t in [torch.Tensor]: t.data = property(len)",
    "a class renamed": "def f(x):\n    t = torch.Tensor\n    t.data = property(len)",
    "a function's attribute": "from torch.nn.functional import relu\ndef f(x): relu.data = x",
    "a tensor of its own": "class T(torch.Tensor):\n    def abs(self): return 0\ndef f(x): return T(x)",
    "a tensor under another name": "from torch import Tensor as T\nclass U(T):\n    def abs(self): return 0",
    "a class of a value": "class T([int][0]):\n    def abs(self): return 0\ndef f(x): return T(x)",
    "gradients by autograd": "def f(x):\n    y = x.sum()\n    y.backward()\n    return x.grad",
}


@pytest.mark.parametrize("name", AROUND)
def test_ways_around_the_vocabulary_are_seen(name):
    assert not_in_vocabulary(AROUND[name], vocabulary("")), name


def test_a_plain_class_is_plain():
    source = "class C:\n    def __init__(self, n): self.n = n\n    def twice(self): return 2 * self.n\n"
    assert not_in_vocabulary(source + "def f(n):\n    c = C(n)\n    return isinstance(c, C)", vocabulary("")) == []


def test_the_vocabulary_holds_no_module():
    import importlib
    import types

    from labs_helpers.grading.trust.vocabulary import MODULES, general

    roots = {name: importlib.import_module(module) for name, module in MODULES.items()}
    for chain in general().of_modules:
        first, *rest = chain.split(".")
        value = roots.get(first)
        for word in rest:
            value = getattr(value, word, None)
        assert not rest or not isinstance(value, types.ModuleType) or chain in ("torch.nn.functional",), chain


def test_what_a_class_stores_is_worked_out_once():
    source = "class Own:\n    def __init__(self):\n" + "        self.a = self.b = 1\n" * 300
    before = own_classes.made_by.cache_info().misses
    assert not_in_vocabulary(source, WORDS) == [] and own_classes.made_by.cache_info().misses == before + 1
