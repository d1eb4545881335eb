"""Grade a class with the command, which is interrupted or killed on the way and restarted each time."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from tests.grading.orphans import END_S, LOOK_S, children, outlived, parent_of_orphans
from tests.processes import start

if TYPE_CHECKING:
    from tests.grading.made_class import Submission

ROOT = Path(__file__).parents[2]
GRADED = re.compile(r"^\[\d+/\d+\] (\S+): ", re.MULTILINE)


@dataclass
class Run:
    """log: what each start of the command said. seconds: of all of them. left: processes that outlived
    their start. records: file → when it was written, after each start."""

    out: Path
    status: int | None = None
    seconds: float = 0.0
    log: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    records: list[dict[str, int]] = field(default_factory=list)


def grade(
    folder: Path, stops: Sequence[tuple[int, int]], options: Sequence[str], timeout: float, lab: str = "02"
) -> Run:
    """folder/inbox into folder/out, on two cores. stops: (records after which it is signalled, the signal), one per
    start."""
    run = Run(folder / "out")
    for name in ("home", "tmp", "here"):
        (folder / name).mkdir()
    known = {*children()}
    with parent_of_orphans():
        for stop in (*stops, None):
            began = monotonic()
            run.status = _start(folder, run, stop, [lab, *options], began + timeout - run.seconds)
            run.seconds += monotonic() - began
            run.left += outlived(known)
            run.records.append({path.name: path.stat().st_mtime_ns for path in _records(run.out)})
    return run


def _start(folder: Path, run: Run, stop: tuple[int, int] | None, options: Sequence[str], deadline: float) -> int:
    log = folder / f"log{len(run.log)}"
    command = ["taskset", "--cpu-list", "0,1", sys.executable, "-m", "labs_helpers.grading", options[0]]
    command += [folder / "inbox", "--out", run.out, "--jobs", "2", *options[1:]]
    command += ["--class", folder / "class.csv"] if (folder / "class.csv").exists() else []
    environment = os.environ | {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
    with open(log, "w") as file:
        streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
        process = start(command, cwd=folder / "here", env=environment, **streams)
        try:
            while process.poll() is None and monotonic() < deadline:
                if stop and len(_records(run.out)) >= stop[0]:
                    process.send_signal(stop[1])
                    break
                sleep(LOOK_S)
            status = process.wait(max(END_S, 0 if stop else deadline - monotonic()))
        finally:
            process.kill()
            process.wait()
    run.log.append(log.read_text())
    return status


def _records(out: Path) -> list[Path]:
    return list((out / "records").glob("*.jsonl")) if (out / "records").is_dir() else []


def faults(made: Sequence[Submission], run: Run, folder: Path) -> list[str]:
    """What is not as it has to be, a line each."""
    with open(run.out / "grades.csv", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    found = [f"in the table, and not in the class: {student}" for student in rows.keys() - {x.student for x in made}]
    for one in made:
        row = rows.get(one.student, {})
        given = {id: None if row.get(id) == "" else float(row.get(id, "nan")) for id in one.points}
        if given != one.points or row.get("status") != one.status:
            other = {id: (given[id], points) for id, points in one.points.items() if given[id] != points}
            found.append(f"{one.student} ({one.kind}): {row.get('status')}, not {one.status}; (given, right): {other}")
    said = [student for log in run.log for student in GRADED.findall(log)]
    found += [f"graded twice: {student}" for student in {*said} if said.count(student) > 1]
    for earlier, later in zip(run.records, run.records[1:], strict=False):
        found += [f"written again: {name}" for name in earlier if later.get(name) != earlier[name]]
    return found + left_behind(run, folder)


def left_behind(run: Run, folder: Path) -> list[str]:
    """Processes, and files outside of `out`, a line each."""
    found = [f"a process that is left: {command[:200]}" for command in run.left]
    for name in ("home", "tmp", "here"):
        found += [f"a file that is left: {path}" for path in (folder / name).rglob("*")]
    places = [Path(place) for place in ("/tmp", "/usr", "/etc", "/root", str(ROOT), str(ROOT.parent))]
    found += [f"a file that is left in {place}" for place in places if (place / "hostile-mark").exists()]
    return found
