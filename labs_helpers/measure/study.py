"""A study: measurements that one command makes, stores in one file per machine, and loads again."""

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
_explained: set[Path] = set()  # a command that appends in parts explains only once where the records go


@dataclass(frozen=True)
class Study:
    """A study with a name. Its records are in files called NAME.MACHINE.jsonl.

    command: produces them; errors name it. machine: the recorded machine that `load` selects by default.
    """

    name: str
    command: str = ""
    machine: str = "nvidia-h200"

    def load(self, machine: str = "") -> pandas.DataFrame:
        """Load the records of one machine, by its label or by the part of its file's name between the dots.

        This selects the recorded machine, or the reader's if no recorded one has that name; see `records.find`. Raises
        FileNotFoundError, which names the command that produces the records.
        """
        return records.of_machine(self.name, machine or self.machine, self.command)

    def recorded(self) -> dict[str, pandas.DataFrame]:
        """Load the records of every machine that came with the course, by the machine's name in the file name."""
        return records.recorded(self.name)

    def parser(self, doc: str | None, limit: float = 2 * HOUR) -> Parser:
        """Return a parser with --out, --record and --limit, which describes the command by the first line of its
        docstring."""
        parser = Parser(description=(doc or "").split("\n")[0], limit=limit)
        add_out(parser, f"{self.name}.MACHINE.jsonl")
        return parser

    def path(self, out: Path | None = None, machine: str | None = None) -> Path:
        """Return the file that records go to.

        out: a file, or a folder, in which the file is named for the study and for `machine` (default: this one); see
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
        """Append records with their provenance, print them as a table, and say where they went.

        machine: the machine's label for file and records, by default this one's. on: fields that replace those of
        `provenance()`; a record's own 'on' takes precedence. table: turns a DataFrame of the records into the one that
        is printed.
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
        """Measure what the file lacks, item by item; append each item immediately, and return the new records.

        items: (values of the columns `keys`, which identify an item in its records, and the argument of `measure`).
        same: column → value that a record must have to count as measured; here: the fields of provenance that must
        match this run's. seconds: start no further item after this time.
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
    """Return the values of `keys` of the records in a file that match all of `wanted`."""
    if not path.is_file():
        return set()
    rows = results.load(path)
    for column, value in wanted.items():
        rows = rows[rows[column].isna() if value is None else rows[column] == value]
    return set(zip(*(rows[key] for key in keys), strict=True))


def as_text(table: pandas.DataFrame) -> str:
    """Format a table as commands print it: one line per row, four significant digits, and a dash for missing values."""
    return str(table.to_string(index=False, na_rep="–", float_format="{:.4g}".format))


def kept(number: int, path: Path, machine: str | None = None) -> str:
    """Return the line about `number` records appended to `path`; for the reader's records it also says where they are
    drawn.

    machine: the machine they are from, by default this one.
    """
    said = f"{number} records appended to {path}"
    if path.parent != results.own_dir() or path in _explained:
        return said
    _explained.add(path)
    topic, machine = path.name.split(".")[0].replace("-", "_"), machine or this_machine().label
    numbers = [lab.number for lab in LABS if topic.startswith(lab.topic)]
    labs = f"lab{'s' * (len(numbers) > 1)} {' and '.join(numbers)}"
    return f"{said}\nThe figures of {labs} that draw this study show them too, as '{machine}{records.YOURS}'."
