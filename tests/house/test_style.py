"""What the hooks of .pre-commit-config.yaml look at, so that a commit made without them is found out."""

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
