"""The functions that test_race.py runs on two ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def race(comm):
    """Race one candidate of each library, one that fails and one with a wrong result; return records and table."""
    import dataclasses

    import torch

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.data_parallel.race.__main__ import measure, table
    from labs_helpers.data_parallel.race.candidates import HEATS, OURS, Candidate
    from labs_helpers.data_parallel.study.setting import Setting
    from labs_helpers.data_parallel.study.ways import alone
    from labs_helpers.measure.records import frame
    from labs_helpers.measure.study import as_text
    from labs_helpers.transformer import SIZES

    torch_communication.start(comm, "gloo")
    several = {heat: list({c.make.__name__ + c.name: c for c in some}.values()) for heat, some in HEATS.items()}

    def fails(setting):
        raise ValueError("no\nway")

    def other(setting):
        return alone(dataclasses.replace(setting, options={"lr": 0.5}))

    several["wrappers"] += [Candidate("fails", OURS, fails), Candidate("other", OURS, other)]
    HEATS.update(several)
    config = dataclasses.replace(SIZES["tiny"], width=32, heads=2, kv_heads=2, hidden=64)
    setting = Setting(config, 2, 16, torch.float32, torch.device("cpu"))
    records = measure(setting, "tiny", list(HEATS), rounds=2, steps=2, say=lambda text: None)
    records += measure(setting, "tiny", ["shards"], 1, 1, lambda text: None, profiled=True, only=["FSDP2"])
    return records, as_text(table(frame(records)))
