"""Test that every program of a topic, and every script for ranks, has a time limit (see launch.program)."""

import ast

import pytest

from tests.house.test_rooms import FILES, FOUNDATIONS, HOUSE, OFFICES, ROOT

NO_TOPICS = {*FOUNDATIONS, *OFFICES}  # their commands have limits of their own, or none that waits
TOPICS = [path for path in FILES if path.relative_to(HOUSE).parts[0] not in NO_TOPICS]


def started(path):
    """The calls under `if __name__ == "__main__"`, as text; None where there is none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
            return [ast.unparse(statement) for statement in node.body]
    return None


PROGRAMS = {path: started(path) for path in [*TOPICS, *sorted((ROOT / "mpi_scripts").glob("*.py"))]}
PROGRAMS = {path: calls for path, calls in PROGRAMS.items() if calls}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_program_is_run_with_a_limit(path):
    assert PROGRAMS[path][0].startswith("program.run(")
    text = path.read_text()
    assert "ArgumentParser(" not in text.replace("argparse.ArgumentParser):", ""), "program.Parser knows --limit"


def test_there_are_programs():
    assert len(PROGRAMS) > 20
