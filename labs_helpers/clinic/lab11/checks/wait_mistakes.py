"""Read deadlocks with one mistake each, as answers to exercise 5 of lab 11 do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

Collective = tuple[str, int, str, int]  # group, number, name, elements
Record = Sequence[Collective]
Begun = Mapping[int, Record]
Members = Mapping[str, Sequence[int]]
Waits = dict[int, list[int]]


def begins(one: Collective, record: Record) -> bool:
    """Tell whether the rank with this record has begun the same collective."""
    return one in record


def waits_for(begun: Begun, members: Members, same: Callable[[Collective, Record], bool] = begins) -> Waits:
    """Return the right answer; other functions than the default make mistakes."""
    waits = {
        rank: sorted(other for other in members[record[-1][0]] if not same(record[-1], begun.get(other, ())))
        for rank, record in begun.items()
        if record
    }
    return {rank: others for rank, others in waits.items() if others}


def _last_alone(one: Collective, record: Record) -> bool:
    return bool(record) and record[-1] == one


def _last_of_group(one: Collective, record: Record) -> bool:
    return [other for other in record if other[0] == one[0]][-1:] == [one]


def _parts(*kept: int) -> Callable[[Collective, Record], bool]:
    """Return a function that compares only these parts of two collectives."""
    return lambda one, record: any(all(one[i] == other[i] for i in kept) for other in record)


def _last_number(one: Collective, record: Record) -> bool:
    """Compare the number of another rank's last collective, of any group."""
    return bool(record) and record[-1][1] >= one[1]


def _per_group(begun: Begun, members: Members) -> Waits:
    """Let the ranks that are ahead in a group wait for those that are behind."""
    found: dict[int, set[int]] = {}
    for group, ranks in members.items():
        last = {rank: sum(one[0] == group for one in begun.get(rank, ())) for rank in ranks}
        behind = {rank for rank in ranks if last[rank] < max(last.values())}
        for rank in begun.keys() & set(ranks) - behind:
            found.setdefault(rank, set()).update(behind)
    return {rank: sorted(others) for rank, others in found.items() if others}


def _unlike(one: Collective, record: Record) -> bool:
    """Return False only for a mismatch."""
    return all(other == one or other[:2] != one[:2] for other in record)


def _longest(begun: Begun, members: Members) -> Waits:
    """Let the ranks with the longest records wait for all others."""
    most = max(map(len, begun.values()))
    behind = sorted(rank for rank, record in begun.items() if len(record) < most)
    return {rank: behind for rank, record in begun.items() if len(record) == most and behind}


def _longer(begun: Begun, members: Members) -> Waits:
    found = {}
    for rank, record in begun.items():
        behind = [other for other in members[record[-1][0]] if len(begun.get(other, ())) < len(record)] if record else 0
        if behind:
            found[rank] = sorted(behind)
    return found


def _same_position(begun: Begun, members: Members) -> Waits:
    """Compare entries at the same position of the whole records."""
    found = {}
    for rank, record in begun.items():
        at = len(record) - 1
        others = members[record[-1][0]] if record else ()
        if differ := [other for other in others if list(begun.get(other, ()))[at : at + 1] != [record[-1]]]:
            found[rank] = sorted(differ)
    return found


def _all_others(begun: Begun, members: Members) -> Waits:
    right = waits_for(begun, members)
    return {rank: sorted(other for other in members[begun[rank][-1][0]] if other != rank) for rank in right}


def _if_no_other(begun: Begun, members: Members) -> Waits:
    """Let a rank wait only if no other member has begun the collective."""
    right = waits_for(begun, members)
    return {rank: others for rank, others in right.items() if len(others) == len(members[begun[rank][-1][0]]) - 1}


def _with_itself(begun: Begun, members: Members) -> Waits:
    return {rank: sorted({rank, *others}) for rank, others in waits_for(begun, members).items()}


def _whole_world(begun: Begun, members: Members) -> Waits:
    world = sorted({rank for ranks in members.values() for rank in ranks})
    return waits_for(begun, dict.fromkeys(members, world))


def _of_first_entry(begun: Begun, members: Members) -> Waits:
    """Look up the first collective of each rank in the others' whole records."""
    found = {}
    for rank, record in begun.items():
        one = record[0] if record else None
        if one and (others := [other for other in members[one[0]] if one not in begun.get(other, ())]):
            found[rank] = sorted(others)
    return found


def _first_rank(begun: Begun, members: Members) -> Waits:
    return {rank: others for rank, others in waits_for(begun, members).items() if rank == min(begun)}


def _whole_records(begun: Begun, members: Members) -> Waits:
    """Let a rank wait for each member whose record is not like its own."""
    found = {}
    for rank, record in begun.items():
        others = members[record[-1][0]] if record else ()
        if unlike := sorted(other for other in others if list(begun.get(other, ())) != list(record)):
            found[rank] = unlike
    return found


def _every_rank(begun: Begun, members: Members) -> Waits:
    everyone = {group: list(begun) for group in members}
    return waits_for(begun, everyone)


def _empty_entries(begun: Begun, members: Members) -> Waits:
    return {rank: waits_for(begun, members).get(rank, []) for rank in begun}


def _only_recorded(begun: Begun, members: Members) -> Waits:
    kept = {group: [rank for rank in ranks if rank in begun] for group, ranks in members.items()}
    return waits_for(begun, kept)


def _only_with_entries(begun: Begun, members: Members) -> Waits:
    return _only_recorded({rank: record for rank, record in begun.items() if record}, members)


def _first(begun: Begun, members: Members) -> Waits:
    return {rank: others[:1] for rank, others in waits_for(begun, members).items()}


