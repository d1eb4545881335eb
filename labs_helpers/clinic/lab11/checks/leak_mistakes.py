"""Find leaks with one mistake each, as answers to exercise 4 of lab 11 do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean

Events = Sequence[tuple]
Changes = Sequence[float]  # of a place's live bytes, one per step


def followed(events: Events) -> Iterator[tuple[int, int, str]]:
    """Yield (step, change in bytes, place) for each event."""
    blocks: dict[int, tuple[int, str]] = {}
    for kind, step, number, *block in events:
        if kind == "alloc":
            blocks[number] = (block[0], block[1])
        nbytes, place = blocks[number]
        yield step, nbytes if kind == "alloc" else -nbytes, place


def _without_frees(events: Events) -> Iterator[tuple[int, int, str]]:
    return ((step, change, place) for step, change, place in followed(events) if change > 0)


def _by_id(events: Events, keep_first: bool) -> Iterator[tuple[int, int, str]]:
    """Look up each free in one table of all allocations, in which an id has one block."""
    allocated = [event for event in events if event[0] == "alloc"]
    table = {event[2]: event[3:] for event in (reversed(allocated) if keep_first else allocated)}
    for kind, step, number, *block in events:
        nbytes, place = block or table[number]
        yield step, nbytes if kind == "alloc" else -nbytes, place


def _never_freed(events: Events) -> Iterator[tuple[int, int, str]]:
    live: dict[int, tuple[int, int, str]] = {}
    for kind, step, number, *block in events:
        if kind == "alloc":
            live[number] = (step, block[0], block[1])
        else:
            del live[number]
    return iter(live.values())


def _of_second_half(events: Events) -> Iterator[tuple[int, int, str]]:
    """Leave out all blocks of the first half."""
    half, live = (1 + max(event[1] for event in events)) // 2, dict[int, tuple[int, str]]()
    for kind, step, number, *block in events:
        if kind == "alloc" and step >= half:
            live[number] = (block[0], block[1])
            yield step, block[0], block[1]
        elif kind == "free" and number in live:
            nbytes, place = live.pop(number)
            yield step, -nbytes, place


def _blocks(events: Events) -> Iterator[tuple[int, int, str]]:
    return ((step, 1 if change > 0 else -1, place) for step, change, place in followed(events))


def _grown(changes: Changes) -> bool:
    return min(changes[len(changes) // 2 :]) > 0


def _mean(changes: Changes) -> float:
    return sum(changes[len(changes) // 2 :]) / (len(changes) // 2)


def find_leak(
    events: Events,
    steps: int,
    walk: Callable = followed,
    leaks: Callable[[Changes], bool] = _grown,
    growth: Callable[[Changes], float] = _mean,
) -> dict[str, float]:
    """Return the right answer; other settings than the defaults make mistakes."""
    changes: dict[str, list[float]] = {}
    for step, change, place in walk(events):
        changes.setdefault(place, [0] * steps)[step] += change
    return {place: growth(of) for place, of in changes.items() if leaks(of)}


def _peaks(events: Events, steps: int) -> dict[str, float]:
    """Compare the largest live memory of each step, which a quiet step inherits from the step before."""
    live: dict[str, int] = {}
    peaks: dict[str, list[int]] = {}
    walked = list(followed(events))
    for place in {place for _, _, place in walked}:
        live[place], peaks[place] = 0, []
        for step in range(steps):
            peaks[place].append(live[place])
            for change in (change for at, change, where in walked if (at, where) == (step, place)):
                live[place] += change
                peaks[place][step] = max(peaks[place][step], live[place])
    changes = {place: [b - a for a, b in zip([0, *of], of, strict=False)] for place, of in peaks.items()}
    return {place: _mean(of) for place, of in changes.items() if _grown(of)}


def _stale(events: Events, steps: int) -> dict[str, float]:
    """Note a place's live memory only in steps with events of this place; in others it stays 0."""
    live: dict[str, int] = {}
    ends: dict[str, list[int]] = {}
    for step, change, place in followed(events):
        live[place] = live.get(place, 0) + change
        ends.setdefault(place, [0] * steps)[step] = live[place]
    changes = {place: [b - a for a, b in zip([0, *of], of, strict=False)] for place, of in ends.items()}
    return {place: _mean(of) for place, of in changes.items() if _grown(of)}


