"""What the notebook runs on the ranks of its cluster: jobs, with and without parts, and their records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from time import perf_counter
from typing import Any

from labs_helpers.clinic.training import Training

Program = type[Training]


@cache
def group():
    """Return the group of all ranks; every rank calls this."""
    from labs_helpers.communication.torch_distributed import join

    return join()


def recorded_spans(program: Program, seed: int, steps: int) -> tuple[dict[str, list[Any]], float]:
    """Return (part → [(start, stop), …] in ms, as they were recorded, length in ms) of `steps` steps on this rank."""
    from labs_helpers.measure.step_parts import passes_marked, spans_by_part
    from labs_helpers.measure.trace import record

    job = program(group(), seed)
    with passes_marked():
        events = record(partial(job.run, steps)).events
    begin = min(event["ts"] for event in events)
    end = max(event["ts"] + event["dur"] for event in events)
    spans = {
        part: [((start - begin) / 1e3, (stop - begin) / 1e3) for start, stop in of]
        for part, of in spans_by_part(events).items()
    }
    return spans, (end - begin) / 1e3


def step_times(program: Program, seed: int, steps: int, communication: bool, loading: bool, batch: int) -> list[float]:
    """Return the ms of this rank's steps, after one that is not measured."""
    from labs_helpers.communication.silent import SilentCommunication

    ranks = group()
    larger = type("Larger", (program,), {"batch": batch * program.batch})
    job = larger(ranks if communication else SilentCommunication(ranks.rank, ranks.size), seed)
    if not loading:
        same = next(job.batches)
        job.batches = iter(lambda: same, None)
    times = []
    for _ in range(steps + 1):
        ranks.all_reduce(_zero(job))  # all ranks begin together
        start = perf_counter()
        job.step()
        _wait(job)
        times.append(1e3 * (perf_counter() - start))
    return times[1:]


def waits(program: Program, seed: int, steps: int) -> tuple[list[float], list[float]]:
    """Return when this rank began to wait in each step's all-reduce, and when it left it, in ms of its clock."""
    begun, finished = [], []

    def average(self: Training) -> None:
        _wait(self)
        begun.append(1e3 * perf_counter())
        program.average_gradients(self)
        _wait(self)
        finished.append(1e3 * perf_counter())

    type("Timed", (program,), {"average_gradients": average})(group(), seed).run(steps)
    return begun, finished


def trained(program: Program, seed: int, steps: int) -> Training:
    """Return the job after some steps."""
    job = program(group(), seed)
    job.run(steps)
    return job


def with_methods(program: Program, methods: Mapping[str, Any]) -> Program:
    """Return the program with some of its methods replaced."""
    return type(f"Changed{program.__name__}", (program,), dict(methods))


def before_and_after(program: Program, changed: Program, seed: int, steps: int) -> list[dict[str, Any]]:
    """Return, for both programs in turns: the fastest step in ms, the collectives per step, and the losses."""
    jobs = [one(group(), seed) for one in (program, changed)]
    best = [float("inf")] * 2
    group().reset()
    calls = [0, 0]
    for _ in range(steps):
        for n, job in enumerate(jobs):
            group().all_reduce(_zero(job))
            before, start = group().calls.total(), perf_counter()
            job.step()
            _wait(job)
            best[n] = min(best[n], 1e3 * (perf_counter() - start))
            calls[n] += group().calls.total() - before
    return [{"ms": best[n], "collectives": calls[n] / steps, "losses": job.logged} for n, job in enumerate(jobs)]


def _zero(job: Training) -> Any:
    import torch

    return torch.zeros(1, device=job.device)


def _wait(job: Training) -> None:
    if job.on_gpu:
        import torch

        torch.cuda.synchronize()
