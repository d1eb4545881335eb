"""Why practice ranks wait for each other: the causes that are left by what each of them waits for."""

from labs_helpers.collectives.practice import Deadlock
from labs_helpers.course.verdict import Wrong


def describe_deadlock(case: str, deadlock: Deadlock) -> Wrong:
    cause = next((sentence for sentence, fits in _causes(deadlock) if fits), "")
    open_requests = [str(one) for one in deadlock.requests]
    also = f"\nNot waited for so far: {'; '.join(open_requests[:4])}{'; …' * (len(open_requests) > 4)}."
    found = f"a deadlock: {deadlock}{also if open_requests and not cause else ''}"
    return Wrong(case, found, cause=cause, advice="look at who expects whom in the lines above.")


def _causes(deadlock: Deadlock):
    """(cause, whether it fits): the first that fits counts."""
    ranks, chain = deadlock.ranks, [deadlock.ranks[rank] for rank in deadlock.chain]
    waits = [wait for one in ranks for wait in one.waits]
    yield (
        "a message is there, with another tag than the receive asks for: the tags of both sides have to be the same, "
        "and come in the same order",
        any(deadlock.other_tag(wait) is not None for wait in waits),
    )
    yield (
        "one side does less than the other expects: a step, a message or a barrier is missing there, or the rank "
        "waited for is not the one that was meant",
        chain[-1].ended,
    )
    yield (
        "who sends and who receives do not fit: when one rank's dest is another, that one's source has to be the "
        "first, in the same step. Look at the lines above",
        any([wait.kind for wait in one.waits] == ["send", "recv"] and one.waits[1].peer is not None for one in ranks),
    )
    yield (
        "a blocking Send or Recv whose other side is the rank itself waits for ever; copy instead",
        deadlock.chain == deadlock.chain[:1] * 2,
    )
    yield (
        "some ranks wait in a barrier that another cannot reach before they have gone on",
        any(one.call == "Barrier" for one in chain),
    )
    # The receive of a Sendrecv, or of an Irecv, is there as well: then it is not the order of the calls.
    if any(one.call == "Sendrecv" for one in ranks) or any(one.kind == "recv" for one in deadlock.requests):
        return
    if not any(one.ended for one in ranks):
        kinds = {wait.kind for wait in waits}
        yield (
            "everybody sends first, and nobody receives. Sendrecv does both at once; or some ranks receive first",
            kinds == {"send"},
        )
        yield "everybody receives first, and nobody sends", kinds == {"recv"} and not deadlock.sends
