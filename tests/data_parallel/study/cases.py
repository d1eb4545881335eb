"""The functions that test_study.py runs on two ranks: each kind once, in the smallest setting. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def shrink():
    """Use a model of 6,000 parameters that needs no text, and short sweeps."""
    from labs_helpers.data_parallel.study import accumulate, all_reduces, compression, task, timeline, turns, wrappers
    from labs_helpers.transformer import TransformerConfig
    from labs_helpers.transformer.training_step import fixed_batch

    task.MODELS["test"] = TransformerConfig(32, layers=2, width=16, heads=2, hidden=32, context=16, tied=False)
    all_reduces.SIZES, all_reduces.SPENT_S = {"cpu": (4**5, 4**6, 4**7)}, 0.0
    accumulate.PASSES, wrappers.PARTS, timeline.TAKEN = (1, 2), (8, 1), 1
    turns.WARM_UP = timeline.WARM_UP = 0
    for name in ("top-k 1%", "int8"):
        del compression.HOOKS[name]
    compression.evaluate = lambda *given: 3.5  # which reads all of its text, as does what follows
    compression.batches = lambda split, batch, length, seed: iter(
        [fixed_batch(task.MODELS["test"], batch, length, 10 * seed + step) for step in range(2)]
    )


def every_kind(comm):
    """Return (records, messages of `say`, calls of `at`, saved records, records of offloading)."""
    import torch

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.data_parallel.study.measure import KINDS, Options, measure
    from labs_helpers.data_parallel.study.offload import WAYS, compare
    from labs_helpers.data_parallel.study.task import Task

    torch_communication.start(comm, "gloo")
    torch.manual_seed(comm.rank)
    shrink()
    said, begun = [], []
    options = Options("test", batch=1, length=8, rounds=1, steps=2)
    saved = []
    records = measure(list(KINDS), options, said.append, begun.append, saved.extend)
    ways = {name: WAYS[name] for name in ("ZeRO-2, optimizer on the CPU", "ZeRO-3, parameters on the CPU")}
    beside = compare(Task.here(options), ways)
    return records, said, begun, saved, beside


def refused(comm):
    """Return the message for each wrong option."""
    from labs_helpers.data_parallel.study import turns
    from labs_helpers.data_parallel.study.measure import Options, measure
    from labs_helpers.data_parallel.study.replicas import replica
    from labs_helpers.data_parallel.study.task import Task

    def other_model():
        turns.WARM_UP = 1  # so that losses are compared after an update
        task = Task.here(Options("test", 1, 8, rounds=1))
        unlike = replica(task, "flat")
        unlike.update = lambda: None
        turns.race(task, {"naive": replica(task, "naive"), "wrong": unlike})

    wrong = {
        "kind": lambda: measure(["nothing"], Options("test", 1, 8)),
        "size": lambda: Options("huge"),
        "length": lambda: Options("test", 1, 17),
        "rounds": lambda: Options("test", 1, 8, rounds=0),
        "bucket": lambda: Options("test", 1, 8, bucket_mb=0.0),
        "losses": other_model,
    }
    found = {}
    for name, call in wrong.items():
        try:
            call()
        except (ValueError, RuntimeError) as error:
            found[name] = str(error)
    return found
