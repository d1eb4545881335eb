"""What an answer reads from outside of itself is found however it is hidden, and what is its own is left alone."""

import linecache

import pytest

from labs_helpers.grading.judged import run_cell
from labs_helpers.grading.reading.plain_python import plain_python
from labs_helpers.grading.trust.plain_answer import not_in_vocabulary
from labs_helpers.grading.trust.vocabulary import vocabulary

WORDS = vocabulary("def f(a): return a")
HIDDEN = {
    "bound by another function": ("def unused(exec): pass\ndef f(a): return exec('1')", "line 2: exec"),
    "bound later": ("run = [exec]\nexec = 1\ndef f(a): return run[0]('1')", "line 1: exec"),
    "bound in a comprehension": ("def f(a):\n    [0 for exec in ()]\n    return exec('1')", "line 3: exec"),
    "the lab's own module": ("def g(inspect): pass\ndef f(a): return inspect.stack", "line 2: inspect"),
    "in a lambda that may run at once": ("x = [lambda: exec]\nexec = 1\ndef f(a): return x", "line 1: exec"),
    "in a class's body": ("class A:\n    x = exec\nexec = 1\ndef f(a): return a", "line 2: exec"),
    "run with the definitions": ("def g(a): return a\nx = max([1], key=g)\ndef f(a): return x", "line 2: a f"),
    "a class's keyword": ("def g(*a): return 1\nclass A(metaclass=g): pass\ndef f(a): return a", "line 2: keywords"),
    "memory of others": ("def f(a):\n    a.resize(1, refcheck=False)\n    return a", "line 2: .resize"),
    "an address": ("def f(a):\n    return a.new(cdata=1)", "line 2: .new"),
    "a long chain": ("def f(a):\n    return a" + ".T" * 40, "line 2: more than 20 attributes"),
}  # fmt: skip
PLAIN = (
    "def f(input, id=3):\n    type = input + id\n    return [type for x in range(3)] + [input]",
    "scale = 2\ndef g(a): return a * scale\ndef f(a):\n    def h(b): return b + y\n    y = g(a)\n    return h(y)",
    "table = [k * 2 for k in range(3)]\ndef f(a): return table[a]",
    "from functools import partial\ndef g(a, b): return a\nh = partial(g, 1)\ndef f(a): return h(a)",
    "class A:\n    def __init__(self): self.k = 1\n    def __call__(self): return self.k\ndef f(a): return A()()",
    "def f(a):\n    for i in range(3):\n        best = i if a else max(a, key=lambda x: x)\n    return best",
)


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_found(name):
    source, said = HIDDEN[name]
    assert any(line.startswith(said) for line in not_in_vocabulary(source, WORDS)), not_in_vocabulary(source, WORDS)


@pytest.mark.parametrize("source", PLAIN)
def test_names_of_its_own_are_plain(source):
    assert not_in_vocabulary(source, WORDS) == []


def test_long_chains_take_no_time_of_the_grader():
    source = "def f(a):\n" + f"    x = a{'.T' * 300}\n" * 40 + "    return a"
    assert "line 2: more than 20 attributes in a row" in not_in_vocabulary(source, WORDS)


def test_a_cell_s_lines_are_counted_as_python_counts_them():
    """Triton compiles the text of a function's lines: another count would give it another text."""
    source = "x = '''\u2028\x0b\x0c\x85'''  # \u2028\r\ndef f():\r    return 1\n"
    run_cell(source, "<counted>", names := {})
    assert names["f"].__code__.co_firstlineno == 2
    assert linecache.getline("<counted>", 2) == "def f():\n" and len(linecache.getlines("<counted>")) == 3


def test_numbers_that_cannot_be_written_out_are_refused():
    assert plain_python("x = 0x" + "f" * 2000)[1] == "a number of more than 4,096 bits"
    assert plain_python("x = 0x" + "f" * 100)[1] == ""