def _second(changes: Changes, start: int = 0) -> Changes:
    return changes[len(changes) // 2 + start :]


def _fastest(events: Events, steps: int) -> dict[str, float]:
    right = find_leak(events, steps)
    return {place: growth for place, growth in right.items() if growth == max(right.values())}


def _not_empty(changes: Changes) -> bool:
    return sum(changes) > 0


def _no_shrinking(changes: Changes) -> bool:
    return min(_second(changes)) >= 0 and sum(_second(changes)) > 0


MAY_STAY = "a place may stay the same in a step of the second half; it must grow in each"
NOT_EMPTY = "a place is there if its memory is not empty at the end of the run; it must grow in each step of the half"
ONE_LESS = (
    "the first step of the second half is left out: compare its end with the end of step steps // 2 − 1, the last of "
    "the first half"
)
WALKS = (
    ("allocations are counted and frees are not", _without_frees),
    (
        "an id has one block for the whole run, the last that got it; look up a free's block at that moment",
        partial(_by_id, keep_first=False),
    ),
    (
        "an id has one block for the whole run, the first that got it; look up a free's block at that moment",
        partial(_by_id, keep_first=True),
    ),
    ("a block that is freed in a later step counts as never allocated; until then it is live", _never_freed),
    (
        "blocks of the first half are left out, and so is their end in the second half, by which live memory shrinks",
        _of_second_half,
    ),
    ("the growth is in blocks, not in bytes", _blocks),
)
LEAKS = (
    ("a place must grow in every step of the whole run; only the second half counts", lambda of: min(of) > 0),
    (MAY_STAY, _no_shrinking),
    (
        "places that stay the same throughout the second half are there too: growth is more than 0",
        lambda of: min(_second(of)) >= 0,
    ),
    (
        "the end of the run is compared with the middle alone; the memory must grow in every step between them",
        lambda of: sum(_second(of)) > 0,
    ),
    (
        "growth in a single step of the second half is enough here; the memory must grow in each of these steps",
        lambda of: max(_second(of)) > 0,
    ),
    (
        "the last step of the first half counts too; the second half begins with step steps // 2",
        lambda of: min(_second(of, -1)) > 0,
    ),
    (NOT_EMPTY, _not_empty),
    ("the first half of the steps is looked at, not the second", lambda of: min(of[: len(of) // 2]) > 0),
    ("a step counts as growth if the memory changes, even if it shrinks", lambda of: all(_second(of))),
    (
        "the last of the second half's steps is left out: it ends with step steps − 1",
        lambda of: min(_second(of)[:-1], default=1) > 0,
    ),
)
GROWTHS = (
    ("the growth of the second half is divided by all steps, not by its own steps // 2", lambda of: _mean(of) / 2),
    (
        "the growth of the second half is divided by one step too few; it has steps // 2 of them",
        lambda of: sum(_second(of)) / max(1, len(of) // 2 - 1),
    ),
    ("the growth of the second half is not divided by its steps", lambda of: sum(_second(of))),
    ("the growth is the mean over all steps; take only those of the second half", mean),
    ("this is the growth of the last step; return the mean over the second half", lambda of: of[-1]),
    ("this is the growth of the first of the steps; return the mean over the second half", lambda of: _second(of)[0]),
    (
        "the live bytes at the end of the run are divided by steps // 2; subtract those at the end of the first half",
        lambda of: 2 * mean(of),
    ),
    ("these are the live bytes at the end of the run, not their growth per step", sum),
    ("the mean is rounded down: // drops a part of a byte", lambda of: sum(_second(of)) // (len(of) // 2)),
)
MISTAKES = [
    *((sentence, partial(find_leak, walk=walk)) for sentence, walk in WALKS),
    *((sentence, partial(find_leak, leaks=leaks)) for sentence, leaks in LEAKS),
    *((sentence, partial(find_leak, growth=growth)) for sentence, growth in GROWTHS),
    (NOT_EMPTY, partial(find_leak, leaks=_not_empty, growth=mean)),
    (NOT_EMPTY + ", and frees count", partial(find_leak, walk=_without_frees, leaks=_not_empty, growth=mean)),
    (
        MAY_STAY,
        partial(find_leak, leaks=_no_shrinking, growth=lambda of: sum(_second(of)) / sum(map(bool, _second(of)))),
    ),
    (
        "the first half of the steps is looked at, not the second",
        partial(find_leak, leaks=lambda of: min(of[: len(of) // 2]) > 0, growth=lambda of: mean(of[: len(of) // 2])),
    ),
    ("only the place that grows fastest is there; several lines may leak", _fastest),
    (
        "a place is there if it keeps a block of the second half; its memory must grow in each step of that half",
        partial(find_leak, walk=_never_freed, leaks=lambda of: sum(_second(of)) > 0),
    ),
    ("in a step without events, a place's live memory is 0 here; it stays what it was", _stale),
    ("the largest live memory inside a step is used, not the memory at its end", _peaks),
    (ONE_LESS, partial(find_leak, leaks=lambda of: min(_second(of, 1), default=1) > 0)),
    (ONE_LESS, partial(find_leak, growth=lambda of: sum(_second(of, 1)) / max(1, len(of) // 2 - 1))),
    (ONE_LESS, partial(find_leak, growth=lambda of: sum(_second(of, 1)) / (len(of) // 2))),
    (ONE_LESS, partial(find_leak, growth=lambda of: sum(_second(of, 1)) / (len(of) // 2 + 1))),
    *(
        (ONE_LESS, partial(find_leak, leaks=lambda of: min(_second(of, 1), default=1) > 0, growth=growth))
        for growth in (
            lambda of: sum(_second(of, 1)) / max(1, len(of) // 2 - 1),
            lambda of: sum(_second(of, 1)) / (len(of) // 2),
        )
    ),
]
ERRORS = (
    (
        r"unpack \(expected [35]|tuple index out of",
        "a free has three entries and an alloc five; the bytes and the place of a free are those of its block",
    ),
)
TWO_STEPS = ((r"ZeroDivisionError", "of two steps the second half is one, and its growth is divided by 1"),)
