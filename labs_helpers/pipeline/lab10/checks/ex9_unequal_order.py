"""Check the transfer exercise of lab 10: orders for unequal stages, judged by the simulator."""

from copy import deepcopy

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, likely
from labs_helpers.pipeline.lab10.checks.orders import expect_order
from labs_helpers.pipeline.lab10.checks.unequal_mistakes import MISTAKES
from labs_helpers.pipeline.lab10.own_schedule import as_schedule
from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.schedules import one_f_one_b
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import InvalidSchedule, check, peak_stashes

SHARE = 0.45  # of the time by which 1F1B exceeds the bound
CASES = (  # name, times (F, I, W) per rank, micro-batches, stashes
    ("4 equal stages", [(1.0, 1.2, 0.8)] * 4, 10, [7, 7, 7, 7]),
    ("a slow last stage", [(1.0, 1.1, 0.7)] * 3 + [(1.5, 1.6, 1.4)], 8, [7, 7, 7, 7]),
    ("a slow first stage", [(1.5, 1.5, 1.2)] + [(1.0, 1.1, 0.8)] * 3, 8, [7, 7, 7, 7]),
    ("a slow second stage", [(1.0, 1.0, 0.9), (1.6, 1.7, 1.3), *[(1.0, 1.0, 0.9)] * 2], 9, [7, 7, 7, 7]),
    ("2 stages", [(1.3, 1.4, 1.1), (1.0, 1.0, 0.6)], 6, [3, 2]),
    ("a fast first stage", [(0.5, 0.5, 0.4), (2.0, 2.0, 0.8), *[(2.0, 1.6, 0.8)] * 2], 9, [5, 5, 5, 5]),
    ("two fast stages", [(1.0, 1.2, 0.8), (1.0, 1.5, 0.4), *[(0.5, 0.4, 0.4)] * 2], 9, [5, 5, 5, 5]),
    ("little memory", [(1.4, 1.5, 1.0), *[(1.0, 1.1, 0.8)] * 2, (1.2, 1.3, 1.1)], 12, [6, 5, 5, 4]),
    ("6 stages", [(1.0, 1.1, 0.8)] * 5 + [(1.3, 1.3, 1.2)], 18, [11] * 6),
)  # fmt: skip
ADVICE = "draw your timeline: which ready action would have filled the first wait?"
ERRORS = (
    (r"KeyError: \('(F|I|W)'", "an action's inputs may not exist yet: leave it out until they do"),
    (r"^ValueError: min\(\) (arg|iterable)", "no action is ready: an input or a free stash is not counted"),
)


@exercise("10/9", "transfer: unequal stages", points=50, minutes=50)
def unequal_order(student):
    for name, times, micro_batches, stashes in CASES:
        given = times, micro_batches, stashes
        orders = _orders(student, name, given)

        def wrong(found, orders=orders, given=given, name=name):
            causes = likely(((said, mistake(*given)) for said, mistake in MISTAKES), orders.__eq__)
            return Wrong(name, found, cause=causes or _idle(orders, given), advice=ADVICE)

        schedule = as_schedule(orders, len(times), micro_batches)
        try:
            check(complete(schedule))
        except InvalidSchedule as error:
            raise wrong(f"these orders cannot run: {error}") from None
        for rank, (held, most) in enumerate(zip(peak_stashes(schedule), stashes, strict=True)):
            if held > most:
                raise wrong(f"rank {rank} holds up to {held} stashes; it may hold {most}")
        seconds, bound, theirs = (function(*given, schedule) for function in (_seconds, _bound, _one_f_one_b))
        share = (seconds - bound) / (theirs - bound)
        told = f"{seconds:.1f}, the bound is {bound:.1f} and 1F1B takes {theirs:.1f}"
        if share > SHARE:
            raise wrong(f"the step takes {told}: it exceeds the bound by {share:.0%} of the time by which 1F1B does, "
                        f"and at most {SHARE:.0%} is asked for")  # fmt: skip
        yield f"{name}: the step takes {told}"


def _orders(student, name, given):
    """Return the answer's list for each rank. Raises Wrong for another form, an error, and changed arguments."""
    own = deepcopy(given)
    try:
        answer = student(*own)
        if own != given:
            raise Wrong(name, "the function must not change its arguments")
        if not isinstance(answer, list | tuple) or len(answer) != len(given[0]):
            raise Wrong(name, f"returned {answer!r:.60} instead of a list of {len(given[0])} lists, one per rank")
        return [expect_order(f"rank {rank}'s list", order, 2, "FIW") for rank, order in enumerate(answer)]
    except Wrong as wrong:
        wrong.case = wrong.case or name
        raise
    except Exception as error:
        raise describe_error(student, error, name, ERRORS) from None


def _times(times):
    forward, of_input, weight = zip(*times, strict=True)
    return Times(forward, of_input, weight)


def _seconds(times, micro_batches, stashes, schedule):
    return simulate(schedule, _times(times)).seconds


def _bound(times, micro_batches, stashes, schedule):
    return micro_batches * max(map(sum, times))


def _one_f_one_b(times, micro_batches, stashes, schedule):
    return simulate(one_f_one_b(len(times), micro_batches), _times(times)).seconds


def _idle(orders, given):
    """Return the first wait that a later W of the same rank would have fitted into, in a sentence, or ''."""
    times, micro_batches, _ = given
    try:
        bars = simulate(as_schedule(orders, len(times), micro_batches), _times(times)).bars
    except InvalidSchedule:
        return ""
    for rank, (_, _, weight) in enumerate(times):
        mine = [bar for bar in bars if bar.rank == rank]
        for place, (before, after) in enumerate(zip(mine, mine[1:], strict=False)):
            done = {bar.action.micro for bar in mine[: place + 1] if bar.action.kind == "I"}
            later = [bar.action.micro for bar in mine[place + 1 :] if bar.action.kind == "W"]
            fits = [micro for micro in later if micro in done]
            if fits and after.start - before.stop >= weight:
                gap = f"from {before.stop:.1f} to {after.start:.1f}"
                return f"rank {rank} waits {gap}, but W{fits[0]} could run then: it takes {weight:g}"
    return ""
