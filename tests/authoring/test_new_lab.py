"""Test `make new-lab`: in a copy of the tree, a new lab passes its form test, its planted bugs and the style checks."""

import ast
import os
import re
import shutil
import sys

import nbformat
import pytest

from labs_helpers.authoring.new_lab import main, values, with_entry
from labs_helpers.labs import ANY_MACHINE, LABS, ROOT
from labs_helpers.launch.process import run

GIVEN = {"number": "98", "topic": "block_sparse", "title": "Sparse, by blocks: y = 2x"}
TREE = (
    "labs_helpers", "pyproject.toml", "README.md", "conftest.py", "tests/__init__.py", "tests/conftest.py",
    "tests/cpu_report.py", "tests/nbval_guard.py", "tests/notebook_form.py", "tests/notebooks", "tests/planted.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what a lab needs, without the other labs' notebooks and tests, in which lab 98 was made."""
    tree = tmp_path_factory.mktemp("a tree")
    for name in TREE:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name)  # with what Python has compiled, which keeps its dates
        else:
            shutil.copy(ROOT / name, tree / name)
    (tree / "notebooks").mkdir()
    python(tree, "labs_helpers.authoring.new_lab", *GIVEN.values())
    return tree


def python(tree, module, *arguments):
    """`python -m module` of the copy, which its kernels import too."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return run([sys.executable, "-m", module, *map(str, arguments)], timeout=100, cwd=tree, env=environment)


@pytest.mark.soak  # to make it has synced, imported and executed it
def test_it_passes_its_form_test_its_planted_bugs_and_strict_nbval(tree):
    (notebook,) = (tree / "notebooks").iterdir()
    assert notebook.name == "98_sparse_by_blocks_y_2x.ipynb"
    cells = sum(cell.cell_type == "code" for cell in nbformat.read(notebook, 4).cells)
    said = python(
        tree, "pytest", "-v", "-p", "no:cacheprovider", "tests/notebooks/test_form.py", "tests/block_sparse",
        "tests/notebooks/test_complete.py", notebook, "-k", "98",
        "--nbval", "--nbval-current-env", "--nbval-cell-timeout=60",
    )  # fmt: skip
    assert len(re.findall(r"::Cell \d+ PASSED", said)) == cells > 5
    assert len(re.findall(r"^tests/.* PASSED", said, re.MULTILINE)) > 20


def test_the_grader_has_inputs_that_its_checks_do_not_show(tree):
    program = """
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
from labs_helpers.block_sparse.lab98 import exercises
from labs_helpers.grading.hidden import generator, run_of
print(len(list(run_of("98/1")(exercises.double, generator(7, "98/1")))))
"""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    assert run([sys.executable, "-c", program], timeout=100, cwd=tree, env=environment).strip() == "4"


def test_it_keeps_the_style_of_the_house(tree):
    made = [tree / "labs_helpers/block_sparse", tree / "tests/block_sparse", tree / "notebooks"]
    python(tree, "ruff", "check", "--no-cache", *made)
    python(tree, "ruff", "format", "--check", "--force-exclude", "--no-cache", *made, tree / "labs_helpers/labs.py")


def test_it_is_in_the_table_and_in_the_readme(tree):
    built = "a kernel that doubles each element, and the bytes that it moves"
    row = f"| 98 | Sparse, by blocks: y = 2x | {built} | {ANY_MACHINE} | 20 |"
    assert row in (tree / "README.md").read_text().splitlines()


def test_the_entry_stands_in_the_order_of_the_numbers():
    table = (ROOT / "labs_helpers" / "labs.py").read_text()
    for count, number in enumerate(("98", "55"), start=1):  # at the end, and before another
        table = with_entry(table, values(number, "topic", "A title"))
        (entries,) = [
            n.value.elts for n in ast.parse(table).body if isinstance(n, ast.Assign) and n.targets[0].id == "LABS"
        ]
        numbers = [entry.args[0].value for entry in entries]
        assert numbers[len(LABS)] == number and numbers == sorted(numbers) and len(numbers) == len(LABS) + count


@pytest.mark.parametrize(
    "number, topic, title, said",
    [
        ("", "", "", "NUMBER has two digits"),
        ("7", "topic", "A title", "NUMBER has two digits"),
        ("02", "topic", "A title", "there is a lab 02 already"),
        ("98", "Tensor Parallel", "A title", "TOPIC is the name of a package"),
        ("98", "topic", "", "TITLE is a line"),
        ("98", "topic", 'A "title"', "TITLE is a line"),
    ],
)
def test_what_cannot_be_made_is_said(number, topic, title, said, capsys):
    assert main([number, topic, title]) == 1
    error = capsys.readouterr().err
    assert said in error and "make new-lab NUMBER=07" in error


def test_no_file_is_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("labs_helpers.authoring.new_lab.ROOT", tmp_path)
    there = tmp_path / "labs_helpers/topic/lab98/pictures.py"
    there.parent.mkdir(parents=True)
    there.write_text("mine")
    assert main(["98", "topic", "A title"]) == 1
    assert "not written over: labs_helpers/topic/lab98/pictures.py" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [there] and there.read_text() == "mine"
