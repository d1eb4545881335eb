"""Operands for the checks of lab 04: given scores, tensors surrounded by NaN, different strides."""

import torch

from labs_helpers.course.verdict import numbers, surrounded

SCALE = 0.3


def operands(Lq: int, Lk: int, D: int, B: int = 1, H: int = 2) -> list[torch.Tensor]:
    """Return normally distributed q, k and v."""
    return [numbers(B, H, L, D, seed=seed) for seed, L in enumerate((Lq, Lk, Lk))]


def between_nan(Lq: int, Lk: int, D: int = 64, H: int = 2) -> list[torch.Tensor]:
    return [surrounded(t, margin=4) for t in operands(Lq, Lk, D, H=H)]


def apart(Lq: int, Lk: int, D: int = 64) -> list[torch.Tensor]:
    """Return q, k and v in float16 with different memory layouts, so that no stride of one is right for another.

    Q is stored as (B, L, H, D), K as (B, H, L, D), and V as (B, L, 2, H, D), the result of a joint projection.
    """
    q, k, v = (t.half() for t in operands(Lq, Lk, D, B=2))
    both = torch.stack((torch.full_like(v, torch.nan), v)).permute(1, 3, 0, 2, 4)
    q, k, both = (_with_room(t.contiguous()) for t in (q.transpose(1, 2), k, both))
    return [q.transpose(1, 2), k, both[:, :, 1].transpose(1, 2)]


def _with_room(t):
    """Copy t into the middle of a buffer three times its size, so that a stray load hits no other tensor."""
    room = t.new_full((3, *t.shape), torch.nan)
    room[1] = t
    return room[1]


def near(score: float | torch.Tensor, Lq: int, Lk: int, D: int) -> list[torch.Tensor]:
    """Return q, k and v whose scaled scores are all near `score`, one number or one per key."""
    q, k, v = operands(Lq, Lk, D)
    q[..., 0], k[..., 0] = 16.0, score / SCALE / 16.0
    return [q, k, v]


def in_steps(Lq: int, Lk: int, D: int) -> list[torch.Tensor]:
    """Return q, k and v whose scaled scores rise and fall by 300, within tiles of 16 keys and between them.

    A maximum that is missing, or comes from unseen keys or from another query, then overflows or underflows.
    """
    levels = torch.tensor([0.0, -300.0, -300.0, 300.0, 0.0, 600.0, 300.0, 900.0, -300.0, 1300.0])
    steps = levels.repeat_interleave(8).repeat(Lk // 80 + 1)[:Lk]
    q, k, v = near(steps.to(numbers(1).device), Lq, Lk, D)
    q[:, :, 1::3, 0] /= 4  # a third of the queries have smaller scores
    return [q, k, v]


def faint(Lk: int, BLOCK_N: int, D: int = 16) -> list[torch.Tensor]:
    """Return float16 q, k and v in which each key after the first tile has e⁻⁸ of the weight of a key in it.

    A tile then adds less to l and O than half of float16's spacing there, but many tiles add up. Lq is 16.
    """
    levels = torch.where(torch.arange(Lk) < BLOCK_N, 0.0, -8.0)
    q, k, v = near(levels.to(numbers(1).device), 16, Lk, D)
    return [q.half(), (k * (torch.arange(D, device=k.device) == 0)).half(), (1 + v / 16).half()]
