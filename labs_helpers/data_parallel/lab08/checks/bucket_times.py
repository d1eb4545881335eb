"""When the buckets of exercise 6 were sent: as early as the order allows, each once, nothing in no_sync()."""

from __future__ import annotations

from math import prod

from labs_helpers.course.verdict import Wrong

PAUSED = "what arrives within no_sync() is counted as well, or sending is not switched on again after it"


def expect_in_order(case, rank, steps, given, counts) -> None:
    """Raises Wrong unless in each step of `rank` every bucket was sent where it had to be.

    steps: `hooked.arrivals`; given: the Step that each was. counts: the cause where the first step goes well and
    later ones do not."""
    shapes = {part.name: part.shape for part in case.parts}
    sizes = [sum(prod(shapes[name]) for name in names) for names in case.buckets]
    for number, step in enumerate(steps):
        where = f"{case.name}, step {number + 1}"
        sent = [call for arrival in step for call in arrival.sent]
        right = f"the values are right, but rank {rank}"
        names = {call.name for call in sent} - {"all_reduce", "all_reduce_coalesced"}
        if names:
            raise Wrong(where, f"{right} calls {', '.join(sorted(names))}", cause="an all-reduce per bucket is enough")
        silent = sum(own is not None for one in given[number].passes if not one.sync for own in one.own[rank].values())
        early = [call for arrival in step[:silent] for call in arrival.sent]
        if early:
            raise Wrong(
                where,
                f"{right} sends {len(early)} buckets within no_sync()",
                cause="the hook reduces in no_sync() as well: it has to return there, without counting",
            )
        if len(sent) != len(sizes):
            single = [prod(shapes[name]) for names in case.buckets for name in names]
            more = "the views' parameters are sent one by one" * ([call.elements for call in sent] == single)
            raise Wrong(
                where,
                f"{right} makes {len(sent)} calls for {len(sizes)} buckets",
                cause=more or "a bucket is sent twice" * (len(sent) > len(sizes)),
            )
        found = [[call.elements for call in arrival.sent] for arrival in step[silent:]]
        wanted = _wanted(case, [arrival.name for arrival in step[silent:-1]], sizes)
        if found != wanted:
            paused = PAUSED if case.micro_batches > 1 else ""
            later = counts if number or case.interrupted else ""
            _misplaced(where, right, step[silent:], found, wanted, paused or later)


def _wanted(case, arrived, sizes):
    """For each arrival, and at last for finish(), the sizes of the buckets that are to be sent there."""
    missing, next_one, wanted = [set(names) for names in case.buckets], 0, []
    for name in arrived:
        for some in missing:
            some.discard(name)
        wanted.append([])
        while next_one < len(missing) and not missing[next_one]:
            wanted[-1].append(sizes[next_one])
            next_one += 1
    return [*wanted, sizes[next_one:]]


def _misplaced(where, right, step, found, wanted, counts):
    if [one for some in found for one in some] != [one for some in wanted for one in some]:
        raise Wrong(
            where,
            f"{right} sends the buckets in another order than they are given in",
            cause="finish() goes through the buckets in the same order, from the first that is not under way",
        )
    if not any(found[:-1]):
        raise Wrong(
            where,
            f"{right} sends all buckets in finish(), after backward: nothing hides them",
            cause=counts
            or "no bucket is found full during backward: is missing counted down, and compared after that?",
        )
    at = next(i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
    when = f"when {step[at].name} arrives" if step[at].name else "in finish()"
    what = f"{len(found[at])} bucket{'s' * (len(found[at]) != 1)} {when}; {len(wanted[at])} can go there"
    late = len(found[at]) < len(wanted[at])
    cause = (
        "one arrival may complete the turn of several buckets: `while`, not `if`"
        if late and len(wanted[at]) > 1 and found[at]
        else ""
    )
    if not cause and late:
        cause = tuple(one for one in ("a bucket that is full is sent one arrival too late", counts) if one)
    raise Wrong(where, f"{right} sends {what}", cause=cause)
