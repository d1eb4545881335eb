"""Pack and unpack int4 with one mistake each, as answers to exercise 2 of lab 12 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def _pairs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:, 0::2], x[:, 1::2]


def _halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]


def _interleaved(lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    return torch.stack([lower, upper], dim=2).flatten(1)


def made(
    x: torch.Tensor,
    zero: int,
    unpack: bool,
    *,
    parts: Callable = _pairs,
    code: Callable = lambda lower, upper, zero: (lower + zero, upper + zero),
    joined: Callable = lambda lower, upper: lower | upper << 4,
    taken: Callable = lambda x: (x & 15, x >> 4),
    value: Callable = lambda lower, upper, zero: (lower - zero, upper - zero),
    together: Callable = _interleaved,
) -> torch.Tensor:
    """Return the right answer; other settings than the defaults make mistakes."""
    x = x.to(torch.int32)
    if unpack:
        return together(*value(*taken(x), zero)).to(torch.int8)
    return joined(*code(*parts(x), zero)).to(torch.uint8)


def _with(**settings) -> Callable:
    return lambda x, zero, unpack: made(x, zero, unpack, **settings)


def _plus(lower: int, upper: int) -> Callable:
    """Return the codes or values after adding that many zero points to each half."""
    return lambda a, b, zero: (a + lower * zero, b + upper * zero)


def _signed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x & 15, x.to(torch.int8).to(torch.int32) >> 4


def _swap(settings):
    return lambda *given: settings(*given)[::-1]


SWAPPED = "the halves of a byte are swapped: the even column belongs in the lower four bits"
HALVES = "the first half of the row shares bytes with the second half; columns 2j and 2j + 1 belong together"
FORGOTTEN = "the zero point is forgotten: the code is value + zero"
NOT_BACK = "the zero point is not subtracted after unpacking"
MISTAKES = [
    (SWAPPED, _with(parts=_swap(_pairs), taken=_swap(lambda x: (x & 15, x >> 4)))),
    (SWAPPED, _with(parts=_swap(_pairs))),
    (SWAPPED, _with(taken=_swap(lambda x: (x & 15, x >> 4)))),
    (HALVES, _with(parts=_halves, together=lambda a, b: torch.cat([a, b], dim=1))),
    (HALVES, _with(parts=_halves)),
    (HALVES, _with(together=lambda a, b: torch.cat([a, b], dim=1))),
    (FORGOTTEN, _with(code=lambda a, b, zero: (a & 15, b & 15), value=_plus(0, 0))),
    (FORGOTTEN, _with(code=lambda a, b, zero: (a & 15, b & 15))),
    (
        "a negative value in the lower half sets the upper bits too: its sign spills over. Add the zero point first",
        _with(code=_plus(0, 0)),
    ),
    (NOT_BACK, _with(value=_plus(0, 0))),
    ("the zero point is added after unpacking; subtract it", _with(value=_plus(1, 1))),
    ("the zero point is subtracted before packing; add it",
     _with(code=lambda a, b, zero: ((a - zero) & 15, (b - zero) & 15))),
    ("the upper half keeps its zero point; subtract it from both", _with(value=_plus(-1, 0))),
    ("the lower half keeps its zero point; subtract it from both", _with(value=_plus(0, -1))),
    ("only the lower half gets the zero point before packing", _with(code=lambda a, b, zero: (a + zero, b & 15))),
    ("only the upper half gets the zero point before packing", _with(code=lambda a, b, zero: (a & 15, b + zero))),
    ("the zero point is always 8; use the argument", lambda x, zero, unpack: made(x, 8, unpack)),
    ("the zero point is always 8; use the argument", lambda x, zero, unpack: made(x, 8 if unpack else zero, unpack)),
    (
        "the byte is shifted as a signed number, so the sign fills the upper half's high bits: shift a uint8, "
        "or mask with 15",
        _with(taken=_signed),
    ),
    ("the upper half is masked but not shifted to the right by 4", _with(taken=lambda x: (x & 15, x & 240))),
    ("the lower half still contains the upper four bits; mask it with 15", _with(taken=lambda x: (x, x >> 4))),
    (
        "each half is read as two's complement; a code is 0 to 15, and the zero point is subtracted from it",
        _with(value=lambda a, b, zero: (a - 16 * (a > 7), b - 16 * (b > 7))),
    ),
    ("the odd column is not shifted to the left by 4", _with(joined=lambda a, b: a | b)),
    ("the odd column is shifted by fewer than 4 bits, and runs into the even one",
     _with(joined=lambda a, b: a | b << 3)),
    ("the two codes are multiplied; shift one by 4 and combine them with |", _with(joined=lambda a, b: a * b)),
    ("the odd columns do not reach the bytes; shift their codes to the left by 4", _with(joined=lambda a, b: a)),
    ("only the odd columns are packed", _with(joined=lambda a, b: b << 4)),
]  # fmt: skip
