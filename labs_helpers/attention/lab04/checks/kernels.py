"""What proves an exercise of lab 04 right: the kernels here, the others by name."""

from __future__ import annotations

from functools import partial

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.mask_causes import mask_slips
from labs_helpers.attention.lab04.checks.tiles import attend
from labs_helpers.attention.tile_map import tile_states, visible
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.kernel_trial import check_tensor_cores
from labs_helpers.course.verdict.surroundings import surrounded

MARGIN = 4  # of NaN on each side of each dimension


def operands(B: int, H: int, Lq: int, Lk: int, D: int) -> list[torch.Tensor]:
    """q, k, v, normally distributed."""
    return [numbers(B, H, L, D, seed=seed) for seed, L in enumerate((Lq, Lk, Lk))]


def apart(q, k, v) -> list[torch.Tensor]:
    """The same values, each stored in a way of its own: Q as (B, L, H, D), K as (B, H, L, D), V as (B, L, 2, H, D),
    as a projection of two leaves it. No stride of one does for another."""
    both = torch.stack((torch.full_like(v, torch.nan), v)).permute(1, 3, 0, 2, 4)
    q, k, both = (_with_room(t.contiguous()) for t in (q.transpose(1, 2), k, both))
    return [q.transpose(1, 2), k, both[:, :, 1].transpose(1, 2)]


def _with_room(t):
    """The same in the middle of three times its memory, so that a stray load is not counted as another's."""
    room = t.new_full((3, *t.shape), torch.nan)
    room[1] = t
    return room[1]


def shifted(q, k, v, score: float, scale: float):
    """q, k, v with every scaled score moved by about `score`."""
    q, k = q.clone(), k.clone()
    q[..., 0], k[..., 0] = 16.0, score / scale / 16.0
    return q, k, v


@exercise("04/4", "forward", points=20, minutes=25, reference=exercises.tile_attention, kernel=True)
def tile_attention(student):
    q, k, v = operands(1, 2, 64, 96, 32)
    half = apart(*(t.half() for t in operands(2, 2, 32, 64, 32)))
    for case, tensors, scale, BLOCK_M, BLOCK_N in (
        ("64 queries, 192 keys, NaN around", [surrounded(t, MARGIN) for t in operands(1, 2, 64, 192, 32)], 0.3, 16, 64),
        ("all scores near +200", shifted(q, k, v, 200.0, 0.3), 0.3, 32, 32),
        ("all scores near −200", shifted(q, k, v, -200.0, 0.3), 0.3, 32, 32),
        ("float16, Q, K and V with strides of their own", half, 0.3, 16, 32),
    ):
        seen = visible(tensors[0].shape[2], tensors[1].shape[2], causal=False)
        run = attend(case, student, seen, *tensors, scale=scale, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
        yield case
    yield "Q read once, K and V once a row of tiles, only O and the log-sum-exp written: nothing of size L²"
    yield check_tensor_cores("compiled", run.launches[-1])


@exercise("04/5", "causal", points=20, minutes=20, reference=exercises.causal_attention, kernel=True)
def causal_attention(student):
    yield from _masked(
        student,
        (
            ("70 queries and keys, NaN around", 70, 70, 32, 16, ()),
            ("33 queries, 80 keys", 33, 80, 32, 16, ()),
            ("80 queries, 33 keys: 47 queries see no key", 80, 33, 16, 32, ()),
            ("1 query, 50 keys", 1, 50, 16, 32, ()),
            ("64 queries, 78 keys", 64, 78, 32, 16, ()),
            ("float16, 60 queries, 70 keys, strides of their own", 60, 70, 16, 16, ()),
        ),
    )


@exercise("04/6", "transfer: a sliding window", points=30, minutes=15, kernel=True)
def window_attention(student):
    yield from _masked(
        student,
        (
            ("window of 20, 70 queries and keys, NaN around", 70, 70, 32, 16, (20,)),
            ("window of 1: each query sees one key", 40, 40, 32, 16, (1,)),
            ("window of 16, 33 queries, 80 keys", 33, 80, 16, 32, (16,)),
            ("window of 100, longer than the sequence", 70, 70, 16, 32, (100,)),
            ("window of 9, 80 queries, 33 keys: 47 queries see no key", 80, 33, 16, 16, (9,)),
            ("window of 61, 64 queries, 78 keys", 64, 78, 32, 16, (61,)),
            ("float16, window of 20, 60 queries, 70 keys, strides of their own", 60, 70, 16, 16, (20,)),
        ),
    )


def _masked(student, cases):
    """The trial of a kernel with a mask. A case: name, Lq, Lk, BLOCK_M, BLOCK_N, (window,) or ()."""
    tiles = visited = 0
    for case, Lq, Lk, BLOCK_M, BLOCK_N, window in cases:
        if "float16" in case:
            q, k, v = apart(*(t.half() for t in operands(2, 2, Lq, Lk, 64)))
        else:
            q, k, v = (surrounded(t, MARGIN) for t in operands(1, 2, Lq, Lk, 64))
        seen = visible(Lq, Lk, True, *window)
        run = attend(
            case,
            student,
            seen,
            q,
            k,
            v,
            *window,
            scale=0.3,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            own_slips=partial(mask_slips, window=window, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N),
        )
        states = tile_states(seen, BLOCK_M, BLOCK_N)
        tiles, visited = tiles + states.size, visited + int((states > 0).sum())
        yield case
    yield f"visited are {visited} of {tiles} tiles, those that a query sees, each once"
    yield check_tensor_cores("compiled", run.launches[-1])
