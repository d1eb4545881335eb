"""Test that imports in students' older copies still work after a module has moved, and name its new place."""

import importlib
import sys

import pytest

from labs_helpers.labs import ROOT
from labs_helpers.launch.process import run
from labs_helpers.moved import MOVED, PUBLIC, new_name


def test_what_older_notebooks_import_is_the_same_and_a_sentence_says_where_it_is():
    program = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from labs_helpers.collectives.practice import practice
    from labs_helpers.data_parallel import settings, volume
    from labs_helpers.data_parallel.planner.volume import step_volume
    from labs_helpers.tensor_parallel.training import run as training
    from labs_helpers.tensor_parallel.training.settings import Settings
import labs_helpers.planner.volume, labs_helpers.training.settings
print(practice is __import__("labs_helpers.practice").practice.practice)
print(volume.step_volume is step_volume is labs_helpers.planner.volume.step_volume)
print(Settings is labs_helpers.training.settings.Settings)
print(*{str(warning.message) for warning in said if warning.category is FutureWarning}, sep="\\n")
"""
    same, volume, settings, *said = run([sys.executable, "-c", program], timeout=100, cwd=ROOT).splitlines()
    assert (same, volume, settings) == ("True", "True", "True")
    assert any(line.startswith("labs_helpers.collectives.practice is now labs_helpers.practice.") for line in said)


def test_every_new_place_exists_and_no_old_one_does():
    for old, new in MOVED.items():
        assert importlib.util.find_spec(f"labs_helpers.{new}").loader is not None
        assert new_name(f"labs_helpers.{old}") == f"labs_helpers.{new}"
        parts = ROOT.joinpath("labs_helpers", *old.split("."))
        assert not parts.with_suffix(".py").exists() and not (parts / "__init__.py").exists()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_module_whose_name_is_a_function_s_now_is_told(name):
    with pytest.raises(ModuleNotFoundError, match="is a function now, and no module: from labs_helpers"):
        importlib.import_module(f"labs_helpers.{name}")


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="labs_helpers.collectives.practise"):
        importlib.import_module("labs_helpers.collectives.practise")
    assert not new_name("numpy.practice") and not new_name("labs_helpers.collectives.practices")
