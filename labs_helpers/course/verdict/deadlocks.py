"""Explain a deadlock of practice ranks: infer the likely cause from what each rank waits for."""

from collections.abc import Sequence

from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.practice import Deadlock
from labs_helpers.practice.mailbox import COLLECTIVE

ONE_RANK = "some ranks call it and others do not: the call is inside an if, or after a return, that not all ranks reach"


def describe_deadlock(case: str, deadlock: Deadlock, stuck: str | Sequence[str] = ()) -> Wrong:
    """Return `deadlock`, which occurred in `case`, as a Wrong with its likely cause. stuck: the cause, if the check
    knows it."""
    cause = stuck or next((sentence for sentence, fits in _causes(deadlock) if fits), "")
    requests = ""
    if deadlock.requests and not cause:
        requests = f"\nRequests without a wait so far: {'; '.join(map(str, deadlock.requests[:4]))}."
    return Wrong(
        case,
        f"a deadlock: {deadlock}{requests}",
        cause=cause,
        advice=("find out which rank waits for which other rank, and why."),
    )


def _causes(deadlock: Deadlock):
    """Yield (cause, whether it fits); the first that fits counts."""
    ranks, chain = deadlock.ranks, [deadlock.ranks[rank] for rank in deadlock.chain]
    waits = [wait for one in ranks for wait in one.waits]
    if any(wait.kind == COLLECTIVE for wait in waits):
        yield ONE_RANK, any(one.ended for one in ranks)
        return
    other_tag = any(deadlock.other_tag(wait) is not None for wait in waits)
    yield "a message with a different tag has arrived: the tags of both sides must match, in the same order", other_tag
    less = "a step, a message or a barrier is missing there, or the others wait for the wrong rank"
    yield f"the rank that the others wait for has returned too early: {less}", chain[-1].ended
    both = [one for one in ranks if [wait.kind for wait in one.waits] == ["send", "recv"]]
    fit = "senders and receivers do not match: the rank that you send to must receive from you in the same step"
    yield fit, any(one.waits[1].peer is not None for one in both)
    itself = deadlock.chain == deadlock.chain[:1] * 2
    copies = "a rank that calls a blocking Send or Recv with itself waits forever; copy the data instead"
    yield copies, itself and len(ranks) == 1
    me = deadlock.chain[0]
    yield (
        f"with {len(ranks)} ranks, no rank needs to send to itself: rank {me} needs a separate branch, or it "
        "computes the wrong rank",
        itself,
    )
    barrier = any(one.call == "Barrier" for one in chain)
    yield "some ranks wait in a barrier that another rank reaches only after they have continued", barrier
    # With a pending receive of a Sendrecv or an Irecv, the order of the calls is not the cause.
    received = any(one.call == "Sendrecv" for one in ranks) or any(one.kind == "recv" for one in deadlock.requests)
    if not received and not any(one.ended for one in ranks):
        kinds = {wait.kind for wait in waits}
        in_turns = "use Sendrecv, which does both at the same time, or let some ranks receive first"
        yield f"all ranks send first, and none receives: {in_turns}", kinds == {"send"}
        yield "all ranks receive first, and none sends", kinds == {"recv"} and not deadlock.sends
        yield fit, all(_is_single(one) for one in ranks) and any(_look_past_each_other(one, ranks) for one in ranks)
    sending = {one.call for one in chain} == {"Send"}
    yield (
        "each of these ranks sends to the next, and none of them receives: a Recv is missing or comes too late",
        sending,
    )


def _is_single(one) -> bool:
    return len(one.waits) == 1 and one.call in ("Send", "Recv")


def _look_past_each_other(one, ranks) -> bool:
    """Tell whether the rank sends to a rank that waits for a message from a third one."""
    wait = one.waits[0]
    theirs = ranks[wait.peer].waits[0] if wait.kind == "send" else wait
    return theirs.kind == "recv" and wait.kind == "send" and theirs.peer not in (None, one.rank)
