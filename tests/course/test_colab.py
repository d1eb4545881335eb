"""Colab's first cell, in an environment with Colab's versions of what it holds fast. Long: make soak.

PyTorch, Triton and what is large come from this environment: Colab's would be gigabytes.
"""

import importlib.metadata
import json
import os
import re
import sys

import pytest
from jupyter_client import KernelManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import ProcessFailed, run
from tests.house.test_dependencies import PROJECT

COLABS = ["ipykernel==6.17.1", "ipyparallel==8.8.0", "ipython==7.34.0", "numpy==2.0.2", "packaging"]
FROM_HERE = ["torch", "triton", "matplotlib", "pandas", "scikit-learn", "pillow", "jupyterlab"]
LIMIT_S = 600
pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="Triton runs on Linux")]


def with_requirements(names, known=()):
    """Installed distributions by name: these, and what they require."""
    found = dict(known)
    for name in names:
        try:
            if name not in found:
                found[name] = importlib.metadata.distribution(name)
                wanted = map(Requirement, found[name].requires or [])
                needed = [r.name for r in wanted if not r.marker or r.marker.evaluate({"extra": ""})]
                found = with_requirements(needed, found)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter that finds COLABS and, behind them, FROM_HERE, and nothing else."""
    venv = tmp_path_factory.mktemp("colab")
    run([sys.executable, "-m", "venv", venv], timeout=LIMIT_S)
    try:
        run([venv / "bin/python", "-m", "pip", "install", "--quiet", *COLABS], timeout=LIMIT_S)
    except ProcessFailed as failed:
        pytest.skip(f"Colab's versions cannot be installed here: {failed.output[-300:]}")
    (packages,) = venv.glob("lib/python*/site-packages")
    colabs = {canonicalize_name(path.name.split("-")[0]) for path in packages.glob("*.dist-info")}
    for distribution in with_requirements(FROM_HERE).values():
        if canonicalize_name(distribution.name) in colabs:
            continue
        for top in {path.parts[0] for path in distribution.files if path.parts[0] not in ("..", "__pycache__")}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution.locate_file(top))
    return venv / "bin/python"


@pytest.fixture
def kernel(python, tmp_path):
    """A kernel of that interpreter which believes itself on Colab; the course's address leads to this repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LABS_"))}
    address = PROJECT["urls"]["Repository"]
    env |= {"COLAB_RELEASE_TAG": "release", "LABS_DEVICE": "cpu", "GIT_CONFIG_COUNT": "2"}
    env |= {"GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf", "GIT_CONFIG_VALUE_0": address}
    env |= {"GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "*"}
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel(env=env, cwd=tmp_path)
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=LIMIT_S)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def said(kernel, code):
    """What a cell prints. AssertionError with its traceback where it fails."""
    texts = []

    def hear(message):
        content = message["content"]
        texts.extend(content.get("traceback", [content.get("text", "")]))

    reply = kernel.execute_interactive(code, timeout=LIMIT_S, output_hook=hear)
    assert reply["content"]["status"] == "ok", "\n".join(texts)
    return "".join(texts)


def test_the_first_cell_says_what_it_does_and_leaves_colab_s_own_alone(kernel):
    cells = json.loads(LABS[0].path.read_text())["cells"]
    first = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
    versions = "from importlib.metadata import version; print([version(n) for n in {}])"
    held = versions.format(("torch", "triton", "ipykernel", "ipyparallel", "ipython", "numpy"))
    before = said(kernel, held)
    told = said(kernel, first)
    steps = ["Fetching the course from GitHub", "Installing, once per machine, .*: .*mpi4py", "Lab 00 · ran on .*torch"]
    assert re.search(".*".join(steps), told, re.DOTALL), told
    assert said(kernel, held) == before and "'6.17.1', '8.8.0', '7.34.0', '2.0.2'" in before
    assert "Installing" not in said(kernel, 'setup("00")')
    added = "import mpi4py.MPI, triton_viz, ipyparallel; print(mpi4py.MPI.COMM_WORLD.size)"
    assert said(kernel, added).endswith("1\n")
