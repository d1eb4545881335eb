"""When gradients were sent: as early as their order allows, each bucket once, and backward waits for none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08.checks.averaging import nbytes_of
from labs_helpers.data_parallel.lab08.checks.hooked import Training
from labs_helpers.practice.process_groups import Called, ProcessRun

IN_FINISH = "all-reduces are started in finish(), after backward: they belong into send()"
RIGHT = "the values are right, but"


class Arrival(NamedTuple):
    """What a rank sent after the gradient of `name` had arrived and before the next; name '': in finish()."""

    name: str
    sent: list[Called]


def arrivals(run: ProcessRun, rank: int) -> list[list[Arrival]]:
    """What a rank sent when, step by step."""
    steps: list[list[Arrival]] = []
    for event in run.log:
        if event.rank != rank:
            continue
        if event.call is not None:
            if event.what == "start" and steps and steps[-1]:
                steps[-1][-1].sent.append(event.call)
        elif event.what.startswith("step"):
            steps.append([])
        elif event.what.startswith(("arrived", "backward ends")):
            steps[-1].append(Arrival(event.what.partition("arrived ")[2], []))
    return steps


def expect_asynchronous(case: str, run: ProcessRun, kept: str = "") -> None:
    """Raise Wrong where backward waits for a collective, or nobody waits for one. kept: the cause where a rank waits
    for one of an earlier step."""
    for rank in range(len(run.results)):
        blocking = [call for call in run.of(rank) if not call.asynchronous]
        within = [call for step in range(9) for call in run.waited_between(rank, f"step {step}", "backward ends")]
        if blocking or within:
            found = "waits for an all-reduce before backward goes on"
            cause = "async_op=True is missing" if blocking else "wait() is called in the hook; it belongs into finish()"
            if not within and not any(arrival.sent for step in arrivals(run, rank) for arrival in step[:-1]):
                found, cause = "sends nothing before backward ends", IN_FINISH
            raise Wrong(case, f"{RIGHT} rank {rank} {found}: nothing overlaps", cause=cause)
    for rank, step in product(range(len(run.results)), range(1, 9)):
        within = f"step {step}", f"step {step + 1}"
        if set(run.waited_between(rank, *within)) - set(run.started_between(rank, *within)):
            found = f"{RIGHT} rank {rank} waits in step {step + 1} for all-reduces of earlier steps"
            raise Wrong(case, found, cause=kept)
    asked = {event.call for event in run.log if event.what == "wait"}
    if left := [call for call in run.calls if call.asynchronous and call not in asked]:
        cause = "a handle's wait() was not called; is_completed() only asks, and on a GPU nothing else waits"
        raise Wrong(case, f"{RIGHT} nobody waits for {left[0]} of rank {left[0].rank}", cause=cause)


def expect_in_order(
    training: Training, run: ProcessRun, rank: int, what: str, twice: Sequence[str], late: Sequence[str], none: str
) -> None:
    """Raise Wrong unless a rank sends every bucket of every step where it has to.

    what: 'bucket' or 'gradient'. twice, late: the causes of what is sent more often, or too late, in the first step and
    in those after it. none: the cause where backward sends nothing, unless `late` has one.
    """
    parts = {part.name: part for part in training.parts}
    sizes = [nbytes_of(parts[name] for name in names) for names in training.buckets]
    for number, step in enumerate(arrivals(run, rank)):
        where, right, later = f"{training.name}, step {number + 1}", f"{RIGHT} rank {rank}", number > 0
        sent = [call for arrival in step for call in arrival.sent]
        if names := sorted({call.name for call in sent} - {"all_reduce", "all_reduce_coalesced"}):
            raise Wrong(where, f"{right} calls {', '.join(names)}", cause=f"one all-reduce per {what} is enough")
        passes = [one for one in training.steps[number].passes if not one.sync]
        silent = sum(own is not None for one in passes for own in one.own[rank].values())
        if early := [call for arrival in step[:silent] for call in arrival.sent]:
            cause = (
                "backward in no_sync() adds up and no more: neither the hook sends or counts, nor the end of the block"
            )
            raise Wrong(where, f"{right} sends {len(early)} {what}s within no_sync()", cause=cause)
        if len(sent) != len(sizes):
            cause = twice[later] * (len(sent) > len(sizes))
            if [call.nbytes for call in sent] == [nbytes_of([parts[n]]) for names in training.buckets for n in names]:
                cause = "the views' parameters are sent one by one"
            raise Wrong(where, f"{right} makes {len(sent)} all-reduces for {len(sizes)} {what}s", cause=cause)
        if (total := sum(call.nbytes for call in sent)) != sum(sizes):
            cause = "gradients travel in float64" * (total == 2 * sum(sizes))
            raise Wrong(where, f"{right} sends {total} bytes; its gradients have {sum(sizes)}", cause=cause)
        found = [[call.nbytes for call in arrival.sent] for arrival in step[silent:]]
        wanted = _wanted(training.buckets, sizes, [arrival.name for arrival in step[silent:-1]])
        if sum(found, []) != sum(wanted, []):
            cause = f"finish() goes through the {what}s in the same order, from the first that is not under way"
            raise Wrong(where, f"{right} sends the {what}s in another order than they are given in", cause=cause)
        if found != wanted and not any(found[:-1]):
            nothing = f"{right} sends all {what}s in finish(), after backward: nothing hides them"
            raise Wrong(where, nothing, cause=late[later] or none)
        for arrival, some, due in zip(step[silent:], found, wanted, strict=True):
            if some != due:
                when = f"when {arrival.name} arrives" if arrival.name else "in finish()"
                told = f"{right} sends {len(some)} {what}{'s' * (len(some) != 1)} {when}; {len(due)} can go there"
                raise Wrong(where, told, cause=_too_late(what, len(some), len(due), late[later]))


def _too_late(what, found, wanted, counts):
    if found >= wanted:
        return ()
    if what == "gradient":
        return "each gradient is sent when it arrives itself, and waits for no other"
    if found and wanted > 1:
        return "one arrival may complete the turn of several buckets: `while`, not `if`"
    return tuple(one for one in ("a bucket that is full is sent one arrival too late", counts) if one)


def _wanted(buckets, sizes, arrived):
    """For each arrival, and at last for finish(), the sizes of the buckets that are to be sent there."""
    missing, next_one, wanted = [set(names) for names in buckets], 0, []
    for name in arrived:
        for some in missing:
            some.discard(name)
        wanted.append([])
        while next_one < len(missing) and not missing[next_one]:
            wanted[-1].append(sizes[next_one])
            next_one += 1
    return [*wanted, sizes[next_one:]]
