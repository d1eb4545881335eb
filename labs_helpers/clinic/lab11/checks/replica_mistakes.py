"""Compare replicas with one mistake each, as answers to exercise 6 of lab 11 do."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.clinic.lab11.checks.replicas import Parameters

Replicas = Sequence[Parameters]
Keys = Sequence[Any]  # of one parameter, one per rank


def crc(x: Tensor) -> int:
    return zlib.crc32(x.contiguous().reshape(-1).view(torch.uint8).numpy())


def not_equal(keys: Keys, rank: int) -> bool:
    """Tell whether a rank reports a parameter. NaN is not equal to itself."""
    return any(key != keys[0] for key in keys)


def differing(
    replicas: Replicas, key: Callable[[Tensor], Any] = crc, reports: Callable[[Keys, int], bool] = not_equal
) -> list[list[str]]:
    """Return the right list of each rank; other functions than the defaults make mistakes."""
    keys = {name: [key(replica[name]) for replica in replicas] for name in replicas[0]}
    return [sorted(name for name in keys if reports(keys[name], rank)) for rank in range(len(replicas))]


def _taken_apart(replicas: Replicas) -> list[list[str]]:
    """Take the gathered checksums apart as if each rank's did not lie side by side."""
    flat, ranks = [crc(x) for replica in replicas for x in replica.values()], len(replicas)
    found = [name for i, name in enumerate(replicas[0]) if len(set(flat[i * ranks : (i + 1) * ranks])) > 1]
    return [sorted(found)] * ranks


def _everything(replicas: Replicas) -> list[list[str]]:
    return [sorted(replicas[0]) if len(replicas) > 1 else []] * len(replicas)


def _nothing(replicas: Replicas) -> list[list[str]]:
    return [[] for _ in replicas]


def _by_rank(replicas: Replicas) -> list[list[str]]:
    """Report the name in the place of each rank that differs from rank 0."""
    keys = [list(map(crc, replica.values())) for replica in replicas]
    return [sorted(name for name, of in zip(replicas[0], keys, strict=False) if of != keys[0])] * len(replicas)


def _any(replicas: Replicas) -> list[list[str]]:
    return [sorted(replicas[0]) if differing(replicas)[0] else []] * len(replicas)


def _one_row(replicas: Replicas) -> list[list[str]]:
    first, *rest = map(crc, replicas[0].values())
    names = list(replicas[0])[1:]
    return [sorted(name for name, key in zip(names, rest, strict=True) if key != first)] * len(replicas)


def _on_rank_0(replicas: Replicas) -> list[list[str]]:
    return [differing(replicas)[0], *([] for _ in replicas[1:])]


def _mispaired(replicas: Replicas) -> list[list[str]]:
    pairs = dict(zip(replicas[0], sorted(replicas[0]), strict=True))
    return [sorted(pairs[name] for name in of_rank) for of_rank in differing(replicas)]


def _near(keys: Keys, rank: int) -> bool:
    return any(not math.isclose(key, keys[0], rel_tol=1e-5) for key in keys)


def _blind_to_nan(key: Callable[[Tensor], float]) -> Callable[[Tensor], Any]:
    """Return a key that is the same for all NaN."""
    return lambda x: None if math.isnan(number := key(x)) else number


