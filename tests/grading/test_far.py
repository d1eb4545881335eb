"""Test answers in separate processes: the data exchanged, what they cannot reach, and how kernels are launched."""

import os
import sys
import weakref
from collections import UserDict
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.meter import metered
from labs_helpers.course.reached_tensors import tensors_reached
from labs_helpers.course.verdict.surroundings import guarded_outputs, surrounded
from labs_helpers.data_parallel.lab09.freed_memory import watched_memory
from labs_helpers.gemm.configs import Config
from labs_helpers.grading.far.answer import Nursery
from labs_helpers.grading.far.judge import FarFunction
from labs_helpers.grading.far.kernels import kernels
from labs_helpers.grading.far.memory import Refused
from labs_helpers.grading.far.wire import Lost

LIMIT_S = 300


@pytest.fixture(scope="module")
def nursery():
    os.environ.setdefault("TRITON_INTERPRET", "1")
    import triton  # noqa: F401  # which the nursery has, as in a jail

    made = Nursery()
    yield made
    made.end()


@pytest.fixture
def far(nursery):
    def make(source, imports=("import numpy as np", "import torch"), name="f", asked=()):
        job = {"imports": list(imports), "before": [], "source": source, "name": name, "asked": asked}
        return FarFunction(job, nursery.born, monotonic() + LIMIT_S)

    return make


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)  # fmt: skip


class TestData:
    def test_comes_back_as_it_went(self, far):
        same = far("def f(x): return x")

        @settings(max_examples=60, deadline=None, derandomize=True)
        @given(VALUES)
        def comes_back(value):
            found = same(value)
            assert found == value and type(found) is type(value)

        comes_back()
        for value in (range(3, 9, 2), slice(1, None), torch.float16, np.float32, np.add, np.dtype("int8"), {1, 2}):
            assert same(value) == value
        assert same(np.float32(1.5)) == 1.5 and same(torch.Size([2, 3])) == (2, 3)

    @pytest.mark.parametrize(
        ("line", "value"),
        [
            ("import typing\nclass P(typing.NamedTuple):\n    x: int\n    y: int\ndef f(): return P(1, 2)", (1, 2)),
            ("def f(): return torch.tensor([3, 5]).max(0)", (5, 1)),
            ("import collections\ndef f(): return collections.Counter('aab')", {"a": 2, "b": 1}),
            ("import collections\ndef f(): return collections.defaultdict(list, a=[1])", {"a": [1]}),
            ("import fractions\ndef f(): return fractions.Fraction(1, 4)", 0.25),
            ("import enum\nclass E(enum.IntEnum):\n    A = 4\ndef f(): return [E.A]", [4]),
        ],
    )
    def test_a_value_of_its_own_class_comes_as_what_it_is_besides(self, far, line, value):
        found = far(line)()
        assert found == value and type(found) is type(value)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
    def test_a_tensor_comes_back_as_the_same_object(self, far, dtype):
        x = torch.arange(12).reshape(3, 4).to(dtype).mT
        assert far("def f(x): return x")(x) is x

    def test_a_view_of_an_argument_is_one_here(self, far):
        x = surrounded(torch.arange(12.0).reshape(3, 4))
        row = far("def f(x): return x[1]")(x)
        x[1, 2] = 7
        assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and row[2] == 7
        y = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        assert np.shares_memory(far("def f(y): return y.T[1:]")(y), y)

    def test_what_is_written_there_is_written_here(self, far):
        x, y = torch.zeros(4, 4)[:, 1:3], np.zeros((3, 2), np.int16)[::2]
        far("def f(x, y):\n    x += 1\n    y[1] = 5")(x, y)
        assert bool((x == 1).all()) and x._base.sum() == 8 and y.tolist() == [[0, 0], [5, 5]]

    def test_of_a_rank_s_row_it_sees_no_other(self, far):
        rows = np.ones((3, 4))
        far("def f(x): x += 1")(rows[1])
        assert rows.tolist() == [[1] * 4, [2] * 4, [1] * 4]
        assert far("def f(x): return float(x.base.view(float).sum())")(rows[1]) == 8

    def test_memory_outlives_its_process(self, far):
        function = far("def f(): return torch.arange(5), np.arange(4.0)")
        found = function()
        del function
        assert found[0].tolist() == [0, 1, 2, 3, 4] and found[1].tolist() == [0, 1, 2, 3]

    def test_gradients_of_parameters_go_both_ways(self, far):
        p = torch.nn.Parameter(torch.ones(3))
        p.grad = torch.full((3,), 2.0)
        far("def f(p):\n    p.grad *= 3\n    p.grad = p.grad + 1")(p)
        assert p.grad.tolist() == [7, 7, 7]

    def test_lists_and_dicts_that_it_changes_change_here(self, far):
        numbers, table, kept = [1, 2, 3], {"inner": {1, 2}}, UserDict({0: {"a": 1}})
        source = "def f(x, y, z):\n    x.reverse(); y['inner'].add(3); z[0]['b'] = 2; z[0].pop('a'); return z[0]"
        found = far(source)(numbers, table, kept)
        once = far("kept = []\ndef f(x):\n    kept.append(x)\n    return kept")
        assert once(1) == [1] and (last := once(2)) == [1, 2] and once(3) == last == [1, 2, 3]
        assert numbers == [3, 2, 1] and table == {"inner": {1, 2, 3}} and found == kept[0] == {"b": 2}

    @pytest.mark.parametrize("line", ["torch.mul(y, 2)", "y.mul(2) + y.item() * 0", "torch.tensor(2.0) * y", "2 * y"])
    def test_an_answer_computes_with_a_loss_of_the_judge_s(self, far, line):
        p = torch.ones(3, requires_grad=True)
        far(f"def f(y): ({line}).backward()", asked=["backward"])((3 * p).sum())
        assert p.grad.tolist() == [6, 6, 6]

    def test_the_course_s_records_go_by_value_and_come_back_themselves(self, far):
        configs = [Config(16, 32, 64), Config(32, 32, 32)]
        assert far("def f(some): return max(some, key=lambda one: one.BLOCK_M)")(configs) is configs[1]


