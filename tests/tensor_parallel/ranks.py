"""Shared code of the tests on ranks: groups of each kind, and many cases per start. Pickled by value.

Starting four ranks that import PyTorch takes seconds, so a test file starts them once and checks all results.
"""

import gc
import sys
import time
import traceback
import weakref

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks do not know the tests' folders

WAYS = ("mpi", "own", "torch")

# Where the ranks do not have all cores to themselves, one that waits lets another work: ten times as quick.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}


def world(comm, way):
    """A Communication of all ranks."""
    import torch.distributed as dist

    from labs_helpers.communication import connect, torch_distributed

    if way == "torch" and not dist.is_initialized():
        torch_distributed.start(comm, "gloo")
    return connect(way, dist.group.WORLD if way == "torch" else comm)


def groups(comm, way, tp):
    """(tensor-parallel, data-parallel) Communication of this rank, tp × size / tp."""
    from labs_helpers.communication.mesh import Mesh

    mesh = Mesh(world(comm, way), {"dp": comm.size // tp, "tp": tp})
    return mesh["tp"], mesh["dp"]


def wait_for_all(comm):
    """A barrier in which nobody spins: those that still work need the cores."""
    everybody_is_here = comm.Ibarrier()
    while not everybody_is_here.Test():
        time.sleep(0.002)


def import_torch():
    """In half the time: garbage is not looked for in it, now or later, and less often in what optimizers import."""
    gc.disable()
    import torch

    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()
    torch.set_num_threads(1)  # ranks do not wait for each other's threads


def keep_what_is_imported(modules):
    """Freeze the modules that have come since there were `modules` of them; return how many there are now. Many cases
    collect garbage, and to look for it in all of PyTorch takes a tenth of a second on each rank, each time."""
    if len(sys.modules) > modules or not gc.get_freeze_count():  # a race of candidates lets go of what was frozen
        gc.collect()
        gc.freeze()
    return len(sys.modules)


def left_over(make):
    """How many of the objects that make() returns are alive when nobody refers to them any more: (before, after) a
    search for garbage. A GPU's memory waits for the search, which knows nothing of that memory."""
    gc.collect()
    gc.disable()
    try:
        watched = [weakref.ref(x) for x in make()]
        before = sum(x() is not None for x in watched)
    finally:
        gc.enable()
    gc.collect()
    return before, sum(x() is not None for x in watched)


def run_cases(comm, cases):
    """{name: what the case returns, or its traceback}. A case: a function of comm."""
    import_torch()
    results, modules = {}, 0
    for name, case in cases.items():
        modules = keep_what_is_imported(modules)
        try:
            results[name] = case(comm)
        except Exception:
            results[name] = traceback.format_exc()
        wait_for_all(comm)  # many cases are for some of the ranks
        # A case that failed on one rank alone has left the others waiting.
        if any(comm.allgather(isinstance(results[name], str))):
            break
    return results