SUM = "a sum, a mean or a norm of the values is no checksum: it is the same if two values change places"
NAN = ", and NaN != NaN; use checksum, which depends on every bit"
BITS = "; use checksum, which depends on every bit"
NUMBERS: tuple[Callable[[Tensor], float], ...] = (
    lambda x: float(x.sum()),
    lambda x: float(x.float().sum()),
    lambda x: float(x.double().sum()),
    lambda x: float(x.float().mean()),
    lambda x: float(x.double().mean()),
    lambda x: float(x.float().norm()),
    lambda x: float(x.double().norm()),
    lambda x: float(x.double().abs().sum()),
    lambda x: round(float(x.double().sum()), 6),
)
FEW_BITS = "the checksums are in a dtype that does not keep their 32 bits, as float32 keeps 24; send them as int64"
CLOSE = "close checksums count as equal; compare all 32 bits, in int64 and without a tolerance"
KEYS: tuple[tuple[str, Callable[[Tensor], Any]], ...] = (
    *((SUM + NAN, key) for key in NUMBERS),
    *((SUM + BITS, _blind_to_nan(key)) for key in NUMBERS),
    (SUM + BITS, lambda x: int(x.reshape(-1).view(torch.uint8).long().sum())),
    (FEW_BITS, lambda x: float(np.float32(crc(x)))),
    (CLOSE, lambda x: torch.tensor(crc(x)).bfloat16().item()),
    (FEW_BITS, lambda x: crc(x) & 255),
    ("the tensors are cast to float32 before the checksum, and large integers lose bits", lambda x: crc(x.float())),
    ("values are compared in place of bits: 0.0 == −0.0, and NaN != NaN", lambda x: tuple(x.reshape(-1).tolist())),
)
OTHER = "each rank compares only with {}, so the ranks return different lists; compare all ranks' checksums"
REPORTS: tuple[tuple[str, Callable[[Keys, int], bool]], ...] = (
    (OTHER.format("rank 0"), lambda keys, rank: keys[rank] != keys[0]),
    (OTHER.format("the next rank"), lambda keys, rank: keys[rank] != keys[(rank + 1) % len(keys)]),
    (OTHER.format("the rank before it"), lambda keys, rank: keys[rank] != keys[rank - 1]),
    (OTHER.format("the last rank"), lambda keys, rank: keys[rank] != keys[-1]),
    (
        "each rank compares its checksum with the largest of all, so those ranks miss it; compare it "
        "with the smallest too",
        lambda keys, rank: keys[rank] != max(keys),
    ),
    (
        "each rank compares its checksum with the smallest of all, so those ranks miss it; compare it "
        "with the largest too",
        lambda keys, rank: keys[rank] != min(keys),
    ),
    (
        "each rank compares its checksum with the most frequent one, so those ranks miss it; compare it with all",
        lambda keys, rank: keys[rank] != max(sorted(keys), key=list(keys).count),
    ),
    ("only the first and the last rank are compared; any rank may differ", lambda keys, rank: keys[0] != keys[-1]),
    ("only ranks 0 and 1 are compared; any rank may differ", lambda keys, rank: keys[0] != keys[min(1, len(keys) - 1)]),
    (
        "a parameter is there only if all ranks have different bits; one rank that differs is enough",
        lambda keys, rank: 1 < len(keys) == len(set(keys)),
    ),
    ("these are the parameters that are the same on all ranks", lambda keys, rank: len(set(keys)) == 1),
    (CLOSE, _near),
)
MISTAKES = [
    *((sentence, partial(differing, key=key)) for sentence, key in KEYS),
    *((sentence, partial(differing, reports=reports)) for sentence, reports in REPORTS),
    (
        "the gathered tensor is taken apart in the wrong order: it has one row per rank, and a column per parameter",
        _taken_apart,
    ),
    (
        "everything differs: checksums of different parameters are compared, or numbers such as hash(x), or a set "
        "holds tensors, which equal only themselves; tolist() makes numbers of them",
        _everything,
    ),
    (
        "no difference is ever found: all(0) stands where any(0) should, a rank compares its checksums with "
        "themselves, or they are all inf, as in float16",
        _nothing,
    ),
    ("any(1) tells which ranks differ; any(0) tells which parameters do", _by_rank),
    ("one checksum of all parameters together does not tell which of them differs; send one of each", _any),
    ("the gathered tensor has one row: .view(group.size, len(parameters)) makes one of each rank", _one_row),
    ("only rank 0 returns the list; every rank has to", _on_rank_0),
    ("sorted names meet checksums in the order of `parameters`; pair them before you sort", _mispaired),
]