def _last(begun: Begun, members: Members) -> Waits:
    """Keep the last of the ranks in the order of `members`."""
    return {rank: others[-1:] for rank, others in _as_listed(begun, members).items()}


def _as_listed(begun: Begun, members: Members) -> Waits:
    order = {rank: members[record[-1][0]] for rank, record in begun.items() if record}
    return {rank: sorted(others, key=list(order[rank]).index) for rank, others in waits_for(begun, members).items()}


def _reversed(begun: Begun, members: Members) -> Waits:
    found: Waits = {}
    for rank, others in waits_for(begun, members).items():
        for other in others:
            found.setdefault(other, []).append(rank)
    return {rank: sorted(others) for rank, others in found.items()}


def _roots(begun: Begun, members: Members) -> Waits:
    """Leave out ranks that are stuck themselves."""
    right = waits_for(begun, members)
    kept = {rank: [other for other in others if other not in right] for rank, others in right.items()}
    return {rank: others for rank, others in kept.items() if others}


def _chained(begun: Begun, members: Members) -> Waits:
    """Add the ranks that those ranks wait for."""
    right = waits_for(begun, members)
    found = {}
    for rank in right:
        reached, todo = set(), [rank]
        while todo:
            new = set(right.get(todo.pop(), ())) - reached
            reached |= new
            todo += new
        found[rank] = sorted(reached - {rank})
    return found


def _any_incomplete(begun: Begun, members: Members) -> Waits:
    found = {}
    for rank, record in begun.items():
        others = {other for one in record for other in members[one[0]] if one not in begun.get(other, ())}
        if others:
            found[rank] = sorted(others)
    return found


def _majority(begun: Begun, members: Members) -> Waits:
    """In a mismatch only the ranks of the larger side wait; of equal ones, that of the first member."""
    found = {}
    for rank, others in waits_for(begun, members).items():
        one = begun[rank][-1]
        sides = [[c for c in begun.get(other, ()) if c[:2] == one[:2]] for other in members[one[0]]]
        present = [side[0] for side in sides if side]
        if one == max(present, key=present.count):
            found[rank] = others
    return found


UNCOMPARED = "names and sizes are not compared: a member that has begun this number with others is waited for, too"
MISTAKES = [
    *((UNCOMPARED, mistake) for mistake in (partial(waits_for, same=_parts(0, 1)), partial(waits_for, same=_parts(1)),
                                            partial(waits_for, same=_last_number), _per_group)),
    (
        "only the last entries of two records are compared; the other rank may have completed this collective and "
        "begun another one",
        partial(waits_for, same=_last_alone),
    ),
    (
        "only the other rank's last collective of this group is compared; it may have completed this one and begun "
        "the next",
        partial(waits_for, same=_last_of_group),
    ),
    ("whole records are compared; find the last collective in the record of each other member", _whole_records),
    ("the first collective of a record is looked at; a rank waits in its last one", _of_first_entry),
    ("ranks that are not in the group of the last collective are there; only its members take part", _whole_world),
    ("only the first rank is looked at; perhaps the return is inside the loop", _first_rank),
    ("the number of elements is not compared", partial(waits_for, same=_parts(0, 1, 2))),
    ("the name is not compared", partial(waits_for, same=_parts(0, 1, 3))),
    ("the group is not compared: collectives of other groups have the same numbers, names and sizes",
     partial(waits_for, same=_parts(1, 2, 3))),
    ("the number is not compared: an earlier collective of the group with the same name and size is another one",
     partial(waits_for, same=_parts(0, 2, 3))),
    ("only name and size are compared; the same collective also has the same group and number",
     partial(waits_for, same=_parts(2, 3))),
    ("the lengths of whole records are compared; a record contains the collectives of all the rank's groups",
     _longer),
    ("the lengths of whole records are compared; a record contains the collectives of all the rank's groups", _longest),
    ("collectives are compared by their position in the whole record; find them by group and number",
     _same_position),
    ("a rank waits for all other members of the group; leave out those that have begun the same collective",
     _all_others),
    ("a rank waits only if no other member has begun the collective; it waits until all have", _if_no_other),
    ("a rank is in its own list; it has begun the collective and does not wait for itself", _with_itself),
    ("the ranks of `begun` are compared, not the members of the group, among which killed ranks are too", _every_rank),
    ("only a mismatch counts: members that have not begun this number are waited for, too",
     partial(waits_for, same=_unlike)),
    ("ranks that wait for nobody have an empty list; leave them out", _empty_entries),
    ("ranks without a record are skipped: a member that is missing in `begun` is waited for, too", _only_recorded),
    ("members that have begun nothing are skipped, with an empty record or without one; they are waited for, too",
     _only_with_entries),
    ("only one of the ranks is there; a rank waits for all that are missing", _first),
    ("only one of the ranks is there; a rank waits for all that are missing", _last),
    ("the dict is turned around: its keys are the ranks that wait, its values those that they wait for", _reversed),
    ("ranks that wait themselves are left out; they are waited for as well", _roots),
    ("the lists contain ranks further down the chain; list only members of the last collective's group", _chained),
    ("earlier collectives of the record count too; a rank waits only in its last one", _any_incomplete),
    ("in a mismatch only the majority waits; the other side waits for it, too", _majority),
]  # fmt: skip
# Causes of errors in cases with a rank of this kind.
KILLED = ((r"KeyError: \d+", "a rank that was killed is missing in `begun`; begun.get(rank, []) is then its record"),)
NEVER_STARTED = (
    (r"IndexError: list index out of range", "a record may be empty: its rank has begun nothing and waits for nobody"),
)
