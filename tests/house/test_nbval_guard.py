"""Test that tests/nbval_guard.py catches failures that nbval misses."""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from labs_helpers.launch.process import ProcessFailed, run
from tests import notebook_form

ROOT = Path(__file__).parents[2]

# Each notebook: its cells.
NOTEBOOKS = {
    "right": ["x = 1", "assert x == 1"],
    "wrong": ["x = 1", "assert x == 2", "x"],
    "returns_when_interrupted": [
        "import time\ntry: time.sleep(600)\nexcept KeyboardInterrupt: pass",
        "x = 1",
    ],
    "swallows_interrupts": [
        "import time\nwhile True:\n  try: time.sleep(0.1); print('x')\n  except KeyboardInterrupt: pass",
        "x = 1",
    ],
    "dies": ["import os\nos._exit(0)", "x = 1"],
    "dies_between_cells": [
        "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(1), os._exit(0))).start()",
        "time.sleep(600)",
        "x = 1",
    ],
    "crashes": ["import os\nos.kill(os.getpid(), 11)", "x = 1"],
    "floods": ["import time\nwhile True: print('x' * 100_000); time.sleep(0.001)", "x = 1"],
    "chatters_within_the_limit": ["for i in range(2000): print('x' * 1000)"],
}
LIMIT_S = 3


def notebook(path, *cells):
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def nbval(folder, *options):
    command = [sys.executable, "-m", "pytest", "-p", "tests.nbval_guard", "-p", "no:cacheprovider"]
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={LIMIT_S}", "--color=no"]
    command += ["-c", ROOT / "pyproject.toml", "--rootdir", folder, folder]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # not for this run
    return run([*command, *options], cwd=ROOT, env=environment, timeout=300)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{notebook: [what is said of each cell, '' if it passed]} of one strict nbval run over NOTEBOOKS, and what is said
    of each one's form."""
    folder = tmp_path_factory.mktemp("notebooks")
    for name, sources in NOTEBOOKS.items():
        ignore = {"tags": ["nbval-ignore-output"]}
        cells = [new_code_cell(s, execution_count=1, metadata=ignore) for s in sources]
        notebook(folder / f"{name}.ipynb", *cells)
    notebook(folder / "without_a_count.ipynb", new_code_cell("x = 1"))
    with pytest.raises(ProcessFailed):
        nbval(folder, "--junit-xml", folder / "results.xml")
    found = defaultdict(list)
    for case in ElementTree.parse(folder / "results.xml").iter("testcase"):
        name = case.get("classname").removesuffix(".ipynb").rpartition(".")[2]
        item = name if case.get("name").startswith("Cell") else f"{name}, {case.get('name')}"
        found[item].append("".join(bad.text for bad in case))
    return found


@pytest.mark.parametrize(
    "name, messages",
    {
        "right": ["", ""],
        "wrong": ["", "AssertionError", ""],
        "returns_when_interrupted": ["Timeout of 3 seconds exceeded; it ended", "Cell 0 ran out of time"],
        "swallows_interrupts": ["Timeout of 3 seconds.*Failed to interrupt", "Cell 0 ran out of time"],
        "dies": ["kernel died", "Not run.*Cell 0: The kernel died"],
        "dies_between_cells": ["", "kernel died", "Not run.*Cell 1: The kernel died"],
        "crashes": ["kernel died", "Not run.*Cell 0: The kernel died"],
        "floods": ["more than 5,000,000 bytes", "Not run.*more than 5,000,000 bytes"],
        "chatters_within_the_limit": [""],
    }.items(),
)
def test_each_cell_is_judged(results, name, messages):
    assert len(results[name]) == len(messages)
    for said, expected in zip(results[name], messages, strict=True):
        assert re.search(expected, said, re.DOTALL) if expected else not said


def test_a_notebook_in_good_form_has_no_faults(tmp_path):
    cells = [new_code_cell("x = 1", execution_count=1), new_code_cell("x != 2", execution_count=2)]
    assert notebook_form.faults(notebook(tmp_path / "lab.ipynb", *cells)) == []


BAD_FORM = {
    "execution count": new_code_cell("x = 1"),
    "output of an error": new_code_cell("x", execution_count=1, outputs=[new_output("error", ename="E")]),
    "stderr": new_code_cell("x", execution_count=1, outputs=[new_output("stream", name="stderr", text="\nlib: bad")]),
    "raises-exception": new_code_cell("x", execution_count=1, metadata={"tags": ["raises-exception"]}),
    "skipped": new_code_cell("# NBVAL_SKIP\nx", execution_count=1),
    "make figures smaller": new_code_cell("x" * notebook_form.SIZE_LIMIT, execution_count=1),
}


@pytest.mark.parametrize("fault", BAD_FORM)
def test_bad_form_is_named(tmp_path, fault):
    (found,) = notebook_form.faults(notebook(tmp_path / "lab.ipynb", BAD_FORM[fault]))
    assert fault in found


@pytest.mark.parametrize(
    "source, starts",
    {
        "!ls": True,
        "if True:\n    !ls {x}": True,
        "files = !ls": True,
        "!!ls": True,
        "%system ls": True,
        "%sx ls": True,
        "%%!\nls": True,
        "%time f(x)": False,
        "%%bash\nls": False,
        "a != b": False,
        "print('!ls')  # !ls": False,
        'text = """\n!ls\n"""': False,
        "x = (": False,
    }.items(),
)
def test_shell_escapes_are_recognised(source, starts):
    assert notebook_form.starts_process(source) is starts


def test_bad_form_fails_the_run(results):
    forms = {name: said for name, said in results.items() if name.endswith(", form")}
    (said,) = forms.pop("without_a_count, form")
    assert "code cell 0 `x = 1`: has no execution count" in said
    assert len(forms) == len(NOTEBOOKS) and all(said == [""] for said in forms.values())
