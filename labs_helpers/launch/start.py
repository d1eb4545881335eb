"""Start a command of the course with the right launcher: make study TOPIC=gemm, make mpirun N=4 SCRIPT=hello

    python -m labs_helpers.launch.start [--ranks 2] study gemm [ARGS …]
    python -m labs_helpers.launch.start [--ranks 4] [--hosts node1:8,node2:8] mpirun hello [ARGS …]

Needs no activated environment, and works as root and with more ranks than cores. A study on ranks runs under torchrun.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from labs_helpers.labs import ROOT
from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.silence import WATCHED

HOUSE, SCRIPTS = ROOT / "labs_helpers", ROOT / "mpi_scripts"


def module_of(topic: str) -> str:
    """Return the module of a topic: 'gemm' → 'labs_helpers.gemm.study'; a module that measures, such as
    'gemm.lab02.ladder', is returned itself. Otherwise raises ValueError, which lists the topics that have a study."""
    for name in (f"{topic}.study", topic):
        path = HOUSE.joinpath(*name.split("."))
        if topic and (path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()):
            return f"labs_helpers.{name}"
    studies = [*HOUSE.rglob("study.py"), *HOUSE.rglob("study/__main__.py")]
    names = {path.relative_to(HOUSE).as_posix().partition("/study")[0].replace("/", ".") for path in studies}
    topics = sorted(names - {"measure"})
    raise ValueError(f"TOPIC={topic} has no study. Topics with a study: {', '.join(topics)}")


def study(topic: str, ranks: int | None, arguments: list[str]) -> list[str]:
    """Return the command that measures a topic's records."""
    module = ["-m", module_of(topic), *arguments]
    under = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks else []
    return [sys.executable, *under, *module]


def on_ranks(script: str, ranks: int, hosts: str, arguments: list[str]) -> list[str]:
    """Return the command that runs a script of mpi_scripts/ under this environment's mpirun. Raises ValueError for
    an unknown script."""
    path = SCRIPTS / f"{script.removesuffix('.py')}.py"
    if not script or not path.is_file():
        raise ValueError(f"SCRIPT={script} is not in mpi_scripts/. The scripts are: {', '.join(_scripts())}")
    flavour = find_flavour()
    where = ["--host" if flavour.name == "Open MPI" else "-hosts", hosts] if hosts else []
    here = 1 if hosts else ranks
    os.environ.update({k: v for k, v in flavour.environment(ranks_here=here).items() if k not in os.environ})
    return [*flavour.command(ranks), *where, sys.executable, "-m", "mpi4py", str(path), *arguments]


def _scripts() -> list[str]:
    return sorted(path.stem for path in SCRIPTS.glob("*.py"))


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="start", description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("how", choices=["study", "mpirun"])
    parser.add_argument("what", help="a topic or a script of mpi_scripts/")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--hosts", default="", help="for mpirun, such as node1:8,node2:8")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="passed on to the program, even if they look like options above"
    )
    given = parser.parse_args()
    try:
        if given.how == "study":
            command = study(given.what, given.ranks, given.arguments)
        else:
            command = on_ranks(given.what, given.ranks or 4, given.hosts, given.arguments)
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(str(error))
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if sys.stderr.isatty():
        os.environ[WATCHED] = "1"
    print(shlex.join(command).replace(f"{ROOT}{os.sep}", ""), file=sys.stderr, flush=True)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
