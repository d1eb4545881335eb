"""Test that each public name of a topic exists, is listed, comes from its module, and is used outside the tests."""

import ast
import importlib
import re
import sys

import pytest

from labs_helpers.labs import ROOT
from labs_helpers.launch.process import run
from tests.house.test_rooms import HOUSE, LIBRARIES

LAZY = [topic for topic in LIBRARIES if "lazily(" in (HOUSE / topic / "__init__.py").read_text()]
USERS = [*HOUSE.rglob("*.py"), *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("mpi_scripts/*.py"), ROOT / "README.md"]


def used(topic: str, name: str) -> bool:
    pattern = rf"from labs_helpers\.{topic}(\.[\w.]+)? import [^#]*?\b{name}\b"
    own = HOUSE / topic / "__init__.py"
    return any(re.search(pattern, path.read_text()) for path in USERS if path != own)


@pytest.mark.parametrize("topic", LAZY)
def test_public_names_are_there_listed_and_used(topic):
    package = importlib.import_module(f"labs_helpers.{topic}")
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert name.isupper() or getattr(package, name).__module__.startswith(f"labs_helpers.{topic}.")
        assert used(topic, name), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("topic", LAZY)
def test_type_checkers_and_python_find_the_same(topic):
    tree = ast.parse((HOUSE / topic / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    static = {alias.name: line.module for line in block.body for alias in line.names}
    (call,) = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "lazily")
    lazy = {name: f"labs_helpers.{topic}.{module}" for name, module in ast.literal_eval(call.args[1]).items()}
    assert static == lazy


def test_a_function_stays_one_whatever_was_imported_first():
    program = """
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
import labs_helpers.gemm.fused, labs_helpers.attention.flash
from labs_helpers.gemm import fused_matmul
from labs_helpers.attention import flash_attention
print(callable(fused_matmul), callable(flash_attention), fused_matmul is labs_helpers.gemm.fused.fused_matmul)
"""
    assert run([sys.executable, "-c", program], timeout=100, cwd=ROOT).split() == ["True"] * 3
