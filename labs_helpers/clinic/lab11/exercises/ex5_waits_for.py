"""Lab 11, exercise 5: who waits for whom, from the ranks' flight recorders."""


def waits_for(begun, members):
    """Read a deadlock: return a dict from each waiting rank to the ranks that it waits for.

    begun: rank → the collectives that it has begun, in order, each a tuple (group, number, name,
    elements), such as ("dp", 3, "all_reduce", 4096). As in PyTorch's flight recorder, number counts
    the collectives of this group on this rank, from 1. members: group → its ranks, in any order; a
    rank may belong to several groups.
    The collective (group, number) is complete when all members of the group have begun it with the
    same name and the same number of elements. A rank begins its next collective only when its last
    one is complete. A rank waits if the last one in its record is not complete. It waits for those
    members of the group that have not begun this number, and for those that have begun it with
    another name or number of elements than the rank itself: in a mismatch both sides wait.
    A rank that was killed left no record: it is missing in `begun`, and counts as if it had begun
    nothing. A record may be empty. A rank that waits for nobody has no entry in the result. The
    values are lists in ascending order. Do not change the arguments.
    """
    # 1. Which collective does a rank wait in, if any? Which ranks have to take part in it?
    # 2. How do you recognize the same collective in another rank's record? The other rank may have
    #    begun collectives of other groups before and after it.
    ### BEGIN SOLUTION
    found = {}
    for rank, record in begun.items():
        if record:
            last = record[-1]
            missing = [other for other in members[last[0]] if last not in begun.get(other, [])]
            if missing:
                found[rank] = sorted(missing)
    return found
    ### END SOLUTION
