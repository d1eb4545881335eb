"""What the kernels of lab 04 are tried on: q, k and v near a score, between NaN, or each with strides of its own."""

import torch

from labs_helpers.course.verdict import numbers, surrounded

SCALE = 0.3


def operands(Lq: int, Lk: int, D: int, B: int = 1, H: int = 2) -> list[torch.Tensor]:
    """q, k, v, normally distributed."""
    return [numbers(B, H, L, D, seed=seed) for seed, L in enumerate((Lq, Lk, Lk))]


def between_nan(Lq: int, Lk: int, D: int = 64) -> list[torch.Tensor]:
    return [surrounded(t, margin=4) for t in operands(Lq, Lk, D)]


def apart(Lq: int, Lk: int, D: int = 64) -> list[torch.Tensor]:
    """q, k, v in float16, each stored in a way of its own: Q as (B, L, H, D), K as (B, H, L, D), V as (B, L, 2, H, D),
    as a projection of two leaves it. No stride of one does for another."""
    q, k, v = (t.half() for t in operands(Lq, Lk, D, B=2))
    both = torch.stack((torch.full_like(v, torch.nan), v)).permute(1, 3, 0, 2, 4)
    q, k, both = (_with_room(t.contiguous()) for t in (q.transpose(1, 2), k, both))
    return [q.transpose(1, 2), k, both[:, :, 1].transpose(1, 2)]


def _with_room(t):
    """The same in the middle of three times its memory, so that a stray load is not counted as another's."""
    room = t.new_full((3, *t.shape), torch.nan)
    room[1] = t
    return room[1]


def near(score: float, Lq: int, Lk: int, D: int) -> list[torch.Tensor]:
    """q, k, v whose scaled scores are all around `score`."""
    q, k, v = operands(Lq, Lk, D)
    q[..., 0], k[..., 0] = 16.0, score / SCALE / 16.0
    return [q, k, v]
