"""Read in the history of PyTorch's CUDA allocator what its segments held when a request fitted into none of them.

The caching allocator takes segments from the device, divides them into blocks, and keeps both when tensors are freed. A
request gets the smallest free block in which it fits. If there is none, the allocator asks the device for another
segment; if the device refuses, it gives back the segments that are wholly free, and asks once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SMALL = 2**20  # requests up to this size live in segments of their own, of 2 MiB, which are left out here
LEFT = 2**20  # a larger request takes a free block as a whole if no more than this would be left
UNIT = 512  # sizes are rounded up to a multiple of it

Refusal = dict[str, Any]


def first_refusal(history: Iterable[Mapping[str, Any]]) -> Refusal | None:
    """Return the first request for which the device refused a segment although enough bytes were free; None if there
    was none.

        {"request": bytes, "segments": [[bytes, [[start, bytes], …]], …]}

    The segments are as they were at the request, each with its live blocks; the rest of a segment is free. All numbers
    are bytes. history: the entries of a device in `torch.cuda.memory._snapshot()["device_traces"]`, recorded from the
    first allocation on, without `empty_cache()` and expandable segments.
    """
    segments: dict[int, int] = {}  # address → bytes
    live: dict[int, int] = {}  # address of a block → bytes
    before: list[Any] | None = None  # the segments when the device had just refused
    for entry in history:
        action, address, size = entry["action"], entry.get("addr", 0), entry["size"]
        if action in ("segment_free", "oom") and before is None:
            before = _held(segments, live)
        if action == "segment_alloc":
            segments[address] = size
        elif action == "segment_free":
            segments.pop(address, None)
        elif action == "free_completed":
            live.pop(address, None)
        elif action in ("alloc", "oom"):
            if before is not None and size > SMALL and size <= _free(before):
                return {"request": size, "segments": before}
            before = None
            if action == "alloc":
                live[address] = _block(address, size, segments, live)
    return None


def _block(address: int, size: int, segments: Mapping[int, int], live: Mapping[int, int]) -> int:
    """Return the size of the block that a request gets at this address."""
    rounded = -(-size // UNIT) * UNIT
    if size <= SMALL:
        return rounded
    ends = [start + nbytes for start, nbytes in segments.items() if start <= address < start + nbytes]
    end = min([*ends, *(other for other in live if other > address)], default=address + rounded)
    return end - address if end - address - rounded <= LEFT else rounded


def _held(segments: Mapping[int, int], live: Mapping[int, int]) -> list[Any]:
    return [
        [size, [[at - start, nbytes] for at, nbytes in sorted(live.items()) if start <= at < start + size]]
        for start, size in sorted(segments.items(), key=lambda segment: segment[1])
        if size > 2 * SMALL
    ]


def _free(segments: Iterable[Any]) -> int:
    return sum(size - sum(nbytes for _, nbytes in blocks) for size, blocks in segments)


def holes(segments: Iterable[Any]) -> list[int]:
    """Return the bytes of each free stretch between the live blocks of segments, as in a `Refusal`."""
    found = []
    for size, blocks in segments:
        ends = [0, *(start + nbytes for start, nbytes in blocks)]
        starts = [*(start for start, _ in blocks), size]
        found += [start - end for end, start in zip(ends, starts, strict=True) if start > end]
    return found
