"""Store measurements as JSON Lines and load them again, with where they came from.

Each study has one file per machine. A record is a flat dict of measurements, with `provenance()` under the key 'on'.
The file stores a provenance that many records share once, in a line before the first of them:

    {"run": "3f9c01d2ab47", "on": {"machine": "NVIDIA H200", "torch": "2.11.0", …}}
    {"run": "3f9c01d2ab47", "study": "gemm", "M": 1024, "median_ms": 0.0071, …}

A line may also hold a record with its complete 'on'.
"""

import errno
import json
import math
import os
import re
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = Path("build/records")


def results_dir() -> Path:
    """Return the folder of the records that come with the course: results/ of the checkout, its copy in an installed
    package, or the folder that LABS_RESULTS names."""
    if named := os.environ.get("LABS_RESULTS"):
        return Path(named)
    return ROOT / "results" if in_checkout() else Path(__file__).resolve().parents[1] / "recorded"


def own_dir() -> Path:
    """Return the folder of the reader's records: build/records of the checkout, or the folder that LABS_RECORDS names.

    If the course is installed without a checkout, or its checkout is not writable, this is build/records in the current
    folder.
    """
    if named := os.environ.get("LABS_RECORDS"):
        return Path(named)
    return _writable(ROOT) / OWN if in_checkout() else OWN.absolute()


def in_checkout() -> bool:
    """Return True in a checkout or a hand-out of the course; False if only its package is installed."""
    return (ROOT / "results").is_dir() and (ROOT / "pyproject.toml").is_file()


def _writable(root: Path) -> Path:
    """Return `root` if records can be written below it, else the current folder."""
    there = next(folder for folder in (root / OWN, root / OWN.parent, root) if folder.is_dir())
    return root if os.access(there, os.W_OK) else Path.cwd()


def path_for(study: str, machine: str | None = None, folder: Path | None = None) -> Path:
    """Return the file of one machine's records of a study, such as results/gemm.nvidia-h200.jsonl.

    study: the topic's name, without dots. machine: a Machine's label, by default this machine's. folder: by default
    `results_dir()`.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", study):
        raise ValueError(f"study is {study!r}; letters, digits, '_' and '-' make a study's name")
    if machine is None:
        from labs_helpers.measure.machine import this_machine

        machine = this_machine().label
    return (folder or results_dir()) / f"{study}.{slug(machine)}.jsonl"


def slug(machine: str) -> str:
    """Return a machine's label in the form that file names use: 'nvidia-h200'."""
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")


@contextmanager
def room(folder: str | os.PathLike, nbytes: int) -> Iterator[None]:
    """Reserve `nbytes` on the disk while the block runs, in an unnamed file in this folder; OSError if the disk is
    too full."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        if hasattr(os, "posix_fallocate"):  # not on macOS
            os.posix_fallocate(file.fileno(), 0, nbytes)
        yield


def try_to_write(path: str | os.PathLike) -> None:
    """Raise OSError unless this file can be appended to, or a file can be created in this folder. If neither exists,
    the nearest existing parent is tried. Nothing is written."""
    path = Path(path).absolute()
    nearest = next(there for there in (path, *path.parents) if there.exists())
    if nearest != path and not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(nearest))
    with room(nearest if nearest.is_dir() else nearest.parent, 2**16):
        if nearest.is_file():
            open(nearest, "ab").close()


def append(path: str | os.PathLike, records: Mapping | Iterable[Mapping]) -> None:
    """Append one or many records to a JSON Lines file, all or none, safely beside other writers.

    NumPy and torch scalars become plain numbers. If an interrupted writer left a torn last line, it stays, and the new
    records start on their own line.

    Raises TypeError for a value or key that JSON does not support, and ValueError for NaN, infinity and a key 'run'.
    The error names record and key, and nothing is written.
    """
    from filelock import FileLock  # imported here, because an environment that only runs ranks may lack it

    records = [records] if isinstance(records, Mapping) else list(records)
    lines = _lines([_plain(record, f"record {i}", top=True) for i, record in enumerate(records)])
    if not lines:
        return
    data = "".join(line + "\n" for line in lines).encode()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The lock is a file beside the records, because writers on several nodes of a cluster share this folder and no
    # temporary one. It stays, ignored by git: if it were removed, two writers could lock two files of that name.
    with FileLock(f"{path}.lock"), open(path, "ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                data = b"\n" + data
        try:
            written = file.write(data)
            if written != len(data):
                raise OSError(errno.ENOSPC, f"{written} of {len(data)} bytes could be written; is the disk full?")
            os.fsync(file.fileno())
        except OSError as error:
            file.truncate(size)
            error.filename = str(path)
            raise


def load(path: str | os.PathLike, *, command: str | None = None):
    """Return the records as a pandas.DataFrame, one row each; nested keys become columns such as 'on.machine'.

    A damaged line is left out. If the first line of a run is damaged or missing, its records stay, without their
    provenance but with the run's id in the column 'run'. Warnings give the line numbers of both, and so does
    `frame.attrs['damaged']`. command: the command that produces the file, for the error's text.

    Raises FileNotFoundError, which names that command.
    """
    import pandas

    path = Path(path)
    if not path.is_file():
        command = command or f"python -m labs_helpers.{path.name.split('.')[0]}.study"
        there = sorted(other.name for other in path.parent.glob(f"{path.name.split('.')[0]}.*.jsonl"))
        known = f" (there are {', '.join(there)})" if there else ""
        raise FileNotFoundError(f"no measurements at {path}{known}; make them with: {command}")
    runs, records, damaged = {}, {}, []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_constant)
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
        except (ValueError, RecursionError) as error:
            damaged.append(number)
            warnings.warn(f"{path}, line {number} is damaged and left out: {error}", stacklevel=2)
            continue
        if record.keys() == {"run", "on"}:
            runs[str(record["run"])] = record["on"]
        else:
            records[number] = record
    orphans = {}
    for number, record in records.items():
        run = str(record.get("run"))
        if run in runs:
            del record["run"]
            record["on"] = runs[run]
        elif "run" in record:
            orphans.setdefault(run, []).append(number)
    for run, numbers in orphans.items():
        warnings.warn(
            f"{path}, from line {numbers[0]} on: the first line of run {run!r} is damaged or missing, and its records "
            f"({len(numbers)}) are kept without where they were measured",
            stacklevel=2,
        )
    frame = pandas.json_normalize(list(records.values()), max_level=1)
    frame.attrs["damaged"] = sorted(damaged + [number for numbers in orphans.values() for number in numbers])
    return frame


def _lines(records: list[dict]) -> list[str]:
    """Return the records as JSON, with one line before them for each distinct provenance, to which they refer."""
    runs, lines = {}, []
    for i, record in enumerate(records):
        if "run" in record:
            raise ValueError(f"record {i}, key 'run': the file has a meaning of its own for this key")
        if "on" in record:
            on = json.dumps(record.pop("on"))
            if on not in runs:
                runs[on] = uuid.uuid4().hex[:12]
                lines.append(f'{{"run": "{runs[on]}", "on": {on}}}')
            record = {"run": runs[on]} | record
        lines.append(json.dumps(record))
    return lines


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _plain(value, where: str, top: bool = False):
    """Return `value` in JSON's own types, or raise an error that says where it occurs."""
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
    # NumPy's and torch's scalars have no dimensions, and an item() in Python's own types.
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        item = value.item()
        if type(item) is not type(value):
            return _plain(item, where)
    kind = type(value).__name__
    raise TypeError(f"{where}: a {kind} cannot be recorded; give a number, a text, a list or a dict")
