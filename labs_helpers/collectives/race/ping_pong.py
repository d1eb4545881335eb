"""The measurements behind a cost model: messages back and forth for α and β, local sums and copies for γ and copy."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from labs_helpers.collectives.race.arena import Arena
from labs_helpers.measure.race import slowest, timings
from labs_helpers.measure.timing import Timing

SIZES = tuple(8 * 4**i for i in range(11))  # 8 B to 8 MB


def ping_pong(comm, sizes=SIZES, together: bool = False, seconds: float = 0.05) -> list[dict]:
    """Return one record per size on rank 0 ([] elsewhere): half of a round trip between ranks 2i and 2i + 1, in µs.

    together: all pairs play at the same time, as in a collective, instead of ranks 0 and 1 alone; the slowest pair
    counts. seconds: roughly how long each size is played. Every rank of comm has to call this. ValueError for a single
    rank.
    """
    if comm.size < 2:
        raise ValueError("ping-pong needs 2 ranks; comm has 1")
    partner = comm.rank ^ 1
    plays = partner < comm.size and (together or comm.rank < 2)
    arena = Arena(max(sizes))
    records = []
    for size in sizes:
        count = max(1, size // 8)
        trips = [_round_trip(comm, partner, arena, count) for _ in range(3)] if plays else []
        runs = comm.bcast(_runs(min(trips), seconds) if trips else None, root=0)
        comm.Barrier()
        trips = [_round_trip(comm, partner, arena, count) for _ in range(runs)] if plays else []
        record = _slowest(comm, [trip / 2 for trip in trips])
        if comm.rank == 0:
            records.append({"kind": "ping_pong", "ranks": comm.size, "together": together, "bytes": 8 * count} | record)
    return records


def local_work(comm, sizes=SIZES, seconds: float = 0.02) -> list[dict]:
    """Return one record per size and operation ('reduce', 'copy') on rank 0: all ranks work at the same time, and the
    slowest one's time counts, in µs.

    In a collective they also work at the same time and share the memory's bandwidth.
    """
    operations = {"reduce": lambda a, b: np.add(a, b, out=b), "copy": lambda a, b: np.copyto(b, a)}
    source, target = Arena(max(sizes)), Arena(max(sizes))
    records = []
    for size in sizes:
        count = max(1, size // 8)
        for name, operation in operations.items():
            times = [_timed(operation, source.take(count), target.take(count)) for _ in range(3)]
            runs = comm.bcast(_runs(min(times), seconds), root=0)
            comm.Barrier()
            times = [_timed(operation, source.take(count), target.take(count)) for _ in range(runs)]
            record = _slowest(comm, times)
            if comm.rank == 0:
                records.append({"kind": "local", "ranks": comm.size, "operation": name, "bytes": 8 * count} | record)
    return records


def _round_trip(comm, partner: int, arena: Arena, count: int) -> float:
    sent, received = arena.take(count), arena.take(count)
    start = perf_counter()
    if comm.rank < partner:
        comm.Send(sent, partner)
        comm.Recv(received, partner)
    else:
        comm.Recv(received, partner)
        comm.Send(sent, partner)
    return perf_counter() - start


def _timed(operation, a: np.ndarray, b: np.ndarray) -> float:
    start = perf_counter()
    operation(a, b)
    return perf_counter() - start


def _runs(one: float, seconds: float) -> int:
    return int(min(500, max(5, seconds / max(one, 1e-7))))


def _slowest(comm, seconds: list[float]) -> dict:
    """Return median and spread in µs of the rank with the largest median, on every rank; a rank without times does
    not count."""
    by_rank = comm.allgather(timings(seconds) if seconds else None)
    return in_microseconds(slowest(filter(None, by_rank))["step"])


def in_microseconds(timing: Timing) -> dict:
    """Return a record's columns for a Timing: median and spread in µs, and the number of runs."""
    return {
        "median_us": 1e3 * timing.median_ms,
        "p20_us": 1e3 * timing.p20_ms,
        "p80_us": 1e3 * timing.p80_ms,
        "runs": timing.runs,
    }
