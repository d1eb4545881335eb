"""Check exercise 6 of lab 08: a bucket is sent when it and all earlier ones are full; finish() sends the rest."""

from contextlib import suppress
from functools import partial
from itertools import product

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.messages.distributed import TOUCHED
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import OWN, OWN_PART, STALE, ZERO, means
from labs_helpers.data_parallel.lab08.checks.gradients import gradients
from labs_helpers.data_parallel.lab08.checks.hooked import Pass, Step, Training, expect_steps, sums_of, train
from labs_helpers.data_parallel.lab08.checks.replicas import MIXED, PLAIN, TIED, TRANSPOSED, UNUSED, draw, trained
from labs_helpers.data_parallel.lab08.checks.sent_times import arrivals, expect_asynchronous, expect_in_order

EXCEPTION = "after an exception in no_sync()"
LAST = ("last.bias", "last.weight"), ("first.bias", "first.weight")
HALF = ("last.bias", "last.weight"), ("adapter.bias",), ("adapter.weight", "first.bias"), ("first.weight",)
SHARED = ("last.bias", "last.weight", "first.bias"), ("first.weight", "embedding.weight")
THREE = ("last.bias", "last.weight", "middle.weight"), ("first.bias",), ("first.weight",)
DTYPES = ("last.bias", "last.weight"), ("norm.bias",), ("end.scale", "norm.weight"), ("first.bias", "first.weight")
ORDER = "all ranks have to send the buckets in the same order: a complete bucket waits for those before it"
ABSENT = "a bucket with an unused parameter is never complete; finish() has to send it"
TURNED = "finish() sends the remaining buckets in a different order than backward"
PAUSED = "in no_sync(), backward only accumulates: the hook returns immediately, and the end of the block sends nothing"
COUNTED = "arrivals in no_sync() are counted too, or sending is not switched on again after the block"
NOT_SENT = "the last bucket is never sent: finish() has to send the buckets that backward has not"
COUNTS = "finish() does not reset bucket.missing: in later steps, buckets are sent before they are full, or never"
CLEARED = "finish() does not clear under_way"
ONCE = "parameter.grad = view is set only once; set it in each step: after zero_grad(), backward makes a new .grad"
NEW = "set parameter.grad = view in each step: backward makes a new .grad, and so does p.grad = p.grad / n"
READ = "the gradient was already in its view, which was set to 0 before it was read"
OLD = "a .grad other than None may be from an earlier step: zero_grad(set_to_none=False) leaves zeros in the view"
INTERRUPTED = "an exception in the `with` block leaves sending off: `yield` in a try, and switch it on in finally"
NONE_FULL = "no bucket becomes full during backward: count missing down first, and compare it afterwards"
CASES = (  # name, ranks, parameters, buckets, and settings of `_training`
    ("4 ranks, two buckets, three steps", 4, PLAIN, LAST, {"later": {1: (COUNTS, CLEARED), 2: (OLD,)}}),
    ("a weight that two layers share", 2, TIED, SHARED, {}),
    ("4 ranks, a transposed parameter", 4, TRANSPOSED, THREE, {"set_to_none": True}),
    (
        "gradients that arrive in a different order on rank 1",
        2,
        PLAIN,
        LAST,
        {"stuck": ORDER, "late": [(), ("last.weight",)]},
    ),
    ("parameters that every other rank has not used", 3, UNUSED, HALF, {"stuck": (ABSENT, TURNED)}),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, PLAIN, LAST, {"groups": [(4, 0, 2), (3, 1)]}),
    ("three dtypes", 2, MIXED, DTYPES, {}),
    ("three micro-batches, two of them in no_sync()", 2, UNUSED, HALF, {"stuck": PAUSED, "batches": 3}),
    (EXCEPTION, 2, PLAIN, LAST, {}),
)
ERRORS = (
    (r"didn't yield|is not an iterator", "a context manager has to reach exactly one `yield` on every path"),
    (r"zip\(\) argument", NOT_SENT),
    (r"IndexError", "all buckets may have been sent already: compare len(under_way) with len(buckets) first"),
    (TOUCHED, "a bucket changes while it is under way: it was sent before it was full, or divided before wait()"),
)


