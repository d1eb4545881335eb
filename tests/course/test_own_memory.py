"""An answer on several ranks shares nothing with itself on another one."""

from threading import Thread

import pytest
import torch

from labs_helpers.course.own_memory import OnEachRank, made_anew, of_its_own
from labs_helpers.course.verdict.by_pytorch import ByPyTorch
from labs_helpers.grading.judged import defined, run_cell
from labs_helpers.practice.process_groups import practice_process_groups


def test_ranks_share_nothing_that_can_change():
    names: dict = {}
    exec("BOX = ([0],)\nALIAS = BOX[0]\ndef f(v, kept=[], *, more={}):\n    kept.append(v); more[v] = v\n"
         "    BOX[0][0] += v\n    return BOX[0][0], ALIAS[0], len(kept), len(more)", names)  # fmt: skip
    first, second = of_its_own(names["f"]), of_its_own(names["f"])
    assert first(1) == (1, 1, 1, 1) and second(2) == (2, 2, 1, 1) and first(1) == (2, 2, 2, 1)


SHARED = {
    "a list": "BOX = []\ndef f(v):\n    BOX.append(v)\n    return len(BOX)",
    "a class's list": "class Box:\n    kept = []\ndef f(v):\n    Box.kept.append(v)\n    return len(Box.kept)",
    "a list that a method reads": "BOX = []\nclass Box:\n    def add(self, v):\n        BOX.append(v)\n"
    "        return len(BOX)\ndef f(v):\n    return Box().add(v)",
    "the default of a function in a list": "def keep(v, kept=[]):\n    kept.append(v)\n    return len(kept)\n"
    "KEEP = [keep]\ndef f(v):\n    return KEEP[0](v)",
    "a generator": "import itertools\nBOX = (box for box in itertools.cycle([[]]))\ndef f(v):\n    box = next(BOX)\n"
    "    box.append(v)\n    return len(box)",
    "a callable of its own": "class Box:\n    def __init__(self):\n        self.kept = []\n    def __call__(self, v):\n"
    "        self.kept.append(v)\n        return len(self.kept)\nf = Box()",
}


@pytest.mark.parametrize("name", SHARED)
def test_ranks_whose_cells_are_known_run_them_each(name):
    job = {"name": "f", "imports": [], "before": [], "source": SHARED[name]}
    function = defined(job, {})
    with made_anew(function, lambda: defined(job, {})):
        own_of = OnEachRank(function)
        ran = practice_process_groups(lambda group, rank: [own_of(rank), own_of(rank)], 3)
    assert ran.results == [[1, 2]] * 3 and function(1) == 1


def test_a_thread_keeps_its_memory_from_call_to_call():
    names: dict = {}
    exec(SHARED["a list"], names)
    own_of, found = OnEachRank(names["f"]), []
    thread = Thread(target=lambda: found.extend([own_of(1), own_of(2)]))
    thread.start()
    thread.join(100)
    assert found == [1, 2] and own_of(3) == 1 and names["BOX"] == []


def test_what_another_cell_lets_pytorch_do_is_seen():
    names = {"torch": torch}
    run_cell("def helper(x):\n    return torch.softmax(x.reshape(-1), 0)", "<one>", names)
    run_cell("def f(x):\n    return helper(x)", "<two>", names)
    with ByPyTorch(names["f"]) as beside:
        names["f"](torch.ones(3))
    assert beside.calls == ["torch.softmax"]