class TestCalls:
    def test_functions_go_both_ways(self, far):
        heard = []
        twice = far("def f(hear):\n    hear(1)\n    return lambda x: 2 * x")(lambda x: heard.append(x))
        assert heard == [1] and twice(4) == 8

    def test_an_error_has_its_type_its_words_and_its_line(self, far):
        with pytest.raises(KeyError, match="lost") as error:
            far("def f(x):\n    return {}['lost']")(1)
        assert error.value.own_line == "\n  line 2: return {}['lost']"

    def test_an_error_of_the_judge_s_passes_through_it(self, far):
        def interrupt():
            raise KeyboardInterrupt

        assert far("def f(g):\n    try: g()\n    except KeyboardInterrupt: return 3")(interrupt) == 3

    def test_each_rank_has_its_own(self, far):
        count = far("n = 0\ndef f():\n    global n\n    n += 1\n    return n")
        assert (count(), count(), count.anew()()) == (1, 2, 1)

    def test_its_text_can_be_read_and_not_called(self, far):
        function = far("import os\nos.abort()\ndef f(x, y=3): return x.shape")
        assert function.as_text.__code__.co_varnames == ("x", "y") and "shape" in function.as_text.__code__.co_names
        with pytest.raises(RuntimeError, match="only read"):
            function.as_text(1)


class TestMemoryAndGraphs:
    def test_memory_that_an_answer_lets_go_of_is_released_here(self, far):
        made = []

        def some():
            for _ in range(3):
                made.append(weakref.ref(one := torch.ones(4)))
                yield one
                del one
                alive.append(sum(ref() is not None for ref in made))

        alive: list[int] = []
        far("def f(some):\n    for one in some: one.add_(1)")(some())
        assert alive == [1, 1, 1]
        alive.clear()
        far("def f(some): return len(list(some))")(some())
        assert alive[-1] == 3

    def test_a_backward_pass_runs_there_and_what_it_keeps_is_seen_here(self, far):
        source = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.full((2, 5), 3.0))
        return 2 * x
    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0].sum()
