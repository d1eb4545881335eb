"""Test that checks run answers on practice ranks only through `on_practice_ranks`, so that all labs report failures
in the same way."""

import ast

from tests.house.test_rooms import FILES, HOUSE, imports

FAILURES = {"Deadlock", "PracticeError", "PracticeTimeout", "RankFailed", "OnEachRank"}
CHECKS = [path for path in FILES if "checks" in path.relative_to(HOUSE).parts]


def own_runner(source: str) -> set[str]:
    """What a file names of the failures of practice ranks, and of an answer's own memory on each of them."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return FAILURES & (imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


def test_no_lab_s_check_handles_failures_of_ranks_itself():
    found = {str(path.relative_to(HOUSE)): own_runner(path.read_text()) for path in CHECKS}
    assert {path: names for path, names in found.items() if names} == {}
    assert len(CHECKS) > 100 and sum("course.verdict" in imports(path) for path in CHECKS) > 50


def test_a_runner_in_a_check_is_seen():
    assert own_runner("from labs_helpers.practice import Deadlock as D, practice") == {"Deadlock"}
    assert own_runner("import labs_helpers.practice as p\ntry: f()\nexcept p.RankFailed: pass") == {"RankFailed"}
