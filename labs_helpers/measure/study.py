"""What the commands that measure share: the options they begin with, and how they keep their records."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from labs_helpers.launch.program import HOUR, Parser
from labs_helpers.measure import results
from labs_helpers.measure.provenance import provenance


def make_parser(doc: str, study: str, limit: float = 2 * HOUR) -> Parser:
    """A parser that describes the command by the first line of its module's docstring, and knows --out and --limit."""
    parser = Parser(description=doc.splitlines()[0], limit=limit)
    parser.add_argument(
        "--out", type=file_to_write, help=f"JSON Lines file to append to; default: results/{study}.MACHINE.jsonl"
    )
    return parser


def file_to_write(text: str) -> Path:
    """The type of an option: a file that can be written to, so that nothing is measured in vain."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise argparse.ArgumentTypeError(f"{text} {what}; name a file")
    try:
        results.try_to_append(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be written to: {error.strerror}") from None
    return path


def positive(text: str) -> float:
    """The type of an option: a number above 0."""
    if not (number := float(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def count(text: str) -> int:
    """The type of an option: a whole number from 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return number


def keep(
    study: str,
    records: list[dict],
    out: Path | None = None,
    *,
    machine: str | None = None,
    on: Mapping | None = None,
    show: Callable[[list[dict]], str] | None = None,
) -> None:
    """Append records with where they were measured, print what `show` makes of them, and say where they went.

    out: the file, by default the study's in results/, named for `machine`, which is this one unless it is given.
    on: what is known better than `provenance()` knows it; a record that knows better still has its own 'on'.
    """
    path = out or results.path_for(study, machine)
    where = provenance() | dict(on or {})
    results.append(path, [record | {"on": where | record.get("on", {})} for record in records])
    if show:
        print(f"\n{show(records)}\n")
    print(f"{len(records)} records appended to {path}", flush=True)
