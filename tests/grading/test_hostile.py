"""Hostile answers: none gets points by itself, each costs its own exercise alone, nothing of it is left."""

import json
import os
from pathlib import Path

import pytest

from labs_helpers.grading.jail import Limits, why_not
from labs_helpers.grading.marks import marks
from labs_helpers.labs import LABS
from tests.grading.hostile import HOSTILE

LAB = LABS[0]
pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(why_not()), reason=why_not())]


def hand_in(path, source):
    """Lab 00 with this answer to its first two exercises."""
    names = {one.id: one.trial.__name__ for one in LAB.exercises()[:2]}
    notebook = json.loads(LAB.path.read_text())
    for cell in notebook["cells"]:
        mark = cell["metadata"].get("nbgrader", {}).get("grade_id", "").replace("-", "/", 1)
        if mark in names:
            cell["source"] = source.replace("NAME", names[mark])
    path.write_text(json.dumps(notebook))
    return path


def processes():
    """Those of the jail's user, or that run python -c of the grader."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"labs_helpers.grading.inside" in command or b"bwrap" in command:
            found.add((folder.name, command))
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_gets_no_points_and_leaves_nothing(tmp_path, name):
    before = processes()
    found = marks(hand_in(tmp_path / "eve.ipynb", HOSTILE[name]), LAB, Limits(seconds=6))
    assert len(found) == len(LAB.exercises())
    assert [mark.points or 0 for mark in found] == [0] * len(found)
    assert all(mark.reason for mark in found[:2])
    assert all(len(mark.reason) < 20_000 for mark in found)
    assert processes() <= before
    assert os.listdir(tmp_path) == ["eve.ipynb"]
    assert not any(os.path.exists(f"{folder}/hostile-mark") for folder in ("/work", "/root", "/usr", "/etc", "."))
