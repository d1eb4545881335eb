"""The functions that the tests run on ranks. Pickled by value."""

import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def examine(comm, names):
    """Return (job, state) → findings of jobs, sick and cured, without those that compare times."""
    import torch.distributed as dist

    from labs_helpers.clinic.examine import examine
    from labs_helpers.clinic.records import known
    from labs_helpers.communication.torch_distributed import join

    group, found = join(comm), {}
    for name in names:
        job = known()[name]
        for state in ("sick", "cured"):
            found[name, state] = examine(getattr(job, state), group, seed=7, compare=False)
    dist.destroy_process_group()
    return found


def timed(comm, name):
    """Return (slower, waits) of a job's steps, sick and cured in turns, by medians, which a busy machine moves little.

    slower: how many times as long a sick step takes per sequence. waits: state → the share of a step that the rank
    which waits most spends in its all-reduce.
    """
    import io
    from contextlib import redirect_stdout
    from functools import partial
    from statistics import median

    import torch.distributed as dist

    from labs_helpers.clinic.records import known
    from labs_helpers.communication.torch_distributed import join
    from labs_helpers.measure.race import TorchRanks, clock, in_turns

    def started(program):
        one = program(group, 7)
        average, one.waited = one.average_gradients, []
        one.average_gradients = lambda: one.waited.append(clock(average, one.device)[1])
        return one

    group, ranks, job = join(comm), TorchRanks(), known()[name]
    running = {state: started(getattr(job, state)) for state in ("sick", "cured")}
    with redirect_stdout(io.StringIO()):
        clocks = {state: partial(clock, one.step, one.device, ranks) for state, one in running.items()}
        samples = in_turns(clocks, rounds=8)  # eight compilations are the most that torch.compile tries
    steps = {state: [seconds for _, seconds in of_state] for state, of_state in samples.items()}
    ratio = median(sick / cured for sick, cured in zip(steps["sick"], steps["cured"], strict=True))
    waits = {state: median(map(float.__truediv__, one.waited, steps[state])) for state, one in running.items()}
    by_rank = ranks.gather(waits)
    dist.destroy_process_group()
    return ratio * job.cured.batch / job.sick.batch, {state: max(one[state] for one in by_rank) for state in running}


def losses(comm, program):
    """Return the losses that a rank logs in eight steps."""
    import torch.distributed as dist

    from labs_helpers.communication.torch_distributed import join

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
