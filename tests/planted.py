"""Planted bugs: functions made from a reference's file with one change."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from labs_helpers.compile.source import plain
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.variants import Listed, replaced

_serial = itertools.count()
OFTEN = 6  # bugs per exercise that `make test` plants, spread over its list; `make soak` plants them all


def planted(reference, folder: Path, *changes: tuple[str, str], source: str | None = None):
    """The function `reference` out of a copy of its file (or of `source`) in which each (old, new) of `changes` is
    replaced.

    Every `old` has to be there: a bug that is not planted would pass its test.
    """
    source = replaced(source or Path(inspect.getsourcefile(plain(reference))).read_text(), *changes)
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


def named(name: str, listed: Listed) -> list[tuple]:
    """Return entries of BUGS: a check's mistakes, which are changes of the reference. Its own sentence is the only
    cause of each, unless the change leaves a result that nothing uses."""
    unused = "(nothing uses the result of .*; or: )?"
    return [(name, said[:50], changes, f"Likely cause: {unused}{re.escape(said)}$") for said, *changes in listed]


def often(cases: Iterable[tuple[Hashable, Sequence[Any]]]) -> list[Any]:
    """Return pytest's parameters for each (exercise, values), of which all but OFTEN per exercise are for soak."""
    groups: dict[Hashable, list[int]] = {}
    cases = list(cases)
    for number, (exercise, _) in enumerate(cases):
        groups.setdefault(exercise, []).append(number)
    kept = {of[i * len(of) // OFTEN] for of in groups.values() for i in range(OFTEN)}
    return [
        pytest.param(*values, marks=[] if number in kept else pytest.mark.soak)
        for number, (_, values) in enumerate(cases)
    ]


class PlantedBugs:
    """The tests of a lab's checks. A subclass has `check` (the module), `REFERENCES` (name → reference), `BUGS`
    (name, bug, changes, regex of the message) and `DIFFERENT` (name, changes that leave the answer right).

    It stands in tests/<topic>/labNN/test_planted_bugs.py: there tests.notebooks.complete counts."""

    def pytest_generate_tests(self, metafunc):
        needed = set(metafunc.fixturenames)
        if "message" in needed:
            metafunc.parametrize(
                ("name", "changes", "message"),
                often((b[0], (b[0], *b[2:])) for b in self.BUGS),
                ids=[f"{b[0]}: {b[1]}" for b in self.BUGS],
            )
        elif "changes" in needed:
            metafunc.parametrize(
                ("name", "changes"), self.DIFFERENT, ids=[f"{d[0]}: {d[1][0][1][:40]}" for d in self.DIFFERENT]
            )
        elif "name" in needed:
            metafunc.parametrize("name", self.REFERENCES)

    def test_rejects(self, name, changes, message, tmp_path):
        rejects(getattr(self.check, name), planted(self.REFERENCES[name], tmp_path, *changes), message)

    def test_accepts_written_differently(self, name, changes, tmp_path):
        assert getattr(self.check, name).verify(planted(self.REFERENCES[name], tmp_path, *changes))

    def test_accepts_the_reference(self, name):
        assert getattr(self.check, name).verify(self.REFERENCES[name])


def by_number(mistakes, *arguments):
    """Pairs (sentence, function) of what `mistakes` yields of arguments, as `judge_parts` takes it."""

    def take(number):
        def make(*given):
            _, answer = next(itertools.islice(mistakes(*given), number, None))
            return answer() if callable(answer) else answer

        return make

    return [(sentence, take(number)) for number, (sentence, _) in enumerate(mistakes(*arguments))]


class PlantedLists:
    """The tests of lists of mistakes that checks hold as functions of the exercise's arguments.

    A subclass has LISTS: (check, pairs (sentence, function), a function that makes an answer of one). Each is caught,
    and named by its own sentence and by no other; sentences that stand for one function are one."""

    def pytest_generate_tests(self, metafunc):
        if "mistake" in metafunc.fixturenames:
            rows = [(check, said, answer(one)) for check, mistakes, answer in self.LISTS for said, one in mistakes]
            ids = [f"{check.trial.__name__}: {said[:60]}" for check, said, _ in rows]
            metafunc.parametrize(("check", "sentence", "mistake"), often((row[0], row) for row in rows), ids=ids)

    def test_a_mistake_is_named_by_its_own_sentence(self, check, sentence, mistake):
        with pytest.raises(Wrong) as wrong:
            check.verify(mistake)
        assert wrong.value.causes == (sentence,)
