"""Loaded by every pytest run in this repository."""

import functools
import gc
import os
from importlib.util import find_spec

import pytest

# A machine that only measures kernels has no Jupyter, and nothing to guard.
pytest_plugins = ["tests.cpu_report", *(["tests.nbval_guard"] if find_spec("nbval") else [])]

# What somebody measured on this machine changes no figure of a test, and no test adds to it: this is no folder.
os.environ["LABS_RECORDS"] = os.devnull
os.environ.pop("JPY_SESSION_NAME", None)  # nor does a test, started in a notebook, keep its ✓ as that notebook's
os.environ["LABS_SLIDERS"] = "0"  # of figures, which nobody moves here

# One worker per core: a worker's own threads, and those of the kernels it starts, would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """What is imported and collected stays to the end: garbage is not looked for in it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file's tests, and a notebook's cells, stay on one worker, and so do the files of a folder that share what its
    conftest.py starts, and all files that share the ranks of tests/real_ranks.py: a second worker would start four of
    its own, and eight ranks on two cores wait for each other. Planted bugs, unseen answers and solved labs share
    nothing and go to any worker. They are begun last, file by file those with the most tests first: so no worker has
    to wait at the end."""
    from xdist.scheduler import LoadFileScheduling

    class SomeAnywhere(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            if file.endswith(("/test_planted_bugs.py", "/test_planted.py", "/test_solved.py", "/test_unseen.py")):
                return nodeid
            folder = config.rootpath.joinpath(file).parent
            if any(map(_shares_ranks, (config.rootpath / file, folder / "conftest.py"))):
                return "real ranks"
            shared = folder.name != "tests" and (folder / "conftest.py").exists()
            return str(folder) if shared else super()._split_scope(nodeid)

    return SomeAnywhere(config, log)


@functools.cache
def _shares_ranks(file):
    """Whether the tests of `file` use the ranks of tests/real_ranks.py, whose own tests end them."""
    if file.suffix != ".py" or file.name == "test_real_ranks.py" or not file.exists():
        return False
    text = file.read_text()
    return "from tests import real_ranks" in text or "import fixtures_of" in text
