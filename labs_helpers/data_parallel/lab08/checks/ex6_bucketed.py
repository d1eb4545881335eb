"""Exercise 6 of lab 08: a bucket is sent when it and those before it are full, and the rest in finish()."""

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
ORDER = "buckets have to start in one order on all ranks: one that is complete waits for those before it"
ABSENT = "a bucket with an unused parameter is never complete; finish() sends what backward has not"
TURNED = "finish() sends what is left in another order than backward"
PAUSED = (
    "within no_sync() backward adds up and no more: the hook returns at once, and the end of the block sends nothing"
)
COUNTED = "what arrives within no_sync() is counted as well, or sending is not switched on again after it"
NOT_SENT = "the last bucket is never sent: finish() sends what backward has not"
COUNTS = (
    "bucket.missing is not set back in finish(): in later steps buckets are sent before they are full, or not at all"
)
CLEARED = "under_way is not emptied in finish()"
ONCE = "parameter.grad = view is set once; it has to be in each step: backward makes a new .grad after zero_grad()"
NEW = "set parameter.grad = view in each step: backward makes a new .grad, and so does p.grad = p.grad / n"
READ = "the gradient lay in its view already, and that was set to 0 before it was read"
OLD = "a .grad that is not None need not be of this step: zero_grad(set_to_none=False) leaves zeros in the view"
INTERRUPTED = "an exception in the `with` block leaves no_sync() switched on: try: yield, finally: off again"
NONE_FULL = "no bucket is found full during backward: is missing counted down, and compared after that?"
CASES = (  # name, ranks, parameters, buckets, and settings of `_training`
    ("4 ranks, two buckets, three steps", 4, PLAIN, LAST, {"later": {1: (COUNTS, CLEARED), 2: (OLD,)}}),
    ("a weight that two layers share", 2, TIED, SHARED, {}),
    ("4 ranks, a parameter that lies transposed", 4, TRANSPOSED, THREE, {"set_to_none": True}),
    (
        "gradients that arrive in another order on rank 1",
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
    (r"didn't yield|is not an iterator", "a context manager needs one `yield`, on every way through it"),
    (r"zip\(\) argument", NOT_SENT),
    (r"IndexError", "all buckets may have been sent already: compare len(under_way) with len(buckets) first"),
    (TOUCHED, "a bucket is written to while it is under way: sent before it was full, or divided before wait()"),
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
        yield f"{name}: {len(buckets)} messages per step in place of {sum(map(len, buckets))}"


def _training(name, size, parts, buckets, late=(), batches=1, set_to_none=False, **settings):
    """Three steps of so many micro-batches, all but the last in no_sync(). late: of each rank, what arrives last."""

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
        found = f"returned {pair!r:.80}; the functions finish and no_sync are asked for"
        raise Wrong(training.name, found, cause="without brackets it is the function")
    if getattr(pair[0], "__name__", "") == "no_sync":
        raise Wrong(training.name, "returned no_sync first", cause="(finish, no_sync), in this order")
    if training.name == EXCEPTION:
        with suppress(InterruptedError), pair[1]():
            raise InterruptedError
    return pair


def _special(training, run, number):
    """What is better said of a step's gradients than that they are not the mean."""
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
        """The right mean, times a factor by the number of ranks."""
        right = mean(sums_of(passes))
        return {r: {n: x * factor(len(group)) for n, x in right[r].items()} for group in groups for r in group}

    yield "divided by the number of buckets, not of ranks", times(lambda ranks: ranks / len(training.buckets))
    if len(passes) > 1:
        lost = "the backward pass outside of no_sync() alone: what no_sync() has added up is lost"
        yield lost, mean(sums_of(passes[-1:]))
        within = "the backward passes within no_sync() alone: the last one did not arrive"
        yield within, mean(sums_of(passes[:-1]))
        yield "the mean over the backward passes; they add up", times(lambda ranks: 1 / len(passes))
    elif number:
        old = mean(sums_of(training.steps[number - 1].passes))
        for share in (1, training.size):
            kept = [
                {n: old[r][n] / share if x is None else x for n, x in own.items()}
                for r, own in enumerate(passes[0].own)
            ]
            yield (
                "its view still holds the mean of the step before: without a gradient it is 0 there, zero_()",
                mean(kept),
            )


def _expect_views(training, run):
    for (rank, steps), names in product(enumerate(run.results), training.buckets):
        for number, (_, memory) in enumerate(steps, 1):
            if len({memory[name] for name in names}) > 1:
                found = f"rank {rank}'s {' and '.join(names)} do not lie in one flat tensor"
                raise Wrong(f"{training.name}, step {number}", f"the values are right, but {found}", cause=NEW)
