"""Planted bugs: a reference's file with one thing changed, as a function."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
from pathlib import Path

import pytest

from labs_helpers.bench.source import plain
from labs_helpers.course.wrong import Wrong

_serial = itertools.count()


def planted(reference, folder: Path, *changes: tuple[str, str]):
    """The function `reference` out of a copy of its file in which each (old, new) of `changes` is replaced.

    Every `old` has to be there: a bug that is not planted would pass its test.
    """
    source = Path(inspect.getsourcefile(plain(reference))).read_text()
    for old, new in changes:
        assert old in source, f"{old!r} is not in the reference"
        source = source.replace(old, new)
    path = folder / f"planted_{next(_serial)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, plain(reference).__name__)


def rejects(check, function, message: str) -> None:
    """Asserts that `check` finds `function` wrong with a text that matches the regex `message`."""
    with pytest.raises(Wrong, match=message):
        check.verify(function)
