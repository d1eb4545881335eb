"""Test the course as installed without a checkout: exactly the packages, their data and the records."""

import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from labs_helpers.launch.process import run

ROOT = Path(__file__).parents[2]
EXAMPLES = ("example.a-machine.json.gz", "example.a-machine.json")  # recordings, as they lie under results/traces


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The names of the files that the wheel of a copy of the tree puts into site-packages."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for name in ("labs_helpers", "results", "tests", "notebooks", "mpi_scripts"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    (tree / "results/traces").mkdir(exist_ok=True)
    for name in EXAMPLES:
        (tree / "results/traces" / name).touch()
    options = ["--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", out]
    run([sys.executable, "-m", "pip", "wheel", *options, tree], timeout=60)
    (wheel,) = out.glob("*.whl")
    return set(ZipFile(wheel).namelist())


def test_it_holds_the_library_with_its_data_and_the_records(installed):
    library = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "labs_helpers").rglob("*")
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & {*path.parts}
    }
    patterns = ("*.jsonl", "traces/*.json.gz", "traces/*.json")
    found = [path.relative_to(ROOT / "results") for pattern in patterns for path in (ROOT / "results").glob(pattern)]
    records = {f"labs_helpers/recorded/{path.as_posix()}" for path in found}
    records |= {f"labs_helpers/recorded/traces/{name}" for name in EXAMPLES}
    assert found and {name for name in installed if name.startswith("labs_helpers/")} == library | records


def test_it_holds_nothing_else_but_what_describes_it(installed):
    others = {name.partition("/")[0] for name in installed} - {"labs_helpers"}
    assert len(others) == 1 and others.pop().endswith(".dist-info")
    assert any(name.endswith("/licenses/LICENSE") for name in installed)
