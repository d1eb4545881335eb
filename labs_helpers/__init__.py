"""The library behind the labs: foundations, one room a topic, and beside each topic the labs that teach it."""

import os

from labs_helpers.moved import find_moved_modules

# A thread of PyTorch's that waits for the others first spins, for milliseconds. On a busy machine it so takes the core
# from those that it waits for, and a step takes a hundred times as long. GNU's OpenMP reads this once, as PyTorch is
# imported; programs that are started inherit it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")

find_moved_modules()
