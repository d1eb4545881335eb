"""Time collectives on real ranks: new buffers in every run, all candidates in turn, the slowest rank's median."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.cost_model import BUS_FACTOR
from labs_helpers.collectives.race.arena import Arena
from labs_helpers.collectives.race.ping_pong import in_microseconds
from labs_helpers.measure.race import in_turns, slowest, timings

ITEM = 8  # bytes of a float64
SIZES = tuple(2**i for i in range(3, 27))  # 8 B to 64 MB
VALIDATED = ", validate=True"  # suffix of a name: called with validate=True, the default
DOCUMENTED = "documented call"
FEW_RUNS_S = 0.03  # a call that takes longer is timed once per round


def race(
    comm, function: str, algorithms: Sequence[str], sizes=SIZES, seconds: float = 0.06, rounds: int = 3
) -> list[dict]:
    """Return one record per size and algorithm on rank 0, [] elsewhere; every rank of comm makes the same call.

    function: 'allreduce', 'reduce_scatter', 'allgather', 'broadcast' or 'alltoall', of float64, with SUM. algorithms:
    of `ALGORITHMS[function]`, called with validate=False, or with `VALIDATED` appended; 'native' is MPI's own, called
    directly. sizes: bytes of the buffer of all-reduce and broadcast, of the send buffer of reduce-scatter and
    all-to-all, of the receive buffer of all-gather. Sizes that must be divisible by the ranks are rounded down, and
    size 0 is left out. A record's `validate` says how it was called: True or False, None for native. seconds: roughly
    how long a candidate runs at one size, over all rounds, after a warm-up; a round is one run of every candidate. A
    result that differs from native's raises ValueError before anything is timed.
    """
    unit = ITEM * (comm.size if function in ("allgather", "alltoall") else 1)
    sizes = sorted({size // unit * unit for size in sizes} - {0})
    if not sizes:
        return []
    sends, receives = Arena(max(sizes), offset=comm.rank), Arena(max(sizes))
    nodes = count_nodes(comm)
    records = []
    for size in sizes:
        send_count, receive_count = counts(function, size // ITEM, comm.size, comm.rank)

        def take(send_count=send_count, receive_count=receive_count):
            return sends.take(send_count), receives.take(receive_count)

        calls = {name: contender(comm, function, name, size // ITEM) for name in algorithms}
        native = contender(comm, function, "native", size // ITEM)
        runs = {}
        for name, call in calls.items():
            if name != "native":
                _check(comm, function, name, call, native, *take())
            runs[name] = _runs(comm, call, take, seconds / rounds, math.ceil(5 / rounds))
        clocks = {name: partial(_several, comm, calls[name], take, runs[name]) for name in algorithms}
        for name, taken in in_turns(clocks, rounds).items():
            by_rank = comm.gather(timings([seconds for turn in taken for seconds in turn]))
            if comm.rank == 0:
                timing = slowest(by_rank)["step"]
                algbw = size / timing.median_ms / 1e6
                records.append(
                    {
                        "kind": "race",
                        "function": function,
                        "algorithm": name,
                        "validate": None if name == "native" else name.endswith(VALIDATED),
                        "ranks": comm.size,
                        "nodes": nodes,
                        "bytes": size,
                        "dtype": "float64",
                        **in_microseconds(timing),
                        "rounds": rounds,
                        "algbw_GBps": algbw,
                        "busbw_GBps": algbw * BUS_FACTOR[function](comm.size),
                    }
                )
    return records


def counts(function: str, n: int, ranks: int, rank: int) -> tuple[int, int]:
    """Return the elements of the send and the receive buffer for a collective of n elements; broadcast has one
    buffer."""
    start, stop = chunk_bounds(n, ranks)[rank]
    return {
        "allreduce": (n, n),
        "reduce_scatter": (n, stop - start),
        "allgather": (n // ranks, n),
        "broadcast": (n, 0),
        "alltoall": (n, n),
    }[function]


def contender(comm, function: str, algorithm: str, n: int) -> Callable:
    """Return a function of (send, receive) for n elements; ValueError for an algorithm that the collective does not
    have."""
    if algorithm == "native":
        if function == "reduce_scatter":
            shares = [stop - start for start, stop in chunk_bounds(n, comm.size)]
            return lambda send, receive: comm.Reduce_scatter(send, receive, shares)
        if function == "broadcast":
            return lambda send, _: comm.Bcast(send)
        return {"allreduce": comm.Allreduce, "allgather": comm.Allgather, "alltoall": comm.Alltoall}[function]
    from labs_helpers.collectives import interface

    how = {"algorithm": algorithm.removesuffix(VALIDATED), "validate": algorithm.endswith(VALIDATED)}
    collective = getattr(interface, function)
    if function == "broadcast":
        return lambda send, _: collective(comm, send, **how)
    return lambda send, receive: collective(comm, send, receive, **how)


def race_documented(comm, sizes=SIZES, seconds: float = 0.06, rounds: int = 15) -> list[dict]:
    """Time the all-reduce with its defaults, beside the version that the races time, and native: records of kind
    `DOCUMENTED`."""
    algorithms = "auto", "auto" + VALIDATED, "native"
    return [record | {"kind": DOCUMENTED} for record in race(comm, "allreduce", algorithms, sizes, seconds, rounds)]


def count_nodes(comm) -> int:
    """Return the number of machines with shared memory that the ranks are on."""
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    nodes = comm.allreduce(int(here.rank == 0))
    here.Free()
    return nodes


def _check(comm, function, name, call, native, send, receive) -> None:
    expected, got = (_result(comm, function, run, send, receive) for run in (native, call))
    wrong = [rank for rank, right in enumerate(comm.allgather(np.array_equal(got, expected))) if not right]
    if wrong:
        raise ValueError(
            f"{function} {name} at {max(send.nbytes, receive.nbytes)} bytes on {comm.size} ranks: "
            f"the result differs from native's on ranks {wrong}"
        )


def _result(comm, function, call, send, receive) -> np.ndarray:
    send, receive = send + comm.rank, np.full_like(receive, -1)  # a different input on every rank
    call(send, receive)
    return send if function == "broadcast" else receive


def _runs(comm, call, take, seconds: float, least: int) -> int:
    """Return the number of runs per round, the same on every rank, from two warm-up runs; for a slow call, 1."""
    for _ in range(2):
        one = max(comm.allgather(_timed(comm, call, *take())))
        if one > FEW_RUNS_S:
            return 1
    return int(min(200, max(least, seconds / one)))


def _several(comm, call, take, runs: int) -> list[float]:
    return [_timed(comm, call, *take()) for _ in range(runs)]


def _timed(comm, call, send, receive) -> float:
    comm.Barrier()
    start = perf_counter()
    call(send, receive)
    return perf_counter() - start