def f(x): return Twice.apply(x)
"""
        x, saved = torch.ones(3, requires_grad=True), []
        with torch.autograd.graph.saved_tensors_hooks(lambda one: (saved.append(one.shape), one)[1], lambda one: one):
            y = far(source)(x)
        y.sum().backward()
        assert y.tolist() == [2, 2, 2] and x.grad.tolist() == [30, 30, 30]
        assert type(y.grad_fn).__name__ == "TwiceBackward" and saved == [(2, 5)]

    def test_a_tensor_may_ask_for_its_gradient_after_it_was_filled_here(self, far):
        source = """
def f(fill, stage):
    x = torch.empty(2)
    fill(x)
    stage(x.requires_grad_()).backward()
    return x.grad
"""
        assert far(source)(lambda x: x.fill_(3), lambda x: x.square().sum()).tolist() == [6, 6]
        weight = torch.ones(2)
        far("def f(x, look):\n    look(x.requires_grad_())")(weight, lambda x: None)
        assert not weight.requires_grad  # the judge's own tensor

    def test_watched_memory_is_resized_here_and_no_other(self, far):
        function = far("def f(x):\n    x.untyped_storage().resize_(0)\n    return x.untyped_storage().nbytes()")
        x, freed = torch.ones(4), torch.ones(4)
        with watched_memory() as watched:
            list(map(watched.watch, (x, freed)))
            freed.untyped_storage().resize_(0)
            assert function(freed) == 0
            assert function(x) == 0 and not watched.alive(x) and bool(x.isnan().all())
            with pytest.raises(RuntimeError, match="stays as it is"):
                function(torch.ones(4))

    def test_what_a_function_of_it_holds_is_counted(self, far):
        hook = far("def f():\n    kept = [torch.ones(6)]\n    return lambda: kept")()
        assert [one.tolist() for one in tensors_reached([hook])] == [[1.0] * 6]

    def test_another_interpreter_has_other_hashes(self, far):
        function = far("def f(x): return hash(x)")
        assert len({function.elsewhere({"PYTHONHASHSEED": seed})("word") for seed in "12"}) == 2

    @pytest.mark.parametrize("line", ["import sys\ndef f(): sys.exit(3)", "def f(): quit()", "raise SystemExit"])
    def test_an_exit_is_an_error(self, far, line):
        with pytest.raises(RuntimeError, match="SystemExit"):
            far(line)()


class TestReach:
    @pytest.mark.parametrize("end", ["os._exit(0)", "os.close(3); os.closerange(0, 64)", "os.abort()"])
    def test_its_end_is_an_error_here(self, far, end):
        with pytest.raises(Lost):
            far(f"import os\ndef f(x): {end}")(1)

    @pytest.mark.parametrize(
        "line",
        [
            "b'0' * 100", "bytes(8) + b'{}'", "(2**40).to_bytes(8) + bytes(4)",
            "(30).to_bytes(8) + (30).to_bytes(4) + b'{\"is\": 1, \"memory\": [[7]] }     '",
        ],
    )  # fmt: skip
    def test_what_is_no_message_is_an_error_here(self, far, line):
        to_all = f"for d in range(3, 64):\n        try: os.write(d, {line})\n        except OSError: pass"
        forged = f"import os\ndef f(x):\n    {to_all}\n    os._exit(0)"
        with pytest.raises((Lost, ValueError, KeyError, TypeError)):
            far(forged)(1)

    def test_an_array_beyond_its_memory_is_refused(self, far):
        forged = """
import gc
wire = next(one for one in gc.get_objects() if type(one).__name__ == "_Answer")
wire.packed = lambda value: {"array": {"kind": "Tensor", "dtype": "float32", "shape": [64], "block": 0, "offset": 0,
                                       "strides": [4], "grad": False}} if value is not None else None
def f(x):
    return x
"""
        with pytest.raises(Refused, match="beyond its memory"):
            far(forged)(torch.zeros(4))

    @pytest.mark.parametrize("name", ["__builtins__", "memory", "COMM_WORLD", "Open_port"])
    def test_of_mpi_it_names_operations_alone(self, far, monkeypatch, name):
        monkeypatch.setitem(sys.modules, "mpi4py.MPI", SimpleNamespace(**{name: print}))
        forged = f"""
