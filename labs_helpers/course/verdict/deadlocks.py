"""Why practice ranks wait for each other: the causes that are left by what each of them waits for."""

from collections.abc import Sequence

from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.practice import Deadlock
from labs_helpers.practice.mailbox import COLLECTIVE

ONE_RANK = "some ranks call it and others do not: it stands in an if, or behind a return, that not all ranks reach"


def describe_deadlock(case: str, deadlock: Deadlock, stuck: str | Sequence[str] = ()) -> Wrong:
    """`deadlock`, of practice ranks in `case`, with its cause if there is one; stuck: the cause that a check knows."""
    cause = stuck or next((sentence for sentence, fits in _causes(deadlock) if fits), "")
    requests = ""
    if deadlock.requests and not cause:
        requests = f"\nNot waited for so far: {'; '.join(map(str, deadlock.requests[:4]))}."
    return Wrong(case, f"a deadlock: {deadlock}{requests}", cause=cause, advice="who waits for whom, and why?")


def _causes(deadlock: Deadlock):
    """(cause, whether it fits): the first that fits counts."""
    ranks, chain = deadlock.ranks, [deadlock.ranks[rank] for rank in deadlock.chain]
    waits = [wait for one in ranks for wait in one.waits]
    if any(wait.kind == COLLECTIVE for wait in waits):
        yield ONE_RANK, any(one.ended for one in ranks)
        return
    other_tag = any(deadlock.other_tag(wait) is not None for wait in waits)
    yield "a message with another tag is there: the tags of both sides have to match, in the same order", other_tag
    less = "a step, a message or a barrier is missing there, or another rank was meant"
    yield f"the rank waited for has ended and does less than is expected: {less}", chain[-1].ended
    both = [one for one in ranks if [wait.kind for wait in one.waits] == ["send", "recv"]]
    fit = "who sends and who receives do not fit: the rank that is sent to has to receive from the sender, in that step"
    yield fit, any(one.waits[1].peer is not None for one in both)
    itself = deadlock.chain == deadlock.chain[:1] * 2
    copies = "a blocking Send or Recv whose other side is the rank itself waits for ever; copy instead"
    yield copies, itself and len(ranks) == 1
    me = deadlock.chain[0]
    yield (
        f"with {len(ranks)} ranks none has to send to itself: rank {me} needs a branch of its own, or the rank that it "
        "works out is the wrong one",
        itself,
    )
    barrier = any(one.call == "Barrier" for one in chain)
    yield "some ranks wait in a barrier that another cannot reach before they have gone on", barrier
    # Where the receive of a Sendrecv or of an Irecv is there as well, it is not the order of the calls.
    received = any(one.call == "Sendrecv" for one in ranks) or any(one.kind == "recv" for one in deadlock.requests)
    if not received and not any(one.ended for one in ranks):
        kinds = {wait.kind for wait in waits}
        in_turns = "Sendrecv does both at once; or some ranks receive first"
        yield f"everybody sends first, and nobody receives. {in_turns}", kinds == {"send"}
        yield "everybody receives first, and nobody sends", kinds == {"recv"} and not deadlock.sends
        yield fit, all(_is_single(one) for one in ranks) and any(_look_past_each_other(one, ranks) for one in ranks)
    sending = {one.call for one in chain} == {"Send"}
    yield "each of these sends to the next, and none of them receives: a Recv is missing, or comes too late", sending


def _is_single(one) -> bool:
    return len(one.waits) == 1 and one.call in ("Send", "Recv")


def _look_past_each_other(one, ranks) -> bool:
    """Whether it sends to a rank that waits for a message from another one."""
    wait = one.waits[0]
    theirs = ranks[wait.peer].waits[0] if wait.kind == "send" else wait
    return theirs.kind == "recv" and wait.kind == "send" and theirs.peer not in (None, one.rank)
