"""The functions that the tests run on ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def examine(comm, names):
    """Return (job, state) → findings of jobs, sick and cured, without those that compare times."""
    import torch.distributed as dist

    from labs_helpers.clinic.examine import examine
    from labs_helpers.clinic.ranks import join
    from labs_helpers.clinic.records import known

    group, found = join(comm), {}
    for name in names:
        job = known()[name]
        for state in ("sick", "cured"):
            found[name, state] = examine(getattr(job, state), group, seed=7, compare=False)
    dist.destroy_process_group()
    return found


def losses(comm, program):
    """Return the losses that a rank logs in eight steps."""
    import torch.distributed as dist

    from labs_helpers.clinic.ranks import join

    job = program(join(comm), seed=7)
    job.run(8)
    dist.destroy_process_group()
    return job.logged


def fastest_steps(programs):
    """Return the seconds of each program's fastest step of five, taken in turns; torch.distributed is initialized."""
    from time import perf_counter

    import torch.distributed as dist

    from labs_helpers.communication.torch_distributed import TorchCommunication

    started = [program(TorchCommunication(dist.group.WORLD), seed=7) for program in programs]
    times = [[] for _ in programs]
    for _ in range(5):
        for taken, job in zip(times, started, strict=True):
            dist.barrier()
            start = perf_counter()
            job.step()
            taken.append(perf_counter() - start)
    return [min(taken) for taken in times]
