"""Exercise 6 of lab 08: a bucket is sent when it and those before it are full, and the rest in finish()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.messages.distributed import TOUCHED
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.bucket_sums import causes, sums_of
from labs_helpers.data_parallel.lab08.checks.bucket_times import expect_in_order
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import OWN, OWN_PART, STALE, ZERO
from labs_helpers.data_parallel.lab08.checks.gradients import expect_means, gradients
from labs_helpers.data_parallel.lab08.checks.hooked import Pass, Step, arrivals, expect_asynchronous, train
from labs_helpers.data_parallel.lab08.checks.replicas import MIXED, PLAIN, TIED, TRANSPOSED, UNUSED, Part, draw, trained

ORDER = "buckets have to start in one order on all ranks: one that is complete waits for those before it"
ABSENT = "a bucket with an unused parameter is never complete; finish() sends what backward has not"
PAUSED = "within no_sync() the hook counts or sends as well: it returns there at once"
HALF = ("last.bias", "last.weight"), ("adapter.bias",), ("adapter.weight", "first.bias"), ("first.weight",)
TURNED = "finish() sends what is left in another order than backward"
LAST = ("last.bias", "last.weight"), ("first.bias", "first.weight")


class Case(NamedTuple):
    name: str
    size: int
    parts: Sequence[Part]
    buckets: Sequence[Sequence[str]]
    stuck: str | tuple[str, ...] = "what is sent depends on the rank"
    late: Sequence[Sequence[str]] = ()  # of each rank
    micro_batches: int = 1
    groups: Sequence[Sequence[int]] | None = None
    special: Mapping[tuple[str, str], str] = {}
    interrupted: bool = False  # an exception ends a first `with no_sync():`


NOT_SENT = "the last bucket is never sent: finish() sends what backward has not"
CASES = (
    Case(
        "4 ranks, two buckets, three steps",
        4,
        PLAIN,
        LAST,
        special={("the last bucket", OWN): NOT_SENT, ("the last bucket", OWN_PART): NOT_SENT},
    ),
    Case(
        "a weight that two layers share",
        2,
        TIED,
        (("last.bias", "last.weight", "first.bias"), ("first.weight", "embedding.weight")),
    ),
    Case(
        "4 ranks, a parameter that lies transposed",
        4,
        TRANSPOSED,
        (("last.bias", "last.weight", "middle.weight"), ("first.bias",), ("first.weight",)),
    ),
    Case(
        "gradients that arrive in another order on rank 1",
        2,
        PLAIN,
        LAST,
        ORDER,
        late=[(), ("last.weight",)],
    ),
    Case("parameters that every other rank has not used", 3, UNUSED, HALF, (ABSENT, TURNED)),
    Case("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, PLAIN, LAST, groups=[(4, 0, 2), (3, 1)]),
    Case(
        "three dtypes",
        2,
        MIXED,
        (("last.bias", "last.weight"), ("norm.bias",), ("end.scale", "norm.weight"), ("first.bias", "first.weight")),
    ),
    Case("three micro-batches, two of them in no_sync()", 2, UNUSED, HALF, PAUSED, micro_batches=3),
    Case("after an exception in no_sync()", 2, PLAIN, LAST, interrupted=True),
)
COUNTS = (
    "bucket.missing is not set back in finish(): from the second step on buckets are sent "
    "before they are full, or not at all"
)
CLEARED = "under_way is not emptied in finish()"
ONCE = "parameter.grad = view is set once; it has to be in each step: backward makes a new .grad after zero_grad()"
READ = "the gradient lay in its view already, and that was set to 0 before it was read"
OLD = "a .grad that is not None need not be of this step: zero_grad(set_to_none=False) leaves zeros in the view"
INTERRUPTED = "an exception in the `with` block leaves no_sync() switched on: try: yield, finally: off again"
ERRORS = (
    (
        r"generator didn't yield|'NoneType' object is not an iterator",
        "a context manager needs one `yield`, on every way through it",
    ),
    (r"zip\(\) argument", NOT_SENT),
    (r"IndexError", "all buckets may have been sent already: compare len(under_way) with len(buckets) first"),
    (
        TOUCHED,
        "a bucket is written to while it is under way: sent before it was full, or divided before wait()",
    ),
)


@exercise("08/6", "buckets that overlap", points=25, minutes=25, reference=exercises.bucketed)
def bucketed(student):
    comparison = gradients()
    for case in CASES:
        yield from _check(student, case, comparison)


def _check(student, case, comparison):
    def wrap(model, group):
        parameters = trained(model)
        buckets = [[parameters[name] for name in names] for names in case.buckets]
        pair = expect_tuple(case.name, student(model, group, buckets), "finish", "no_sync")
        if not all(map(callable, pair)):
            raise Wrong(
                case.name,
                f"returned {pair!r:.80}; the functions finish and no_sync are asked for",
                cause="without brackets it is the function",
            )
        if getattr(pair[0], "__name__", "") == "no_sync":
            raise Wrong(case.name, "returned no_sync first", cause="(finish, no_sync), in this order")
        if case.interrupted:
            _interrupt(pair[1])
        return pair

    steps = [_step(case, number) for number in range(3)]
    known = [("changed a tensor of .* between", PAUSED), *ERRORS] if case.micro_batches > 1 else ERRORS
    run = train(
        case.name,
        student,
        wrap,
        case.parts,
        steps,
        groups=case.groups,
        stuck=case.stuck,
        errors=known,
        later={1: (COUNTS, CLEARED), 2: (OLD,)} if case is CASES[0] else {},
    )
    scopes = {"the first bucket": set(case.buckets[0]), "the last bucket": set(case.buckets[-1])}
    groups = case.groups or [range(case.size)]
    for number, step in enumerate(steps):
        before = steps[number - 1].passes if number else None
        special = dict(case.special)
        if number:
            nothing_sent = not any(one.sent for one in arrivals(run, 0)[number])
            special |= {(scope, STALE): COUNTS for scope in ("", "the last bucket")}
            special[("", OWN)] = CLEARED if nothing_sent else ONCE
        if not steps[number - 1].set_to_none:
            special[("", ZERO)] = READ
        expect_means(
            comparison,
            f"{case.name}, step {number + 1}",
            [left[number][0] for left in run.results],
            sums_of(step.passes),
            groups,
            case.parts,
            before=sums_of(before) if before else None,
            scopes=scopes,
            special=special,
            more=causes(case, step.passes, before, groups),
        )
    _expect_views(case, run)
    for rank in range(case.size):
        counts = INTERRUPTED if case.interrupted else COUNTS
        expect_in_order(case, rank, arrivals(run, rank), steps, counts)
    expect_asynchronous(case.name, run)
    yield f"{case.name}: {len(case.buckets)} messages per step in place of {sum(map(len, case.buckets))}"


def _interrupt(no_sync):
    try:
        with no_sync():
            raise InterruptedError
    except InterruptedError:
        pass


def _step(case, number):
    passes = []
    for i in range(case.micro_batches):
        own = [draw(case.parts, rank, step=10 * number + i, used=(number + i) % 2 == 0) for rank in range(case.size)]
        passes.append(Pass(own, case.late, sync=i == case.micro_batches - 1))
    return Step(passes, set_to_none=number != 1 or case.parts is TRANSPOSED)


def _expect_views(case, run):
    for rank, steps in enumerate(run.results):
        for number, (_, memory) in enumerate(steps):
            for names in case.buckets:
                if len({memory[name] for name in names}) > 1:
                    cause = (
                        "parameter.grad = view has to be set in each step: backward makes a new .grad after "
                        "zero_grad(), and so does p.grad = p.grad / n"
                    )
                    raise Wrong(
                        f"{case.name}, step {number + 1}",
                        f"the values are right, but rank {rank}'s {' and '.join(names)} do not lie in one flat tensor",
                        cause=cause,
                    )
