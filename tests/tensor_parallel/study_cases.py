"""The functions that test_study.py runs on four ranks. Pickled by value."""

import sys

import cloudpickle

from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(on_ranks)


def tiny():
    from labs_helpers.transformer import TransformerConfig

    return TransformerConfig(32, layers=1, width=16, heads=4, hidden=32, tied=False)


def variants():
    """Of four ranks, one of each kind."""
    from labs_helpers.tensor_parallel.variants import Variant

    return [
        Variant(4, 1),
        Variant(2, 2),
        Variant(2, 2, "across"),
        Variant(1, 4),
        Variant(1, 4, scheme="naive"),
        Variant(2, 2, sequence_parallel=True),
        Variant(4, 1, overlap=True),
    ]


def task(comm):
    from labs_helpers.tensor_parallel.variants import Task

    return Task(comm, tiny(), batch=4, length=8)


def placements(comm):
    """{placement: (ranks of this rank's tensor-parallel group, of its data-parallel group)}, and what was said where
    two nodes were to be that are one."""
    from labs_helpers.communication import connect
    from labs_helpers.tensor_parallel.placement import place

    world = connect("mpi", comm)
    found = {}
    for placement in ("inside", "across"):
        mesh = place(comm, world, 2, 2, placement, ranks_per_node=4)
        found[placement] = mesh.ranks["tp"], mesh.ranks["dp"]
    try:
        place(comm, world, 2, 2, "across", ranks_per_node=2)
    except RuntimeError as error:
        found["said"] = str(error)
    return found


def race(comm):
    from labs_helpers.tensor_parallel import layout_race

    return layout_race.race(task(comm), variants(), 4, rounds=2)


def race_of_different_losses(comm):
    from labs_helpers.tensor_parallel import layout_race

    layout_race.SAME_LOSS = 0.0
    try:
        layout_race.race(task(comm), variants()[:2], 4, rounds=1)
    except RuntimeError as error:
        return {"said": str(error)}
    finally:
        layout_race.SAME_LOSS = 2e-5


def count(comm):
    from labs_helpers.tensor_parallel import layout_race

    return layout_race.count(task(comm), variants(), 4)


def gpu_race(comm):
    """Over gloo; with a candidate that cannot run."""
    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.measure.records import frame
    from labs_helpers.measure.study import as_text
    from labs_helpers.tensor_parallel import gpu_race

    if not dist.is_initialized():
        torch_communication.start(comm, "gloo")
    cpu, said = torch.device("cpu"), []
    manner = {"attentions": ["sdpa", "none such"], "manners": [False], "sizes": (1024, 4096)}
    records = gpu_race.measure(tiny(), torch.float32, cpu, 4, 8, rounds=1, say=said.append, **manner)
    return records, said, as_text(gpu_race.table(frame(records)))
