"""What the history of CUDA's caching allocator says about its segments, in entries as PyTorch writes them."""

import pytest

from labs_helpers.measure.segments import first_refusal, holes

MB = 2**20


def entries(*said):
    """Entries of a history from (action, address in MB, size in MB)."""
    return [{"action": action, "addr": int(at * MB), "size": int(size * MB)} for action, at, size in said]


def freed(at):
    return [("free_requested", at, 0), ("free_completed", at, 0)]


# Two segments of 30 MB with a live block each, and one that is wholly free.
FULL = [
    ("segment_alloc", 100, 30), ("alloc", 100, 12), ("alloc", 112, 8), ("alloc", 120, 10),
    *freed(100), *freed(120),
    ("segment_alloc", 200, 30), ("alloc", 200, 20), ("segment_alloc", 300, 14), ("alloc", 300, 14), *freed(300),
]  # fmt: skip
REFUSED = [("segment_free", 300, 14), ("segment_alloc", 400, 16), ("alloc", 400, 15.5)]
HELD = [[14 * MB, []], [30 * MB, [[12 * MB, 8 * MB]]], [30 * MB, [[0, 20 * MB]]]]


def test_the_segments_before_the_device_refused():
    found = first_refusal(entries(*FULL, *REFUSED))
    assert found == {"request": 15.5 * MB, "segments": HELD}
    assert holes(found["segments"]) == [14 * MB, 12 * MB, 10 * MB, 10 * MB]


def test_a_request_that_fails_in_the_end():
    failed = {"action": "oom", "size": 16 * MB, "device_free": 0}
    assert first_refusal([*entries(*FULL, ("segment_free", 300, 14)), failed]) == {"request": 16 * MB, "segments": HELD}
    found = first_refusal([*entries(*FULL, ("alloc", 300, 14)), failed])
    assert found is not None and sorted(holes(found["segments"])) == [10 * MB, 10 * MB, 12 * MB]


@pytest.mark.parametrize(
    "history",
    [
        FULL,
        [*FULL, ("segment_alloc", 400, 16), ("alloc", 400, 16)],  # the device has more
        [*FULL, ("segment_free", 300, 14), ("segment_alloc", 400, 90), ("alloc", 400, 90)],  # too little is free
        [*FULL, ("segment_free", 300, 14), ("segment_alloc", 400, 2), ("alloc", 400, 0.5)],  # small ones live elsewhere
    ],
)
def test_nothing_is_scattered(history):
    assert first_refusal(entries(*history)) is None


def test_the_first_refusal_with_enough_free_memory_counts():
    early = [("segment_free", 300, 14), ("segment_alloc", 300, 90), ("alloc", 300, 90)]
    later = [*freed(300), ("segment_free", 300, 90), ("segment_alloc", 400, 92), ("alloc", 400, 92)]
    found = first_refusal(entries(*FULL, *early, *later))
    assert found["request"] == 92 * MB and [90 * MB, []] in found["segments"]


def test_a_block_takes_the_rest_of_a_hole_that_is_too_small_to_be_divided():
    history = [("segment_alloc", 100, 30), ("alloc", 100, 29.25), ("segment_alloc", 200, 30), ("alloc", 200, 28)]
    held = first_refusal([*entries(*history), {"action": "oom", "size": 2 * MB}])["segments"]
    assert held == [[30 * MB, [[0, 30 * MB]]], [30 * MB, [[0, 28 * MB]]]]
