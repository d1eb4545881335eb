"""The function that test_jobs.py runs on two ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def examine(comm, names):
    """Return (job, state) → findings of jobs, sick and cured, without those that compare times."""
    import torch.distributed as dist

    from labs_helpers.clinic.examine import examine
    from labs_helpers.communication.torch_distributed import join
    from labs_helpers.clinic.records import known

    group, found = join(comm), {}
    for name in names:
        job = known()[name]
        for state in ("sick", "cured"):
            found[name, state] = examine(getattr(job, state), group, seed=7, compare=False)
    dist.destroy_process_group()
    return found