import gc
wire = next(one for one in gc.get_objects() if type(one).__name__ == "_Answer")
wire.packed = lambda value: {{"named": ["MPI", "{name}"]}} if value is not None else None
def f(x):
    return x
"""
        with pytest.raises(Refused, match=name):
            far(forged)(1)

    def test_of_objects_it_has_what_is_asked_for_alone(self, far):
        class Model:
            width, secret = 4, 5

        assert far("def f(m): return m.width", asked=["width"])(Model()) == 4
        for name in ("secret", "__class__", "__init__"):
            with pytest.raises((AttributeError, ValueError)):
                far(f"def f(m): return m._method('{name}') if '_' in '{name}' else m.{name}", asked=["width"])(Model())

    @pytest.mark.parametrize(
        "line",
        [
            "import labs_helpers.tensor_parallel.cross_entropy",
            "from labs_helpers import gemm",
            "import importlib; importlib.import_module('labs_helpers.gemm.fused')",
        ],
    )
    def test_the_library_is_not_imported_by_its_cells(self, far, line):
        with pytest.raises(ImportError, match="not among the imports"):
            far(f"def f(x):\n    {line}")(1)

    @pytest.mark.parametrize(
        "line",
        [
            "os.kill(os.getpid(), 19)", "os.kill(os.getppid(), 19)", "os.kill(-1, 19)", "os.open(path, os.O_CREAT)",
            "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", "resource.prlimit(os.getppid(), 4, (0, 0))",
            "os.setpriority(os.PRIO_USER, 0, 19)", "os.sched_setaffinity(os.getppid(), {0})", "os.symlink('y', path)",
            "socket.socket(socket.AF_UNIX)", "fcntl.lockf(0, fcntl.LOCK_SH)", "os.mkdir(path)", "os.utime('/tmp')",
        ],
    )  # fmt: skip
    def test_it_neither_disturbs_its_judge_nor_reaches_another_answer(self, far, tmp_path, line):
        with pytest.raises(PermissionError):
            far(f"import fcntl, os, resource, socket\npath = '{tmp_path}/x'\ndef f(x): {line}")(1)

    def test_it_writes_no_files(self, far, tmp_path):
        (tmp_path / "x").touch()
        with pytest.raises((OSError, Lost)):
            far(f"def f(x):\n    with open('{tmp_path}/x', 'w') as file: file.write('y' * 9)")(1)


TRITON = ("import torch", "import triton", "import triton.language as tl")
ADD = """
SHIFT: tl.constexpr = 2
@triton.jit
def plus(x, shift):
    return x + shift
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    '''
def kernel(x_ptr, y_ptr, n, BLOCK):
    tl.store(y_ptr, 7)
    '''
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, plus(tl.load(x_ptr + at, mask=at < n), SHIFT), mask=at < n)
def f(x, BLOCK=16):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(len(x), meta["BLOCK"]),)](x, y, len(x), BLOCK=BLOCK)
    return {}
