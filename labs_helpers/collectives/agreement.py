"""Detect on every rank that the ranks make different calls, instead of hanging.

Each rank computes a number from its call, the same in every process for the same call. Ranks of one node compare the
numbers on their board (board.py). An algorithm that uses the board does this in its own first barrier (`Differs` if the
numbers disagree); any other needs one more barrier. Between nodes, one native all-reduce of two numbers compares them:
the largest and the smallest. If they disagree, and always on practice ranks, every rank's description of its call
(RECORD_BYTES) goes to every other rank, in ⌈log₂N⌉ messages per rank.
"""

import functools
import json
from collections import Counter
from hashlib import blake2b

import numpy as np

from labs_helpers.collectives.algorithms.messages import exchange
from labs_helpers.collectives.nodes import is_mpi
from labs_helpers.collectives.shared_memory.board import board_of
from labs_helpers.launch.flavour import find_mpi

RECORD_BYTES = 256
_REFUSED = "refused"


def agree(comm, call: dict) -> None:
    """Raise ValueError on every rank if the `call`s differ, naming the argument and the odd ranks.

    call: argument → value (numbers and short strings), the same keys in the same order on each rank; or the result of
    `refusal` on a rank that refused its own arguments.
    """
    number = 0 if _REFUSED in call else number_of(call)
    if is_mpi(comm):
        board = board_of(comm)
        if _are_alike(comm, number) if board is None else board.agree(number):
            return
    tell(comm, call)


def tell(comm, call: dict) -> None:
    """Raise the ValueError of `agree`, when all ranks know that the `call`s are not all equal."""
    calls = [json.loads(record.tobytes().rstrip(b"\0")) for record in _everybody(comm, _record(call))]
    refused = [rank for rank, other in enumerate(calls) if _REFUSED in other]
    if refused:
        reasons = "; ".join(f"{_ranks([rank])}: {calls[rank][_REFUSED]}" for rank in refused[:3])
        raise ValueError(f"{_ranks(refused)} refused the arguments. {reasons}")
    for argument in call:
        values = [other.get(argument) for other in calls]
        usual = Counter(values).most_common(1)[0][0]  # in a tie, the lowest rank's
        odd = {value: [r for r in range(len(values)) if values[r] == value] for value in values if value != usual}
        if odd:
            differs = "; ".join(_have(ranks, value) for value, ranks in odd.items())
            others = [r for r in range(len(values)) if values[r] == usual]
            raise ValueError(f"{argument} differs between ranks: {differs}; but {_have(others, usual)}")


def _are_alike(comm, number: int) -> bool:
    """Return True if all ranks have this number; False on all of them if one has another number, or 0."""
    MPI = find_mpi()
    both = np.array([number, -number])
    comm.Allreduce(MPI.IN_PLACE, both, MPI.MAX)
    return bool(number and both[0] == -both[1])


def number_of(call: dict) -> int:
    """Return the number of a valid call: from 1 to 2⁵⁶, the same in every process."""
    return _number(tuple(call.values()))


@functools.lru_cache(maxsize=256)
def _number(values: tuple) -> int:
    return 1 + int.from_bytes(blake2b(repr(values).encode(), digest_size=7).digest())


def refusal(error: Exception) -> dict:
    return {_REFUSED: str(error)[:80]}


def _record(call: dict) -> np.ndarray:
    text = json.dumps(call).encode()
    if len(text) > RECORD_BYTES:  # only a refusal contains free text, which grows outside ASCII
        text = json.dumps({_REFUSED: "its arguments"}).encode()
    return np.frombuffer(text.ljust(RECORD_BYTES, b"\0"), np.uint8)


def _everybody(comm, record) -> np.ndarray:
    """All-gather with Bruck's algorithm (1997): the table doubles in every step. Shape (ranks, RECORD_BYTES)."""
    size, rank = comm.Get_size(), comm.Get_rank()
    table = np.empty((size, RECORD_BYTES), np.uint8)  # row i: the record of rank + i
    table[0] = record
    have = 1
    while have < size:
        more = min(have, size - have)
        exchange(comm, table[:more], (rank - have) % size, table[have : have + more], (rank + have) % size)
        have += more
    return np.roll(table, rank, axis=0)


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))


def _have(ranks: list[int], value) -> str:
    return f"{_ranks(ranks)} {'has' if len(ranks) == 1 else 'have'} {value}"
