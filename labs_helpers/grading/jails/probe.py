"""Test a jail before any answer runs in it, with a program that looks for ways out."""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import labs_helpers
from labs_helpers.grading.jails.ending import alone
from labs_helpers.launch.process import ProcessFailed

STARTER = "from labs_helpers.grading.jails.probe import main; main()"
SECONDS = 60  # a container's image may have to be unpacked first


def leaks(run_in: Callable[..., str]) -> str:
    """Return what a jail fails to contain, in words; '' if it contains everything. run_in: as `jail.run_in_jail`,
    whose errors pass."""
    course = Path(labs_helpers.__file__).parent
    with tempfile.NamedTemporaryFile(prefix="grading-") as outside:
        given = {"outside": [outside.name, str(Path.home() / ".ssh"), "/etc/shadow"], "course": str(course)}
        told = run_in([sys.executable, "-c", STARTER], [course], timeout=SECONDS, input=json.dumps(given))
    try:
        found = json.loads(told)
    except ValueError:
        raise ProcessFailed([], 0, told, "said something else than what leaks") from None
    return f"what runs in it {'; it '.join(found)}" if found else ""


def main() -> None:
    """Write a list to stdout, with the end of a sentence for each leak."""
    given = json.loads(sys.stdin.read())
    print(json.dumps(list(filter(None, (look(given) for look in (_others, _network, _files, _rights, _limits))))))


def _others(given: dict[str, object]) -> str:
    return "" if alone() else "can signal processes that are not its own"


def _network(given: dict[str, object]) -> str:
    devices = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"has a network ({', '.join(devices)})" if devices else ""


def _files(given: dict[str, object]) -> str:
    assert isinstance(given["outside"], list)
    seen = [path for path in given["outside"] if os.path.exists(path) and os.access(path, os.R_OK)]
    if seen:
        return f"can read {', '.join(seen)}"
    written = [path for path in (str(given["course"]), "/usr", "/etc") if os.access(path, os.W_OK)]
    return f"can write in {', '.join(written)}" if written else ""


def _rights(given: dict[str, object]) -> str:
    rights = next((line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff:")), "")
    return "" if rights and not int(rights, 16) else "has rights of root"


def _limits(given: dict[str, object]) -> str:
    kinds = {"memory": resource.RLIMIT_AS, "processes": resource.RLIMIT_NPROC, "files": resource.RLIMIT_FSIZE}
    open_ended = [name for name, kind in kinds.items() if resource.getrlimit(kind)[1] == resource.RLIM_INFINITY]
    return f"has no limit on {', '.join(open_ended)}" if open_ended else ""
