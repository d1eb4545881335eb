"""The command-line options that measuring commands share, and the types of their values."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labs_helpers.measure import results


def add_out(parser: argparse.ArgumentParser, name: str, kind: Callable[[str], Path] | None = None) -> None:
    """Add --out and --record, which exclude each other. Both set `out`; None means the reader's records.

    name: the file's name within a folder, for the help. kind: the type of --out; by default `file_or_folder`.
    """
    group = parser.add_mutually_exclusive_group()
    told = "write" if kind else "append to this JSON Lines file, or"
    group.add_argument(
        "--out",
        type=kind or file_or_folder,
        metavar="FOLDER" if kind else "FILE_OR_FOLDER",
        help=f"{told} to {name} in this folder; default: build/records/{name}",
    )
    group.add_argument(
        "--record", dest="out", nargs=0, action=_Record, help=f"for maintainers: to results/{name}, which git tracks"
    )


class _Record(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, given: argparse.Namespace, *_: Any) -> None:
        folder = results.results_dir()
        if not folder.is_dir() or folder.name == "recorded":
            parser.error(f"--record: {folder} is not the results/ of a checkout; name a folder with --out")
        given.out = folder


def file_or_folder(text: str) -> Path:
    """Parse an option's value: a writable folder or file, as `names_folder` tells them apart."""
    return folder_to_write(text) if names_folder(Path(text)) else file_to_write(text)


def names_folder(path: Path) -> bool:
    """Return True for a folder, and for a name without a suffix where nothing exists yet."""
    return path.is_dir() or not (path.exists() or path.suffix)


def folder_to_write(text: str) -> Path:
    """Parse an option's value: a folder that is writable or can be created."""
    path = Path(text)
    nearest = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be a folder: {nearest} is a file")
    _check_writable(path)
    return path


def file_to_write(text: str) -> Path:
    """Parse an option's value: a writable file. A refused path must stop the command before it measures."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise argparse.ArgumentTypeError(f"{text} {what}; name a file")
    _check_writable(path)
    return path


def _check_writable(path: Path) -> None:
    try:
        results.try_to_write(path)
    except OSError as error:
        told = f"{path} cannot be written to ({error.strerror}); name another place"
        raise argparse.ArgumentTypeError(told) from None


def positive(text: str) -> float:
    """Parse an option's value: a number above 0."""
    if not (number := float(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def count(text: str) -> int:
    """Parse an option's value: a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return number
