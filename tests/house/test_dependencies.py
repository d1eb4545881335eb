"""Test that all files agree with pyproject.toml, and that its one list of dependencies covers all imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAME = {"torch": "pytorch"}


def ranges(lines):
    """{canonical name: SpecifierSet} of requirement lines; markers aside."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): r.specifier for r in parsed}


COURSE = ranges(PROJECT["dependencies"])
EXTRAS = {extra: ranges(lines) for extra, lines in PROJECT["optional-dependencies"].items()}
TESTS = EXTRAS["test"]
ALL = {**COURSE, **{name: allowed for extra in EXTRAS.values() for name, allowed in extra.items()}}
PINNED = ranges(line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#"))


def test_conda_has_the_same_list():
    lines = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (from_pip,) = [line["pip"] for line in lines if isinstance(line, dict)]
    conda = ranges([*(line for line in lines if isinstance(line, str)), *from_pip])
    assert conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert conda.pop("pip") == SpecifierSet()
    assert conda == {CONDA_NAME.get(name, name): allowed for name, allowed in {**COURSE, **TESTS}.items()}


def test_the_citation_has_the_same_address_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    assert citation["license"] == PROJECT["license"]


@pytest.mark.parametrize("name", ALL)
def test_the_tested_version_is_pinned_and_allowed(name):
    (pin,) = PINNED[name]
    assert pin.operator == "=="
    assert ALL[name].contains(pin.version)


def test_constraints_resolve_from_any_index():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", line), line


@pytest.mark.parametrize(
    "name, versions",
    {
        "torch": ["2.11.0", "2.13.0"],
        "triton": ["3.6.0", "3.7.1"],
        "ipykernel": ["6.17.1"],
        "ipyparallel": ["8.8.0"],
        "numpy": ["2.0.2", "2.5.0"],
    }.items(),
)
def test_ranges_admit_what_colab_has(name, versions):
    assert all(COURSE[name].contains(version) for version in versions)


def imported(*folders):
    """{top-level package: a file that imports it} for the third-party imports under `folders`."""
    found = {}
    for file in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    continue
            found.update((module.partition(".")[0], str(file.relative_to(ROOT))) for module in modules)
    own = {"docs", "labs_helpers", "tests", "mpi_scripts", *sys.stdlib_module_names}
    return {package: file for package, file in found.items() if package not in own}


@pytest.mark.parametrize(
    "folders, declared",
    [(("labs_helpers", "mpi_scripts"), COURSE), (("docs", "tests"), ALL)],
    ids=["course", "tests"],
)
def test_every_import_is_declared(folders, declared):
    distributions = packages_distributions()
    undeclared = {
        package: file
        for package, file in imported(*folders).items()
        if not declared.keys() & {canonicalize_name(name) for name in distributions.get(package, [package])}
    }
    assert not undeclared
