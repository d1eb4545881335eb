"""Test that every public name is used outside the tests."""

import ast
import re
from collections import Counter

from labs_helpers.labs import ROOT
from tests.house.test_rooms import FILES, HOUSE, module

USERS = [
    *FILES, *HOUSE.rglob("*.jinja"), *ROOT.glob("mpi_scripts/*.py"), *ROOT.glob("notebooks/*.ipynb"),
    *ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml",
]  # fmt: skip
FOR_CI = {"authoring.executed.is_current"}  # a test is its only use: of the notebooks that are shipped


def public(source: str) -> list[str]:
    """The public functions, classes and constants of a module; a decorator may have registered a function."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.decorator_list:
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def test_what_counts_as_public():
    assert public("A: int = 1\n_B = 2\ndef f(): C = 3\n@exercise\ndef g(): ...\nclass D: e = 1\n") == ["A", "f", "D"]


def test_every_public_name_is_used_outside_of_the_tests():
    words = Counter(word for path in USERS for word in re.findall(r"\w+", path.read_text()))
    unused = {f"{module(path)}.{name}" for path in FILES for name in public(path.read_text()) if words[name] < 2}
    assert unused == FOR_CI
