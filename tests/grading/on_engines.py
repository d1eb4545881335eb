"""Tasks for engines in the tests, which grade nothing."""

import os
import signal
import time
from pathlib import Path

from labs_helpers.grading.results.gradebook import GRADED, Record


def works():
    return ""


def has_no_jail():
    return "bwrap is not installed"


def grade(one, over):
    """As the student's file says: die, fail, or run until interrupted."""
    what = one.path.read_text()
    if what == "die" or (what == "die once" and not Path(f"{one.path}.died").exists()):
        Path(f"{one.path}.died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise ValueError("it failed")
    if what == "endless":
        Path(f"{one.path}.began").touch()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            Path(f"{one.path}.interrupted").touch()
            raise
    return Record(one.student, GRADED, digest=str(os.getpid()))
