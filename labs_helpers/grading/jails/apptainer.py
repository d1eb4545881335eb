"""A jail for clusters: Apptainer, with the course's environment in an image.

    python -m labs_helpers.grading.jails.apptainer > course.def    # in the course's folder, on a machine with a network
    apptainer build course.sif course.def
    python -m labs_helpers.grading 02 inbox/ --image course.sif

The command follows Apptainer's documentation (1.1 to 1.4) and is tested only as text, because Apptainer is not
available where the course is developed. So before any answer runs, a program looks for ways out of the jail (probe.py),
and if it finds one, nothing is graded. As in bubblewrap, prlimit limits memory, processes and time. Apptainer's own
--memory and --pids-limit need cgroups that systemd has delegated to users. A Slurm job's limits apply in addition.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, environment, limited
from labs_helpers.grading.jails.probe import leaks
from labs_helpers.grading.jails.together import limited_together
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.launch.scratch import scratch

DEFINITION = """\
Bootstrap: docker
From: python:3.11-slim-bookworm

%files
    pyproject.toml /course/pyproject.toml
    setup.py /course/setup.py
    constraints.txt /course/constraints.txt
    README.md /course/README.md
    LICENSE /course/LICENSE
    labs_helpers /course/labs_helpers
    results /course/results

%post
    apt-get update && apt-get install --yes --no-install-recommends g++ util-linux
    rm -rf /var/lib/apt/lists/*
    pip install --no-cache-dir --constraint /course/constraints.txt /course

%labels
    Title Tile to Cluster, to grade in
"""


@cache
def why_not(image: Path) -> str:
    """Return the reason why this image is no jail here, or ''."""
    if not shutil.which("apptainer"):
        return "apptainer is not installed: your administrator can, or a module has to be loaded"
    if not image.exists():
        command = "python -m labs_helpers.grading.jails.apptainer"
        return f"there is no image {image}: {command} prints the definition to build it by"
    try:
        return leaks(lambda *words, **given: run_in_apptainer(image, *words, **given))
    except ProcessFailed as error:
        return f"Apptainer does not work here: {error.output.strip()[-2000:]}"


def run_in_apptainer(
    image: Path,
    command: Sequence[str],
    readable: Sequence[Path] = (),
    limits: Limits = LIMITS,
    hidden: Sequence[Path] = (),
    **given: Any,
) -> str:
    """Do the same as `jail.run_in_jail`, in this image."""
    with scratch("grading-") as empty:
        words = in_apptainer(image, command, readable, limits, hidden, empty)
        return run([*limited_together(limits.memory, limits.processes), *words], env=_own_settings(), **given)


def in_apptainer(
    image: Path,
    command: Sequence[str],
    readable: Sequence[Path] = (),
    limits: Limits = LIMITS,
    hidden: Sequence[Path] = (),
    empty: Path = Path("/var/empty"),
) -> list[str]:
    """Return the command that runs `command` in the image, whose python3 replaces this Python. readable: files and
    folders that it may read, under their own paths. hidden: folders among them that `empty` replaces.

    --containall gives it its own PID and IPC namespaces, an empty /tmp in memory (its size is set in apptainer.conf, 64
    MiB by default) and a bare /dev. The image is read-only.
    """
    words = ["apptainer", "--silent", "exec", "--containall", "--cleanenv", "--no-home", "--no-privs"]
    words += ["--no-mount", "hostfs,bind-paths", "--net", "--network", "none", "--hostname", "jail", "--pwd", "/tmp"]
    for source, place in [*((path, path) for path in readable), *((empty, path) for path in hidden)]:
        words += ["--mount", _mount(source.resolve(), place.resolve())]
    variables = environment() | {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    words += [str(image), "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    program = ["python3" if word == sys.executable else word for word in command]
    return [*words, *limited(limits), *program]


def _mount(source: Path, place: Path) -> str:
    """Return a mount option, which Apptainer reads as a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"src={source}", f"dst={place}", "ro"])
    return line.getvalue()


def _own_settings() -> dict[str, str]:
    """Return the variables that Apptainer itself may need, without those from which it would take binds and similar
    options."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("APPTAINER", "SINGULARITY"))}


if __name__ == "__main__":
    print(DEFINITION, end="")
