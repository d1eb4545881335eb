"""Exercise 4 of lab 08: each gradient's all-reduce starts when it arrives, and finish() waits for all."""

from __future__ import annotations

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import NOT_A_TENSOR, TOUCHED
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks import gradient_mistakes
from labs_helpers.data_parallel.lab08.checks.averaging import TWICE, nbytes_of
from labs_helpers.data_parallel.lab08.checks.gradients import ON_ONE, UNREAD, expect_means, gradients
from labs_helpers.data_parallel.lab08.checks.hooked import (
    IN_FINISH,
    Pass,
    Step,
    arrivals,
    expect_all_reduces,
    expect_asynchronous,
    train,
)
from labs_helpers.data_parallel.lab08.checks.on_ranks import NONE
from labs_helpers.data_parallel.lab08.checks.replicas import FROZEN, PLAIN, TIED, TRANSPOSED, draw

TIED_CASE = "a weight that two layers share"
CASES = (  # name, ranks, groups, parameters
    ("3 ranks, three steps", 3, None, PLAIN),
    ("a frozen parameter", 2, None, FROZEN),
    (TIED_CASE, 3, None, TIED),
    ("4 ranks, a parameter that lies transposed", 4, None, TRANSPOSED),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, [(4, 0, 2), (3, 1)], PLAIN),
)
AGAIN = "the hooks are registered again in each step: twice as many all-reduces of the same gradients"
LEFT = "what is under way is not emptied: the entries of the step before are worked on again"
STALE = {("", gradient_mistakes.TWICE): LEFT, ("", gradient_mistakes.STALE): LEFT}  # from the second step on
HOOK = (
    "register_hook calls with the gradient, before it is in .grad; "
    "register_post_accumulate_grad_hook calls with the parameter, after"
)
CALLED = "send(parameter) calls it at once; registered is send itself, without brackets"
TOO_EARLY = (  # where all was waited for
    "not a number: .grad was made from a tensor that is still under way, before wait() on its handle, or by "
    "register_hook, which calls before the gradient is in .grad"
)
ERRORS = (
    (
        r"cannot register a hook on a tensor that doesn't require",
        "a frozen parameter gets no gradient and no hook: requires_grad",
    ),
    (r"post accumulate grad hooks cannot", "hooks belong on the parameters themselves, not on copies or results"),
    (
        r"takes 0 positional arguments but 1|missing 1 required positional argument: 'parameter'",
        "the hook is called with the parameter: send(parameter)",
    ),
    (f"{NOT_A_TENSOR}|argument 'tensors'|{NONE}", f"{HOOK}; or: {CALLED}"),
)


@exercise("08/4", "overlapped: hooks", points=15, minutes=20, reference=exercises.overlapped)
def overlapped(student):
    comparison = gradients()
    for case, size, groups, parts in CASES:
        own = [[draw(parts, rank, step) for rank in range(size)] for step in range(3)]
        steps = [Step([Pass(one)], set_to_none=number != 1) for number, one in enumerate(own)]

        def wrap(model, group):
            finish = student(model, group)
            if not callable(finish):
                cause = "finish, without brackets, is the function" * (finish is None)
                raise Wrong("", f"returned {finish!r:.60}; finish itself is asked for", cause=cause)
            return finish, None

        run = train(
            case,
            student,
            wrap,
            parts,
            steps,
            groups=groups,
            stuck="what is sent depends on the rank",
            errors=[(TOUCHED, TWICE), *ERRORS] if case == TIED_CASE else ERRORS,
            later={1: (LEFT,), 2: (LEFT,)},
            again=AGAIN,
        )
        unread = TOO_EARLY if run.calls and all(call.waited for call in run.calls) else UNREAD
        for number in range(3):
            expect_means(
                comparison,
                f"{case}, step {number + 1}",
                [left[number][0] for left in run.results],
                own[number],
                groups or [range(size)],
                parts,
                before=own[number - 1] if number else None,
                special=STALE if number else None,
                unread=ON_ONE if any(call.name == "reduce" for call in run.calls) else unread,
            )
        expect_asynchronous(case, run)
        wanted = [part for part in parts if part.kind != "frozen"]
        for rank in range(size):
            _expect_in_time(case, rank, arrivals(run, rank), wanted)
        yield f"{case}: {len(wanted)} all-reduces per step, each begun when its gradient was there"


def _expect_in_time(case, rank, steps, wanted):
    for number, step in enumerate(steps):
        sent = [call for arrival in step for call in arrival.sent]
        where, right = f"{case}, step {number + 1}", f"the values are right, but rank {rank}"
        expect_all_reduces(where, right, sent, "gradient")
        if late := step[-1].sent:
            found = f"{right} starts {len(late)} of {len(sent)} all-reduces after backward: nothing hides them"
            raise Wrong(where, found, cause=IN_FINISH * (len(late) == len(sent)))
        if len(sent) != len(wanted):
            cause = TWICE if case == TIED_CASE else AGAIN * (number > 0)
            raise Wrong(where, f"{right} makes {len(sent)} all-reduces for {len(wanted)} gradients", cause=cause)
        nbytes, total = nbytes_of(wanted), sum(call.nbytes for call in sent)
        if total != nbytes:
            cause = "gradients travel in float64" * (total == 2 * nbytes)
            raise Wrong(where, f"{right} sends {total} bytes; its gradients have {nbytes}", cause=cause)
        if late := [arrival for arrival in step[:-1] if len(arrival.sent) != 1]:
            found = f"{right} sends {len(late[0].sent)} gradients when that of {late[0].name} arrives"
            raise Wrong(where, f"{found}; each goes when it arrives itself")
