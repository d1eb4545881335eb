"""Call an answer for every rank, and say what goes wrong when the ranks work in its order.

An answer gives each rank's list of (kind, micro-batch), or of (kind, chunk, micro-batch) if a rank holds several
stages. `consequence` finds, in this order, the list that is not valid or the deadlock, the stashes that are too many,
and the longer step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case
from labs_helpers.pipeline.lab10.own_schedule import as_schedule
from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import InvalidSchedule, check, peak_stashes

Orders = list[list[tuple]]
KINDS = ("F", "B")
SHOWN = 14  # passes of an order in a message


def orders_of(answer: Callable, ranks: int, micro_batches: int, *chunks: int) -> Orders:
    """Return the answer's list for each rank. Raises Wrong for anything but lists of (kind, number, …)."""
    return [
        expect_order(f"rank {rank}'s list", answer(rank, ranks, micro_batches, *chunks), 2 + len(chunks))
        for rank in range(ranks)
    ]


def expect_order(name: str, order: Any, width: int, kinds: Sequence[str] = KINDS) -> list[tuple]:
    """Return an order as a list of tuples of `width` entries. Raises Wrong if it has another form."""
    if not isinstance(order, list | tuple):
        cause = "return the list" if order is None else ""
        raise Wrong("", f"{name}: {order!r:.60} is not a list", cause=cause)
    form = '("F", 0)' if width == 2 else '("F", 0, 0)'
    for entry in order:
        right = isinstance(entry, list | tuple) and len(entry) == width and entry[0] in kinds
        if not right or not all(isinstance(number, int) for number in entry[1:]):
            raise Wrong("", f"{name} contains {entry!r:.40}; an entry looks like {form}, with {' or '.join(kinds)}")
    return [tuple(entry) for entry in order]


def case(right: Callable, ranks: int, micro_batches: int, *chunks: int) -> Case:
    """Return the case in which `right` is called for every rank."""
    arguments = (ranks, micro_batches, *chunks)
    orders = [right(rank, *arguments) for rank in range(ranks)]
    schedule = as_schedule(orders, *arguments)
    of_chunks = "".join(f", {number} chunks" for number in chunks)
    some = counted(micro_batches, "micro-batch", "es")
    stashes = ", ".join(map(str, peak_stashes(schedule)))
    name = f"{counted(ranks, 'rank')}, {some}{of_chunks}"
    line = f"{name}: bubble {simulate(schedule).bubble_share:.0%}, most stashes by rank {stashes}"
    return Case(name, arguments, orders, line)


def told(case: Case, orders: Orders) -> tuple[str, str, str]:
    """Return the first wrong rank's list and the right one, as `Wrong` shows them, and what follows from the wrong
    one."""
    rank = next(r for r, pair in enumerate(zip(orders, case.right, strict=True)) if list.__ne__(*pair))
    found, right = shown(orders[rank], case.right[rank])
    return found, f"{right}\n  {consequence(case, orders)}", f"rank {rank}'s list"


def shown(found: list[tuple], right: list[tuple]) -> tuple[str, str]:
    """Return two lists as text, from the first entry that differs if they are long."""
    shorter = min(len(found), len(right))
    same = next((i for i, pair in enumerate(zip(found, right, strict=False)) if pair[0] != pair[1]), shorter)
    start = max(0, same - 3) if max(len(found), len(right)) > SHOWN else 0
    return as_text(found, start), as_text(right, start)


def as_text(order: list[tuple], start: int = 0) -> str:
    """Return 'F0 F1 B0', or with chunks 'F0.0 F0.1 B1.0'."""
    words = [kind + ".".join(map(str, numbers)) for kind, *numbers in order[start : start + SHOWN]]
    before, after = "… " * (start > 0), " …" * (len(order) > start + SHOWN)
    return f"{before}{' '.join(words)}{after}" if words else "nothing"


def consequence(case: Case, orders: Orders) -> str:
    """Return what happens when the ranks work in this order."""
    right, schedule = (as_schedule(some, *case.arguments) for some in (case.right, orders))
    try:
        check(complete(schedule))
    except InvalidSchedule as error:
        return f"In this order: {error}"
    except IndexError:
        return "In this order: an entry names a chunk that no rank has"
    held, least = peak_stashes(schedule), peak_stashes(right)
    more = [rank for rank in range(len(held)) if held[rank] > least[rank]]
    if more:
        rank = more[0]
        return f"In this order: rank {rank} holds up to {held[rank]} stashes at a time instead of {least[rank]}"
    seconds, fewest = (simulate(some, Times()).seconds for some in (schedule, right))
    if seconds > fewest:
        return f"In this order: the step takes {seconds:g} forward passes of time instead of {fewest:g}"
    return "In this order: the step works and takes as long, but it is not the order asked for"


def counted(number: int, word: str, ending: str = "s") -> str:
    return f"{number} {word}{ending * (number != 1)}"
