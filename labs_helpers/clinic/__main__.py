"""Examine your own training program: run it for some steps, and say where its time goes and what is wrong.

    torchrun --nproc-per-node 2 -m labs_helpers.clinic my_training.py --its --own arguments
    python -m labs_helpers.clinic --after 20 --steps 8 my_training.py

The program need not be changed. A step lasts from one update of an optimizer to its next one. After the report the
program goes on; if no optimizer updates for --quiet seconds, every rank prints where it stands and which collective it
began last.
"""

from __future__ import annotations

import argparse
import atexit
import runpy
import sys
import traceback
from pathlib import Path

from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.program import HOUR, Parser

_ended_well: list[bool] = []  # of this process, if it is the program


def main(arguments: list[str] | None = None) -> int:
    first = (__doc__ or "").split("\n")[0]
    parser = Parser(limit=24 * HOUR, prog="python -m labs_helpers.clinic", description=first)
    parser.add_argument("--after", type=int, default=10, help="steps before the examination; default: %(default)s")
    parser.add_argument("--steps", type=int, default=4, help="steps that are examined; default: %(default)s")
    parser.add_argument("--quiet", type=float, default=120, help="seconds without a step; default: %(default)s")
    parser.add_argument("program", help="a Python file; what follows are its own arguments")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    for name in ("after", "steps", "quiet"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} is {getattr(given, name)}, at least 1")
    if not Path(given.program).is_file():
        parser.error(f"there is no file {given.program}")
    from labs_helpers.clinic.attach import Attached  # it imports torch, which takes seconds

    sys.argv[:] = [given.program, *given.rest]
    sys.path[0] = str(Path(given.program).resolve().parent)
    atexit.register(lambda: leave() if _ended_well else None)  # it runs last, after the program's own handlers
    with Attached(given.after, given.steps, given.quiet):
        try:
            # The program's variables stay alive until the end, as a script's do: DistributedDataParallel's destructor
            # joins gloo's threads while it holds Python's lock, for which they may be waiting.
            globals().update(runpy.run_path(given.program, run_name="__main__"))
        except Exception:  # with its traceback, because it is the user's program that failed
            traceback.print_exc()
            return 1
    return 0


if __name__ == "__main__":
    program.run(main)
    _ended_well.append(True)
