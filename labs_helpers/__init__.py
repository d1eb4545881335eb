"""The library behind the labs: foundations, one package per topic, and beside each topic the labs that teach it."""

import os

from labs_helpers.moved import find_moved_modules

# A PyTorch thread that waits for others first spins for milliseconds. On a busy machine this takes the core away
# from the threads it waits for, and a step takes a hundred times as long. GNU's OpenMP reads this once, when PyTorch is
# imported; child processes inherit it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")

find_moved_modules()
