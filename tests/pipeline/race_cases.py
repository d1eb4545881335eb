"""The function that test_race.py runs on two ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def race(comm):
    """Race every candidate, one that fails and one with a wrong result; return records and table."""
    import dataclasses
    from unittest.mock import patch

    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.measure.records import frame
    from labs_helpers.measure.study import as_text
    from labs_helpers.pipeline.race import __main__ as module
    from labs_helpers.pipeline.race.candidates import OURS, Candidate, Work, build, candidates_on
    from labs_helpers.pipeline.schedules import one_f_one_b
    from labs_helpers.transformer import SIZES

    def fails(ranks, micro_batches):
        raise ValueError("no\nway")

    def build_one(candidate, work):
        step, pipeline = build(candidate, work)
        return (lambda: step() + 1) if candidate.name == "other" else step, pipeline

    torch_communication.start(comm, "gloo")
    config = dataclasses.replace(SIZES["tiny"], layers=4, width=32, heads=2, kv_heads=2, hidden=64)
    group = torch_communication.TorchCommunication(dist.group.WORLD)
    work = Work(config, 2, 16, 4, torch.float32, torch.device("cpu"), group)
    candidates = [*candidates_on(work.device), Candidate(OURS, "fails", fails), Candidate(OURS, "other", one_f_one_b)]
    with patch.object(module, "build", build_one):
        records = module.measure(work, candidates, 2, module.Passing(work), say=lambda text: None)
    races = [record | {"micro_batches": 4} for record in records if record["kind"] == "race"]
    shown = as_text(module.table(frame([record | {"on": {"machine": "M"}} for record in races])))
    dist.destroy_process_group()
    return records, shown
