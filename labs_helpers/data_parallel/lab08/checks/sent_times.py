"""Check when gradients are sent: each bucket once, as early as the order allows, without a wait in backward."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08.checks.averaging import nbytes_of
from labs_helpers.data_parallel.lab08.checks.hooked import Training
from labs_helpers.practice.process_groups import Called, ProcessRun

IN_FINISH = "the all-reduces start in finish(), after backward: start them in send()"
RIGHT = "the values are right, but"


class Arrival(NamedTuple):
    """The calls that a rank made between the arrival of the gradient `name` and the next one; name '': in finish()."""

    name: str
    sent: list[Called]


def arrivals(run: ProcessRun, rank: int) -> list[list[Arrival]]:
    """Return a rank's arrivals and the calls after each of them, step by step."""
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
    """Raise Wrong if backward waits for a collective, or if a rank never waits for one.

    kept: the cause if a rank waits for a collective of an earlier step.
    """
    for rank in range(len(run.results)):
        blocking = [call for call in run.of(rank) if not call.asynchronous]
        within = [call for step in range(9) for call in run.waited_between(rank, f"step {step}", "backward ends")]
        if blocking or within:
            found = "makes backward wait for an all-reduce"
            cause = "async_op=True is missing" if blocking else "the hook calls wait(); call it in finish()"
            if not within and not any(arrival.sent for step in arrivals(run, rank) for arrival in step[:-1]):
                found, cause = "sends nothing before backward ends", IN_FINISH
            raise Wrong(case, f"{RIGHT} rank {rank} {found}, so nothing overlaps", cause=cause)
    for rank, step in product(range(len(run.results)), range(1, 9)):
        within = f"step {step}", f"step {step + 1}"
        if set(run.waited_between(rank, *within)) - set(run.started_between(rank, *within)):
            found = f"{RIGHT} rank {rank} waits in step {step + 1} for all-reduces of earlier steps"
            raise Wrong(case, found, cause=kept)
    asked = {event.call for event in run.log if event.what == "wait"}
    if left := [call for call in run.calls if call.asynchronous and call not in asked]:
        cause = "call wait() on every handle; is_completed() only asks, and on a GPU nothing else waits"
        raise Wrong(case, f"{RIGHT} rank {left[0].rank} never waits for {left[0]}", cause=cause)


def expect_in_order(
    training: Training, run: ProcessRun, rank: int, what: str, twice: Sequence[str], late: Sequence[str], none: str
) -> None:
    """Raise Wrong unless a rank sends every bucket of every step at the right time.

    what: 'bucket' or 'gradient'. twice, late: pairs of causes, for the first step and for later ones, if too many
    buckets are sent or one is sent too late. none: the cause if backward sends nothing and `late` has no cause.
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
                "in no_sync(), backward only accumulates: neither the hook nor the end of the block may send or count"
            )
            raise Wrong(where, f"{right} sends {len(early)} {what}s within no_sync()", cause=cause)
        if len(sent) != len(sizes):
            cause = twice[later] * (len(sent) > len(sizes))
            if [call.nbytes for call in sent] == [nbytes_of([parts[n]]) for names in training.buckets for n in names]:
                cause = "the parameters of a bucket are sent one by one"
            raise Wrong(where, f"{right} makes {len(sent)} all-reduces for {len(sizes)} {what}s", cause=cause)
        if (total := sum(call.nbytes for call in sent)) != sum(sizes):
            cause = "gradients travel in float64" * (total == 2 * sum(sizes))
            raise Wrong(where, f"{right} sends {total} bytes; its gradients take {sum(sizes)}", cause=cause)
        found = [[call.nbytes for call in arrival.sent] for arrival in step[silent:]]
        wanted = _wanted(training.buckets, sizes, [arrival.name for arrival in step[silent:-1]])
        if sum(found, []) != sum(wanted, []):
            cause = f"in finish(), send the remaining {what}s in the same order, from the first one not yet under way"
            raise Wrong(where, f"{right} sends the {what}s in a different order than given", cause=cause)
        if found != wanted and not any(found[:-1]):
            nothing = f"{right} sends all {what}s in finish(), after backward, so nothing hides them"
            raise Wrong(where, nothing, cause=late[later] or none)
        for arrival, some, due in zip(step[silent:], found, wanted, strict=True):
            if some != due:
                when = f"when {arrival.name} arrives" if arrival.name else "in finish()"
                told = f"{right} sends {len(some)} {what}{'s' * (len(some) != 1)} {when}; it could send {len(due)}"
                raise Wrong(where, told, cause=_too_late(what, len(some), len(due), late[later]))


def _too_late(what, found, wanted, counts):
    if found >= wanted:
        return ()
    if what == "gradient":
        return "send each gradient when it arrives, without waiting for another one"
    if found and wanted > 1:
        return "one arrival may allow several buckets to be sent: use `while`, not `if`"
    return tuple(one for one in ("a full bucket is sent one arrival too late", counts) if one)


def _wanted(buckets, sizes, arrived):
    """Return, for each arrival and finally for finish(), the sizes of the buckets to send."""
    missing, next_one, wanted = [set(names) for names in buckets], 0, []
    for name in arrived:
        for some in missing:
            some.discard(name)
        wanted.append([])
        while next_one < len(missing) and not missing[next_one]:
            wanted[-1].append(sizes[next_one])
            next_one += 1
    return [*wanted, sizes[next_one:]]
