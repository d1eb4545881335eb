import sys
from pathlib import Path

from labs_helpers.launch.process import run

ROOT = Path(__file__).parents[2]


def test_ruff_finds_nothing():
    run([sys.executable, "-m", "ruff", "check", "--no-cache", "."], timeout=60, cwd=ROOT)
