"""A long command shows within two seconds that it works."""

import os
import subprocess
import sys

import pytest

from labs_helpers.launch import silence
from labs_helpers.launch.silence import Silence
from tests.processes import started

PROGRAM = """
import sys
from labs_helpers.launch import program, silence
silence.FIRST_S = 0.0
def main():
    print("[1/3] 8 ranks", flush=True)
    sys.stdin.readline()
    print("done", flush=True)
program.run(main)
"""


def test_the_first_line_comes_within_two_seconds_and_later_ones_less_often():
    quiet = Silence(100)
    shown = [second for second in range(200) if quiet.due(100 + second)]
    assert shown == [2, 12, 32, 72, 132, 192]


def test_what_was_printed_last_is_named_and_a_program_that_prints_is_left_alone():
    chatty = Silence(0)
    for second in range(100):
        chatty.hear(f"step {second}\n\n", second)
        assert not chatty.due(second + 1)
    assert chatty.due(103) == "… 103 s, after: step 99\n"
    assert Silence(0).due(3) == "… 3 s so far\n"


@pytest.mark.parametrize(
    ("variables", "shows"), [({}, False), ({silence.WATCHED: "1"}, True), ({silence.WATCHED: "1", "RANK": "1"}, False)]
)
def test_only_where_somebody_looks_and_on_the_first_rank(variables, shows):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    env = {name: value for name, value in os.environ.items() if name != silence.WATCHED} | variables
    with started([sys.executable, "-c", PROGRAM], env=env, text=True, **pipes) as process:
        told = process.stderr.readline() if shows else ""
        out, err = process.communicate("go\n", timeout=200)
    assert out == "[1/3] 8 ranks\ndone\n" and process.returncode == 0
    assert told.endswith("s, after: [1/3] 8 ranks\n") if shows else err == ""
