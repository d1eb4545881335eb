"""Check exercise 4 of lab 08: each gradient's all-reduce starts on its arrival, and finish() waits for all."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import NOT_A_TENSOR
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks import gradient_mistakes
from labs_helpers.data_parallel.lab08.checks.averaging import TWICE
from labs_helpers.data_parallel.lab08.checks.gradients import UNREAD, gradients
from labs_helpers.data_parallel.lab08.checks.hooked import Pass, Step, Training, expect_steps, train
from labs_helpers.data_parallel.lab08.checks.on_ranks import NONE
from labs_helpers.data_parallel.lab08.checks.replicas import FROZEN, PLAIN, TIED, TRANSPOSED, draw
from labs_helpers.data_parallel.lab08.checks.sent_times import IN_FINISH, expect_asynchronous, expect_in_order

CASES = (  # name, ranks, groups, parameters
    ("3 ranks, three steps", 3, None, PLAIN),
    ("a frozen parameter", 2, None, FROZEN),
    ("a weight that two layers share", 3, None, TIED),
    ("4 ranks, a transposed parameter", 4, None, TRANSPOSED),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, [(4, 0, 2), (3, 1)], PLAIN),
)
AGAIN = "the hooks are registered again in each step, so the same gradients are sent twice"
LEFT = "under_way is not cleared, so finish() processes the previous step's entries again"
STALE = {("", gradient_mistakes.TWICE): LEFT, ("", gradient_mistakes.STALE): LEFT}  # from the second step on
HOOK = "register_hook's function gets the gradient before .grad is set; use register_post_accumulate_grad_hook"
CALLED = "send(parameter) is a call; register send itself, without parentheses"
# The cause of NaN if the answer waited for every handle:
TOO_EARLY = "NaN: .grad was computed before wait() on its handle, or in a register_hook, which runs before .grad is set"
ERRORS = (
    (r"on a tensor that doesn't require", "a frozen parameter gets neither gradient nor hook: test requires_grad"),
    (r"post accumulate grad hooks cannot", "register hooks on the parameters themselves, not on copies or results"),
    (
        r"takes 0 positional arguments but 1|missing 1 required positional argument: 'parameter'",
        "autograd calls the hook with the parameter: send(parameter)",
    ),
    (f"{NOT_A_TENSOR}|argument 'tensors'|{NONE}", f"{HOOK}; or: {CALLED}"),
)


@exercise("08/4", "overlapped: hooks", points=15, minutes=20, reference=exercises.overlapped)
def overlapped(student):
    def wrap(answer, model, group):
        finish = answer(model, group)
        if not callable(finish):
            cause = "return finish, without parentheses" * (finish is None)
            raise Wrong("", f"returned {finish!r:.60} instead of the function finish", cause=cause)
        return finish, None

    comparison = gradients()
    for case, size, groups, parts in CASES:
        own = [[draw(parts, rank, step) for rank in range(size)] for step in range(3)]
        steps = [Step([Pass(one)], set_to_none=number != 1) for number, one in enumerate(own)]
        buckets = [[part.name] for part in reversed(parts) if part.kind != "frozen"]
        training = Training(case, size, parts, steps, buckets, groups, later={1: (LEFT,), 2: (LEFT,)})
        known = [("^TouchedTooEarly", TWICE), *ERRORS] if parts is TIED else ERRORS
        run = train(training, student, wrap, known, AGAIN)
        unread = TOO_EARLY if run.calls and all(call.waited for call in run.calls) else UNREAD
        expect_steps(comparison, training, run, lambda number: STALE if number else {}, unread=unread)
        expect_asynchronous(case, run, LEFT)
        twice = (TWICE, TWICE) if parts is TIED else ("", AGAIN)
        for rank in range(size):
            expect_in_order(training, run, rank, "gradient", twice, ("", ""), IN_FINISH)
        yield f"{case}: {len(buckets)} all-reduces per step, each started when its gradient had arrived"
