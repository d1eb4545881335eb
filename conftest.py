"""Loaded by every pytest run in this repository."""

from importlib.util import find_spec

# A machine that only measures kernels has no Jupyter, and nothing to guard.
pytest_plugins = ["tests.nbval_guard"] if find_spec("nbval") else []
