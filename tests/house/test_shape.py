"""Test that all topics and labs have the same structure, and that CONTRIBUTING and ARCHITECTURE name existing files."""

import re

import pytest

from labs_helpers.labs import LABS, ROOT
from tests.house.test_rooms import HOUSE, LIBRARIES

# What measures is a study, what measures beside others a race; charts draw records, pictures belong to one lab.
KINDS = {"study", "race", "charts", "pictures", "kernels", "hidden"}
OTHER_NAMES = re.compile(r"(studies|stud(y|ies)_\w+|races|racing|graphs?|plots?|charts_\w+|figures|drawings|secret\w*)")
MADE_BY_COMMANDS = "build/"
LINES_OF_CHECKS = 10  # at most, per line of a lab's references
STILL_LONGER = {"07": 12}
NAMED = re.compile(r"`([\w./<>*-]+(?:/[\w.<>*-]*|\.(?:py|ipynb|md|toml|json|yml)))`")


def parts_of(lab):
    """The folders where a lab's files stand: its package and its tests."""
    package = ROOT / lab.package.replace(".", "/")
    return package, ROOT / "tests" / package.relative_to(HOUSE)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_a_lab_has_what_every_lab_has(lab):
    package, tests = parts_of(lab)
    names = {path.stem for path in package.iterdir()}
    assert names >= {"exercises", "checks", "hidden", "pictures"}
    for kind in ("exercises", "checks"):
        assert list((package / kind).glob("ex1_*.py")), kind
    exercises = {path.name for path in (package / "exercises").glob("ex*.py")}
    assert exercises <= {path.name for path in (package / "checks").glob("ex*.py")}
    assert (tests / "test_planted_bugs.py").is_file() and (tests / "exercises").is_dir()


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_checks_are_no_library_of_their_own(lab):
    package, _ = parts_of(lab)
    checks, references = (
        sum(len(path.read_text().splitlines()) for path in (package / kind).rglob("*.py"))
        for kind in ("checks", "exercises")
    )
    assert checks <= STILL_LONGER.get(lab.number, LINES_OF_CHECKS) * references


def test_a_kind_of_folder_has_one_name():
    folders = [path for topic in LIBRARIES for path in (HOUSE / topic).rglob("*") if path.is_dir()]
    assert {path.name for path in folders} > KINDS
    assert [str(path.relative_to(HOUSE)) for path in folders if OTHER_NAMES.fullmatch(path.name)] == []


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_paths_that_it_names_exist(document):
    named = {name for name in NAMED.findall((ROOT / document).read_text()) if not name.startswith(MADE_BY_COMMANDS)}
    assert len(named) > 20
    missing = [name for name in named if not any(list(where.glob(pattern(name))) for where in places())]
    assert sorted(missing) == []


def pattern(name: str) -> str:
    """'exercises/ex*.py' of 'exercises/exN_name.py'."""
    for placeholder, stars in (("exN_name", "ex*"), ("labNN", "lab*"), (r"<\w+>", "*"), ("NN_", "*_")):
        name = re.sub(placeholder, stars, name)
    return name.rstrip("/")


def places():
    """Where a path in the documents may begin."""
    yield from (ROOT, HOUSE, ROOT / "tests")
    yield from HOUSE.rglob("*/")
    for lab in LABS:
        yield from parts_of(lab)
