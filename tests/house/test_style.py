"""Run the checks of .pre-commit-config.yaml, to catch commits made without the hooks."""

import json
import sys
from pathlib import Path

import pytest

from labs_helpers.launch.process import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check"]], ids=["check", "format"])
def test_ruff_finds_nothing(arguments):
    run([sys.executable, "-m", "ruff", *arguments, "--no-cache", "."], timeout=300, cwd=ROOT)


def test_mypy_finds_nothing_in_the_public_modules():
    run([sys.executable, "-m", "mypy"], timeout=300, cwd=ROOT)


def test_no_cell_of_a_notebook_uses_a_name_that_nothing_defines():
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--select", "F821", "--exit-zero"]
    undefined = json.loads(run([*command, "--output-format", "json", "notebooks"], timeout=300, cwd=ROOT))
    cells = {path: json.loads(Path(path).read_text())["cells"] for path in {each["filename"] for each in undefined}}
    assert [
        each["message"]
        for each in undefined  # an exercise is a function whose middle is missing
        if "### BEGIN SOLUTION" not in "".join(cells[each["filename"]][each["cell"] - 1]["source"])
    ] == []
