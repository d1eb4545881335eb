"""Test verdicts from the jail on answers that are right, wrong, dead, endless, or claim to be right."""

import json
import re
import sys

import pytest

from labs_helpers.course.stub import cell_of
from labs_helpers.grading import verdict as module
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, why_not
from labs_helpers.grading.judged import judged
from labs_helpers.grading.reading.lab_imports import imports_of, used_by
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.submission import Answer, shipped_exercises
from labs_helpers.grading.verdict import CRASHED, RIGHT, TIMEOUT, WRONG, verdicts
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import ProcessFailed, run

LAB = LABS[0]
IMPORTS = imports_of(read_cells(LAB.path))


def verdict(answer, limits=LIMITS):
    return verdicts([answer], IMPORTS, limits, seeds=(5,))[0]


needs_jail = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def first():
    return shipped_exercises(LAB)[0]


@needs_jail
def test_the_reference_is_right_case_by_case(first):
    found = verdict(Answer(first, cell_of(LAB.exercises()[0].reference), before=("broken = 1 / 0",)))
    assert found.status == RIGHT and len(found.lines) >= 3 and not found.message and found.values[0]


def test_what_is_nested_without_end_is_no_verdict():
    nested = "[" * 10_000 + "]" * 10_000
    told = f'{{"status": "right", "lines": [], "message": "", "values": {nested}}}'
    assert module._verdict(told, "no word").status == CRASHED


@needs_jail
def test_who_says_that_he_is_right_is_wrong(first):
    forged = f"""
import os, sys
for descriptor in range(10):
    try:
        os.write(descriptor, b'0000 {{"status": "right", "lines": [], "message": ""}}\\n' * 3)
    except OSError:
        pass
def {first.name}(*given):
    print("right")
"""
    found = verdict(Answer(first, forged))
    assert found.status in (WRONG, CRASHED) and found.message and not found.lines


@needs_jail
def test_an_answer_that_ends_its_process_costs_its_own_exercise(first):
    found = verdict(Answer(first, f"import os\ndef {first.name}(*given):\n    os._exit(0)\n"))
    assert found.status == CRASHED and found.message == "the process that ran it: its process ended"


@needs_jail
def test_what_an_answer_leaves_behind_keeps_nobody_waiting(first):
    """Its child holds the pipe open, for longer than this test may take."""
    source = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\nos._exit(0)\n"
    assert verdict(Answer(first, source), Limits(seconds=300)).status == CRASHED


@needs_jail
def test_answers_together_are_judged_one_by_one(first):
    second = shipped_exercises(LAB)[1]
    wrong = Answer(second, f"def {second.name}(*given): return 1")
    right = Answer(first, cell_of(LAB.exercises()[0].reference))
    assert [one.status for one in verdicts([wrong, right], IMPORTS, seeds=(5,))] == [WRONG, RIGHT]


@needs_jail
def test_an_answer_without_end_is_ended(first):
    found = verdict(Answer(first, "while True: pass"), Limits(seconds=1.0))
    assert found.status == TIMEOUT and re.search(r"did not end within 1 s|not finished after", found.message)


def test_the_line_of_an_endless_loop_is_told(first):
    job = {"exercise": first.id, "name": first.name, "imports": [], "before": []}
    found = judged(
        LAB, job | {"source": f"def {first.name}(*given):\n    k = 0\n    while k < 1:\n        k *= 2"}, 0.3
    )
    assert found["status"] == TIMEOUT and "\n  line 3: while k < 1:" in found["message"]


def test_a_jail_is_told_no_seed_and_hides_checks_and_references(first):
    """What an exercise's inputs are drawn from is told with its job, which no process of an answer reads."""
    seed, given = 836_124_907_551, []

    def run_in(command, readable, limits, hidden, *, input, **_):
        given.append(input)
        assert {LAB.package.replace(".", "/") + f"/{name}" for name in ("checks", "exercises")} <= {
            str(path.relative_to(ROOT)) for path in hidden
        }
        return ""

    answers = [Answer(one, "") for one in shipped_exercises(LAB)[:2]]
    verdicts(answers, IMPORTS, seeds=(seed,), run_in=run_in)
    keys = [str(key_of(seed, one.shipped.id)) for one in answers]
    assert len(given) == 3 and all(str(seed) not in text for text in given) and len({*keys}) == 2
    assert [[key in text for key in keys] for text in given] == [[True, True], [True, False], [False, True]]


@pytest.mark.parametrize("status", [TIMEOUT, CRASHED])
def test_who_does_not_end_for_hidden_inputs_is_not_right(status):
    told = {"status": RIGHT, "lines": ["a"], "message": "", "hidden": {"status": status, "message": "a word"}}
    found = module._verdict(json.dumps(told), "")
    assert found.status == status and "a word" not in found.message and not found.values


@needs_jail
def test_neither_checks_nor_references_are_in_reach_of_an_answer(first):
    """Not in its memory, nor in files."""
    name = LAB.exercises()[-2].trial.__name__
    source = f"""
import gc, glob, os, sys
import labs_helpers
def {first.name}(*given):
    found = [one for one in sys.modules if ".checks." in one or ".exercises." in one]
    found += [one for one in gc.get_objects() if callable(one) and getattr(one, "__name__", "") == "{name}"]
    folder = os.path.dirname(labs_helpers.__file__)
    raise ValueError([*found, *glob.glob(folder + "/*/lab*/checks/*"), *glob.glob(folder + "/*/lab*/exercises/*")])
"""
    assert verdict(Answer(first, source)).message.startswith("ValueError: []")


def test_outside_of_a_jail_nothing_is_run_or_ended():
    with pytest.raises(ProcessFailed, match="this runs in a jail alone"):
        run([sys.executable, "-c", module.STARTER], timeout=60, input="{}")


def test_only_the_imports_that_an_answer_reads_are_made(first):
    assert "import torch" in IMPORTS and len(IMPORTS) == len(set(IMPORTS))
    answer = Answer(first, "def f(x: torch.Tensor): return g(x)", before=("def g(x): return tl.cdiv(x, 2)",))
    assert used_by(answer, IMPORTS) == ["import torch", "import triton.language as tl"]