"""


class TestKernels:
    def test_the_judge_launches_them_on_its_own_memory(self, far):
        x, function = torch.arange(20.0), far(ADD.format("y"), imports=TRITON)
        with guarded_outputs() as guard, function.kernels_alone() as beside:
            y = function(x)
        assert torch.equal(y, x + 2) and guard.buffers and guard.overwritten() == 0
        assert y.untyped_storage().data_ptr() == guard.buffers[0][0].untyped_storage().data_ptr()
        assert beside == []

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("SHIFT: tl.constexpr = 2", "import math\nSHIFT = tl.constexpr(math.log2(4))"),
            ("SHIFT: tl.constexpr = 2", "try: SHIFT = unknown\nexcept: SHIFT = torch.tensor(2).item()"),
            ("BLOCK: tl.constexpr", "BLOCK: 'tl.constexpr'"), ("tl.load(", "fetch("),
            ("BLOCK: tl.constexpr", "BLOCK: tl.constexpr = 4, KIND: tl.constexpr = tl.float32"),
        ],
    )  # fmt: skip
    def test_they_may_be_written_in_any_style(self, far, old, new):
        source = ADD.format("y").replace(old, new).replace(", BLOCK=BLOCK" if "KIND" in new else "", "")
        x, function = torch.arange(20.0), far("from triton.language import load as fetch\n" + source, TRITON)
        assert torch.equal(function(x), x + 2)

    def test_a_trial_in_the_cell_is_no_part_of_the_first_call(self, far):
        x, function = torch.arange(20.0), far(ADD.format("y") + "first = f(torch.ones(3)) + 1\nraise OSError", TRITON)
        function.run_cells()
        with metered() as meter, function.kernels_alone() as beside:
            assert torch.equal(function(x), x + 2)
        assert len(meter.launches) == 1 and beside == []

    @pytest.mark.parametrize("result", ["y.mul_(1.0)", "x + 2", "y.clone()"])
    def test_what_pytorch_made_is_noticed(self, far, result):
        x, function = torch.arange(20.0), far(ADD.format(result), imports=TRITON)
        with function.kernels_alone() as beside:
            function(x)
        assert bool(beside) == (result != "y.mul_(1.0)")  # the same numbers as before

    def test_no_number_that_depends_on_a_tensor_reaches_a_kernel(self, far):
        x, function = torch.arange(20.0), far(ADD.replace("y, len(x)", "y, int(x[9]) + 11").format("y"), imports=TRITON)
        assert torch.equal(function(x), x + 2)
        with function.kernels_alone():
            assert not torch.equal(function(x + 100), x + 102)

    def test_a_kernel_s_failure_tells_its_answer_nothing(self, far):
        tried = "    try: assure[(1,)](x)\n    except Exception: pass\n"
        source = ADD.format("y").replace("    kernel[", f"{tried}    kernel[")
        source += "@triton.jit\ndef assure(x_ptr):\n    if tl.load(x_ptr) < 9:\n        tl.arange(0, 3)\n"
        with pytest.raises(Exception, match="power of 2"):
            far(source, imports=TRITON)(torch.arange(20.0))

    @pytest.mark.parametrize(
        "line",
        [
            "x_ptr.handle", "exec('1')", "().__class__", "tl.core", "tl.inline_asm_elementwise('', '', [], n, True, 1)",
            "(lambda: 1)()", "[i for i in (1, 2)]", "open('/etc/passwd')", "torch.zeros(1)", "f'{n}'", "tl.store.fn",
            "__import__", "tl.str_to_ty('tensordesc<fp32[1],print()>', None)", "tl.math.wraps(n, ('x',), ())(x_ptr)",
            "tl.math.T", "tl.tensor(x_ptr, n)", "tl.load(x_ptr, _semantic=n)", "tl.load(**n)",
        ],
    )  # fmt: skip
    def test_beyond_tritons_language_none_is_launched(self, line):
        with pytest.raises(Refused):
            kernels([f"import triton\n@triton.jit\ndef k(x_ptr, n):\n    {line}\n"])

    @pytest.mark.parametrize("given", ["Lies()", "(x, [Lies()])", "lambda: 1", "np.add", "{}"])
    def test_a_kernel_is_given_tensors_and_numbers_alone(self, far, given):
        source = ADD.replace("x, y, len(x), BLOCK", f"x, y, {given}, BLOCK")
        lies = "class Lies:\n    def data_ptr(self): return 4096\n"
        function = far(lies + source, imports=(*TRITON, "import numpy as np"))
        with pytest.raises(Refused, match="a kernel is given"):
            function(torch.arange(20.0))
        function.wire.socket.close()  # the error's frames hold it

    @pytest.mark.parametrize(
        "line", ["tl = n", "range = n", "def inner(): pass", "import os", "global x", "n.value = 3"]
    )
    def test_names_keep_their_meaning(self, line):
        with pytest.raises(Refused):
            kernels([f"@triton.jit\ndef k(x_ptr, n):\n    {line}\n"])
