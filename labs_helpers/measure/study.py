"""A study: measurements that one command makes, that are kept in one file per machine, and loaded again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.labs import LABS
from labs_helpers.launch.program import HOUR, Parser
from labs_helpers.measure import records, results
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.options import add_out, names_folder
from labs_helpers.measure.provenance import provenance

if TYPE_CHECKING:
    import pandas

Record = dict[str, Any]
Table = Callable[["pandas.DataFrame"], "pandas.DataFrame"]
_explained: set[Path] = set()  # a command that appends part by part says once what becomes of the records


@dataclass(frozen=True)
class Study:
    """A study by name. Its records are in files called NAME.MACHINE.jsonl.

    command: makes them; an error names it. machine: the recorded one that `load` takes by default.
    """

    name: str
    command: str = ""
    machine: str = "nvidia-h200"

    def load(self, machine: str = "") -> pandas.DataFrame:
        """Load the records of one machine, by its label or the part of its file's name between the dots.

        It means the recorded machine, or the reader's where none of that name is recorded; see `records.find`. Raises
        FileNotFoundError, which names the command that makes the records.
        """
        return records.of_machine(self.name, machine or self.machine, self.command)

    def recorded(self) -> dict[str, pandas.DataFrame]:
        """Load the records of every machine that came with the course, by the machine as its file is named for it."""
        return records.recorded(self.name)

    def parser(self, doc: str | None, limit: float = 2 * HOUR) -> Parser:
        """Make a parser that knows --out, --record and --limit, and describes the command by its docstring's first
        line."""
        parser = Parser(description=(doc or "").split("\n")[0], limit=limit)
        add_out(parser, f"{self.name}.MACHINE.jsonl")
        return parser

    def path(self, out: Path | None = None, machine: str | None = None) -> Path:
        """Return the file that records go to.

        out: a file, or a folder, where the file is named for the study and for `machine`, by default this one; see
        `names_folder`. None means the folder of the reader's records, which the labs draw beside the recorded machines.
        """
        folder = out or results.own_dir()
        return results.path_for(self.name, machine, folder) if names_folder(folder) or out is None else out

    def keep(
        self,
        found: list[Record],
        out: Path | None = None,
        *,
        machine: str | None = None,
        on: Mapping[str, Any] | None = None,
        table: Table | None = None,
    ) -> None:
        """Append records with where they were measured, print them as a table, and say where they went.

        machine: the label of the machine, for file and records, by default this one's. on: what is known better than
        `provenance()` knows it; a record that knows better still has its own 'on'. table: of the records as a
        DataFrame, what is printed.
        """
        path = self.path(out, machine)
        where = provenance() | ({"machine": machine} if machine else {}) | dict(on or {})
        results.append(path, [record | {"on": where | record.get("on", {})} for record in found])
        if table:
            print(f"\n{as_text(table(records.frame(found)))}\n")
        print(kept(len(found), path, where["machine"]), flush=True)

    def go_on(
        self,
        items: Iterable[tuple[tuple, Any]],
        keys: Sequence[str],
        measure: Callable[[Any], list[Record]],
        out: Path | None = None,
        *,
        same: Mapping[str, Any],
        here: Sequence[str] = (),
        seconds: float = float("inf"),
    ) -> list[Record]:
        """Measure what the file does not hold yet, item by item, and append it at once; return the new records.

        items: (values of the columns `keys`, by which records know their item, and what `measure` takes). same: column
        → value that a record needs to count as measured; here: what of its provenance has to be this run's. seconds:
        begin no other item after so long.
        """
        path, on = self.path(out), provenance()
        known = _measured(path, keys, dict(same) | {f"on.{name}": on[name] for name in here})
        began, new = time.monotonic(), list[Record]()
        for values, item in items:
            if values in known:
                continue
            if (started := time.monotonic()) - began > seconds:
                print(f"{seconds:.0f} s are over before {item}; the same command goes on there")
                break
            about = dict(zip(keys, values, strict=True)) | dict(same)
            found = [record | about | {"on": on} for record in measure(item)]
            results.append(path, found)
            new += found
            print(f"{item}: {len(found)} records, {time.monotonic() - started:.1f} s", flush=True)
        print(kept(len(new), path), flush=True)
        return new


def _measured(path: Path, keys: Sequence[str], wanted: Mapping[str, Any]) -> set[tuple]:
    """The values of `keys` of the records in a file that have all of `wanted`."""
    if not path.is_file():
        return set()
    rows = results.load(path)
    for column, value in wanted.items():
        rows = rows[rows[column].isna() if value is None else rows[column] == value]
    return set(zip(*(rows[key] for key in keys), strict=True))


def as_text(table: pandas.DataFrame) -> str:
    """A table as a command prints it: a line per row, numbers to four digits, a dash where there is none."""
    return str(table.to_string(index=False, na_rep="–", float_format="{:.4g}".format))


def kept(number: int, path: Path, machine: str | None = None) -> str:
    """The line about `number` records that were appended to `path`; for the reader's, also where they are drawn.

    machine: the one that they are from, by default this one.
    """
    said = f"{number} records appended to {path}"
    if path.parent != results.own_dir() or path in _explained:
        return said
    _explained.add(path)
    topic, machine = path.name.split(".")[0].replace("-", "_"), machine or this_machine().label
    numbers = [lab.number for lab in LABS if topic.startswith(lab.topic)]
    labs = f"lab{'s' * (len(numbers) > 1)} {' and '.join(numbers)}"
    return f"{said}\nThe figures of {labs} that draw this study show them too, as '{machine}{records.YOURS}'."