@exercise("08/6", "buckets that overlap", points=25, minutes=25, reference=exercises.bucketed)
def bucketed(student):
    comparison = gradients()
    for name, size, parts, buckets, settings in CASES:
        training = _training(name, size, parts, buckets, **settings)
        paused = len(training.steps[0].passes) > 1
        known = [("changed a tensor of .* between", PAUSED), *ERRORS] if paused else ERRORS
        run = train(training, student, partial(_wrap, training), known)
        scopes = {"the first bucket": set(buckets[0]), "the last bucket": set(buckets[-1])}
        special, more = partial(_special, training, run), partial(_causes, training)
        expect_steps(comparison, training, run, special, more, scopes=scopes)
        late = (COUNTED, COUNTED) if paused else (INTERRUPTED, INTERRUPTED) if name == EXCEPTION else ("", COUNTS)
        _expect_views(training, run)
        for rank in range(size):
            expect_in_order(training, run, rank, "bucket", ["a bucket is sent twice"] * 2, late, NONE_FULL)
        expect_asynchronous(name, run, CLEARED)
        yield f"{name}: {len(buckets)} messages per step instead of {sum(map(len, buckets))}"


def _training(name, size, parts, buckets, late=(), batches=1, set_to_none=False, **settings):
    """Return three steps of `batches` micro-batches, the last outside no_sync(). late: per rank, the last arrivals."""

    def own(number, i):
        return [draw(parts, rank, step=10 * number + i, used=(number + i) % 2 == 0) for rank in range(size)]

    passes = [[Pass(own(number, i), late, i == batches - 1) for i in range(batches)] for number in range(3)]
    steps = [Step(some, set_to_none or number != 1) for number, some in enumerate(passes)]
    return Training(name, size, parts, steps, buckets, **settings)


def _wrap(training, answer, model, group):
    parameters = trained(model)
    buckets = [[parameters[name] for name in names] for names in training.buckets]
    pair = expect_tuple(training.name, answer(model, group, buckets), "finish", "no_sync")
    if not all(map(callable, pair)):
        found = f"returned {pair!r:.80} instead of the functions finish and no_sync"
        raise Wrong(training.name, found, cause="write the functions' names without parentheses")
    if getattr(pair[0], "__name__", "") == "no_sync":
        raise Wrong(training.name, "returned no_sync first", cause="return (finish, no_sync), in this order")
    if training.name == EXCEPTION:
        with suppress(InterruptedError), pair[1]():
            raise InterruptedError
    return pair


def _special(training, run, number):
    """Return sentences that are more specific than those of `mistakes`, for the gradients of one step."""
    not_sent = {("the last bucket", said): NOT_SENT for said in (OWN, OWN_PART)}
    if not number:
        return not_sent
    sent = any(one.sent for one in arrivals(run, 0)[number])
    stale = {(scope, STALE): COUNTS for scope in ("", "the last bucket")}
    read = {} if training.steps[number - 1].set_to_none else {("", ZERO): READ}
    return not_sent | stale | read | {("", OWN): ONCE if sent else CLEARED}


def _causes(training, number):
    """Yield a sentence and the gradients that a mistake of this exercise leaves."""
    passes, groups = training.steps[number].passes, training.groups or [range(training.size)]

    def mean(own):
        return means(own, groups, training.parts)

    def times(factor):
        """Return the right mean times factor(number of ranks)."""
        right = mean(sums_of(passes))
        return {r: {n: x * factor(len(group)) for n, x in right[r].items()} for group in groups for r in group}

    yield "divided by the number of buckets, not of ranks", times(lambda ranks: ranks / len(training.buckets))
    if len(passes) > 1:
        lost = "only the last backward pass counts: the gradients accumulated in no_sync() are lost"
        yield lost, mean(sums_of(passes[-1:]))
        within = "only the backward passes in no_sync() count: the last one is missing"
        yield within, mean(sums_of(passes[:-1]))
        yield "the mean over the backward passes, but their sum is wanted", times(lambda ranks: 1 / len(passes))
    elif number:
        old = mean(sums_of(training.steps[number - 1].passes))
        for share in (1, training.size):
            kept = [
                {n: old[r][n] / share if x is None else x for n, x in own.items()}
                for r, own in enumerate(passes[0].own)
            ]
            yield (
                "the view still holds the mean of the previous step: if .grad is None, call view.zero_()",
                mean(kept),
            )


def _expect_views(training, run):
    for (rank, steps), names in product(enumerate(run.results), training.buckets):
        for number, (_, memory) in enumerate(steps, 1):
            if len({memory[name] for name in names}) > 1:
                found = f"rank {rank}'s {' and '.join(names)} are not views of one flat tensor"
                raise Wrong(f"{training.name}, step {number}", f"the values are right, but {found}", cause=NEW)
