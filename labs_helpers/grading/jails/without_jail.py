"""Run a command without a jail, if an instructor insists: in its own session, with limits, and nothing of it left
behind.

It can read and send what its user can, and end that user's processes, including the grader. For root it runs as another
user.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from labs_helpers.grading.jails.bubblewrap import (
    LIMITS,
    Limits,
    environment,
    limited,
    own_user,
    unprivileged,
)
from labs_helpers.grading.jails.ending import NO_JAIL
from labs_helpers.grading.jails.together import limited_together
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.launch.scratch import scratch

WARNING = """\
Graded without a jail, as --unsafe says: what students wrote runs here with all that {user} may do. It can read other
submissions and the course's answers, send them over the network, change files and end processes. Every record says
that it was graded so."""


@cache
def why_not() -> str:
    """Return the reason why nothing can run here even without a jail; '' if it can."""
    needed = ("prlimit", "setpriv") if os.geteuid() == 0 else ("prlimit",)
    for program in needed:
        if not shutil.which(program):
            return f"{program} is not installed: it is in the package util-linux"
    try:
        run_without_jail([sys.executable, "-c", "import labs_helpers"], timeout=60)
    except ProcessFailed as error:
        said = error.output.strip()
        return f"root runs answers as a user without rights, who cannot run the course here: grade as yourself ({said})"
    return ""


def warning() -> str:
    return WARNING.format(user="a user without rights" if os.geteuid() == 0 else "you")


def run_without_jail(
    command: Sequence[str],
    readable: Sequence[Path] = (),
    limits: Limits = LIMITS,
    hidden: Sequence[Path] = (),
    **given: Any,
) -> str:
    """Return the output of `command`, which starts in an empty folder that is then removed. `given` goes to
    `process.run`.

    Nothing can be hidden from it: `readable` and `hidden`, which a jail obeys, have no effect here.
    """
    with scratch("grading-") as folder:
        user = own_user() if os.geteuid() == 0 else ""
        if user:
            os.chown(folder, int(user), int(user))
        words = [*unprivileged(user), *limited(limits)] if user else limited(limits)
        words = [*limited_together(limits.memory, limits.processes), *words]
        variables = environment(str(folder)) | {NO_JAIL: "1"}
        return run([*words, *command], env=variables, cwd=folder, keep=True, **given)
