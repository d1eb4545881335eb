"""The function that test_race.py runs on two ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def race(comm):
    """Race every candidate, one that fails and one with a wrong result; return records and table."""
    import dataclasses

    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.measure.records import frame
    from labs_helpers.measure.study import as_text
    from labs_helpers.pipeline.race.__main__ import Passing, measure, table
    from labs_helpers.pipeline.race.candidates import CANDIDATES, OURS, Candidate, Work
    from labs_helpers.pipeline.schedules import forward_only, one_f_one_b
    from labs_helpers.transformer import SIZES

    def fails(ranks, micro_batches):
        raise ValueError("no\nway")

    def other(ranks, micro_batches):
        return one_f_one_b(ranks, micro_batches + 2)

    torch_communication.start(comm, "gloo")
    config = dataclasses.replace(SIZES["tiny"], layers=4, width=32, heads=2, kv_heads=2, hidden=64)
    group = torch_communication.TorchCommunication(dist.group.WORLD)
    work = Work(config, 2, 16, 4, torch.float32, torch.device("cpu"), group)
    candidates = [*CANDIDATES, Candidate(OURS, "fails", fails), Candidate(OURS, "other", other)]
    candidates.append(Candidate(OURS, "half", forward_only))
    records = measure(work, candidates, 2, Passing(work), say=lambda text: None)
    races = [record | {"micro_batches": 4} for record in records if record["kind"] == "race"]
    shown = as_text(table(frame([record | {"on": {"machine": "M"}} for record in races])))
    dist.destroy_process_group()
    return records, shown
