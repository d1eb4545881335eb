"""What proves exercise 1 of lab 04 right: bytes moved and bytes alive, counted."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.peak_memory import peak_memory


@exercise("04/1", "bytes", points=5, minutes=10, reference=exercises.attention_costs)
def attention_costs(student):
    B, H, L, D, BLOCK_M = 2, 3, 64, 16, 32
    names = ("plain_bytes", "plain_extra", "tiled_bytes", "tiled_extra")
    answer = student(B, H, L, D, 4, BLOCK_M)
    if not (isinstance(answer, tuple) and len(answer) == 4):
        raise Wrong("", f"returned {answer!r}; four numbers are asked for: ({', '.join(names)})")
    q, k, v = (numbers(B, H, L, D, seed=seed) for seed in range(3))
    with TorchTraffic() as traffic:
        o = plain_attention(q, k, v)
    _, plain_peak = peak_memory(plain_attention, q, k, v)
    tensor, scores, rows = 4 * q.numel(), 4 * B * H * L * L, 4 * B * H * L
    plain = traffic.bytes
    _number(
        names[0],
        answer[0],
        plain,
        {
            "bytes are elements times itemsize": plain // 4,
            "S and P are of one head of one batch": plain - (B * H - 1) * 4 * scores // (B * H),
            "the softmax reads S as well as it writes P": plain - scores,
            "the softmax is a kernel of its own: it reads S and writes P": plain - 2 * scores,
            "S and P are never counted": 4 * tensor,
        },
    )
    yield f"plain: {plain:,} bytes, as counted in PyTorch: " + ", ".join(
        f"{p.name} {p.bytes:,}" for p in traffic.operations
    )
    _number(
        names[1],
        answer[1],
        plain_peak - o.nbytes,
        {
            "bytes are elements times itemsize": 2 * scores // 4,
            "while the softmax runs S and P are both alive": scores,
            "O is not extra": 2 * scores + tensor,
            "Q, K, V and O are not extra": 2 * scores + 4 * tensor,
            "S and P are of one head of one batch": 2 * scores // (B * H),
        },
    )
    yield f"plain: at the peak {plain_peak - o.nbytes:,} bytes alive beside Q, K, V and O"
    tiled, tiled_peak = _tiled(q, k, v, BLOCK_M)
    _number(
        names[2],
        answer[2],
        tiled,
        {
            "bytes are elements times itemsize": 2 * tensor // 4 + L // BLOCK_M * 2 * tensor // 4 + rows,
            "each program reads all of K and V of its head": 4 * tensor + rows,
            "the log-sum-exp is written too": tiled - rows,
            "the log-sum-exp is one number a row, not one an element of O": tiled - rows + tensor,
            "a program reads V as well as K": tiled - L // BLOCK_M * tensor,
            "Q is read once: a program keeps its rows": tiled + (L // BLOCK_M - 1) * tensor,
            "a program takes BLOCK_M rows, not one": 2 * tensor + L * 2 * tensor + rows,
            "S and P are not written": tiled + 4 * scores,
        },
    )
    yield f"tiled: {tiled:,} bytes, " + ("as the meter counts" if this_machine().interpreted else "by the formula")
    _number(
        names[3],
        answer[3],
        tiled_peak - o.nbytes,
        {
            "the log-sum-exp is one number a row": tensor,
            "there is no L×L matrix any more": 2 * scores,
            "the log-sum-exp stays in memory: the backward pass needs it": 0,
            "a float32 has four bytes": rows // 4,
        },
    )
    yield f"tiled: at the peak {tiled_peak - o.nbytes:,} bytes alive beside Q, K, V and O"
    for other in ((1, 1, 16, 128, 2, 16), (4, 16, 4096, 64, 2, 128), (1, 32, 16384, 128, 2, 64)):
        if tuple(student(*other)) != exercises.attention_costs(*other):
            raise Wrong(
                f"B, H, L, D, itemsize, BLOCK_M = {other}",
                f"returned {student(*other)}, expected "
                f"{exercises.attention_costs(*other)}.\nLikely cause: an itemsize of 2 in one place and 4 in "
                "another (the log-sum-exp is float32 whatever Q is), or two of the sizes swapped.",
            )
    yield "other shapes and item sizes"


def plain_attention(q, k, v):
    """Three kernels: S = Q·Kᵀ, P = softmax(S), O = P·V. The scale is taken to be in Q."""
    s = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT)
    p = torch.softmax(s, -1)
    return torch.bmm(p, v.flatten(0, 1)).view(q.shape)


def _number(name: str, got, expected: int, suspects: dict) -> None:
    if got == expected:
        return
    causes = [text for text, value in suspects.items() if got == value]
    cause = f"\nLikely cause: {causes[0]}." if causes else ""
    shown = f"{got:,}" if isinstance(got, (int, float)) else repr(got)
    raise Wrong("", f"{name} is {shown}, counted were {expected:,}{cause}")


def _tiled(q, k, v, BLOCK_M: int) -> tuple[int, int]:
    """(bytes moved, bytes alive at the peak) of the tiled kernel; on a GPU the bytes are the reference's formula."""

    def tiled(q, k, v):
        return exercises.tile_attention(q, k, v, 1.0, BLOCK_M=BLOCK_M, BLOCK_N=16)

    _, peak = peak_memory(tiled, q, k, v)
    if not this_machine().interpreted:
        return exercises.attention_costs(*q.shape, q.element_size(), BLOCK_M)[2], peak
    with metered() as meter:
        tiled(q, k, v)
    return meter.bytes_moved, peak
