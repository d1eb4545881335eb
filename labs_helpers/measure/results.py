"""Measurements are data: records to JSON Lines and back, with where they came from.

One file a study and machine, one record a line. A record is a flat dict of what was measured, with
`provenance()` under the key 'on'.
"""

import json
import math
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# mpirun tells its own ranks about the job through these: addresses and paths, not settings.
_LAUNCHER_PRIVATE = re.compile(
    r"OMPI_MCA_(orte_|ess|pmix|initial_wdir|shmem_RUNTIME_QUERY_hint|PREFIXES|cpu_type|num_procs)"
)


def results_dir() -> Path:
    """The repository's results/, what was installed of it without a checkout, or what LABS_RESULTS names."""
    if named := os.environ.get("LABS_RESULTS"):
        return Path(named)
    checkout = ROOT / "results"
    return checkout if checkout.is_dir() else Path(__file__).resolve().parents[1] / "recorded"


def path_for(study: str, machine: str | None = None) -> Path:
    """Where records of a study on one machine belong: results/gemm.nvidia-h200.jsonl.

    study: the topic's name, without dots. machine: a Machine's label, by default this machine's.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", study):
        raise ValueError(f"study is {study!r}; letters, digits, '_' and '-' make a study's name")
    if machine is None:
        from labs_helpers.measure.machine import this_machine

        machine = this_machine().label
    slug = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    return results_dir() / f"{study}.{slug}.jsonl"


def provenance() -> dict:
    """Where and when a measurement is made: machine, versions, MPI and its settings, commit, UTC time."""
    import numpy

    from labs_helpers.measure.machine import this_machine

    machine = this_machine()
    settings = {k: v for k, v in os.environ.items() if k.startswith("OMPI_MCA_")}
    return {
        "machine": machine.label,
        "name": machine.name,
        "device": machine.device,
        "architecture": machine.architecture,
        "capability": ".".join(map(str, machine.capability)) if machine.capability else None,
        "interpreted": machine.interpreted,
        "cores": machine.cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": machine.python,
        "torch": machine.torch,
        "triton": machine.triton,
        "numpy": numpy.__version__,
        "cuda": machine.cuda,
        "driver": machine.driver,
        "mpi": _mpi_library(),
        "mpi_settings": {k: v for k, v in sorted(settings.items()) if not _LAUNCHER_PRIVATE.match(k)},
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def append(path: str | os.PathLike, records: Mapping | Iterable[Mapping]) -> None:
    """Add one record or many to a JSON Lines file, all of them or none, safe against other writers.

    NumPy and torch scalars become plain numbers. A last line torn by an interrupted writer stays as it
    is; the new records begin on a line of their own.

    Raises TypeError for a value or key that JSON does not have and ValueError for NaN and infinity, each
    naming record and key; then nothing is written.
    """
    # Windows has no fcntl; reading and drawing records works there all the same.
    import fcntl

    records = [records] if isinstance(records, Mapping) else list(records)
    lines = [json.dumps(_plain(record, f"record {i}", top=True)) for i, record in enumerate(records)]
    if not lines:
        return
    data = "".join(line + "\n" for line in lines).encode()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            data = b"\n" + data
        written = os.write(handle, data)
        if written != len(data):
            os.ftruncate(handle, size)
            raise OSError(f"{path}: {written} of {len(data)} bytes could be written; is the disk full?")
        os.fsync(handle)
    finally:
        os.close(handle)


def load(path: str | os.PathLike, *, command: str | None = None):
    """The records as a pandas.DataFrame, a row each; nested keys become columns such as 'on.machine'.

    A damaged line is left out with a warning that gives its number; `frame.attrs['damaged']` lists
    them. command: the command that makes the file, for the error's text.

    Raises FileNotFoundError, saying which command makes the measurements.
    """
    import pandas

    path = Path(path)
    if not path.is_file():
        command = command or f"python -m labs_helpers.{path.name.split('.')[0]}.study"
        raise FileNotFoundError(f"no measurements at {path}; make them with: {command}")
    records, damaged = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_constant)
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
            records.append(record)
        except (ValueError, RecursionError) as error:
            damaged.append(number)
            warnings.warn(f"{path}, line {number} is damaged and left out: {error}", stacklevel=2)
    frame = pandas.json_normalize(records, max_level=1)
    frame.attrs["damaged"] = damaged
    return frame


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _plain(value, where: str, top: bool = False):
    """`value` in JSON's own types, or an error that says where it is."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where}: the key {key!r} is not a string")
        return {key: _plain(item, f"{where}, key {key!r}") for key, item in value.items()}
    if top:
        raise TypeError(f"{where}: a record is a dict, not a {type(value).__name__}")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where}: {value} cannot be recorded; leave the key out or give None")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    # What NumPy and torch call a scalar: no dimensions, and an item() in Python's own types.
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        item = value.item()
        if type(item) is not type(value):
            return _plain(item, where)
    kind = type(value).__name__
    raise TypeError(f"{where}: a {kind} cannot be recorded; give a number, a text, a list or a dict")


def _mpi_library() -> str | None:
    # Importing mpi4py would start MPI, so only a program that uses it is asked.
    if "mpi4py.MPI" not in sys.modules:
        return None
    return sys.modules["mpi4py.MPI"].Get_library_version().strip(" \0\n").splitlines()[0].strip()


def _commit() -> str | None:
    """The checkout's short commit, with '+' for changes outside results/; None outside a checkout."""
    if "LABS_COMMIT" in os.environ:
        return os.environ["LABS_COMMIT"] or None
    if not (ROOT / ".git").exists():
        return None
    try:
        commit = _git("rev-parse", "--short=10", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", ".", ":!results") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
