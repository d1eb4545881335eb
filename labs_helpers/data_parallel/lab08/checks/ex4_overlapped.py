"""Exercise 4 of lab 08: each gradient's all-reduce starts when it arrives, and finish() waits for all."""

from __future__ import annotations

from math import prod

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import NOT_A_TENSOR, TOUCHED
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import TWICE
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import ON_ONE, SENTENCES
from labs_helpers.data_parallel.lab08.checks.gradients import expect_means
from labs_helpers.data_parallel.lab08.checks.hooked import Pass, Step, arrivals, expect_asynchronous, train
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
HOOK = (
    "register_hook calls with the gradient, before it is in .grad; "
    "register_post_accumulate_grad_hook calls with the parameter, after"
)
CALLED = "send(parameter) calls it at once; registered is send itself, without brackets"
UNREAD = (
    "not a number: .grad was made from a tensor that is still under way, before wait() on its handle, or by "
    "register_hook, which calls before the gradient is in .grad"
)
ERRORS = (
    (
        r"cannot register a hook on a tensor that doesn't require",
        "a frozen parameter gets no gradient and no hook: requires_grad",
    ),
    (
        r"post accumulate grad hooks cannot",
        "hooks belong on the parameters themselves, not on copies or results",
    ),
    (
        r"takes 0 positional arguments but 1|missing 1 required positional argument: 'parameter'",
        "the hook is called with the parameter: send(parameter)",
    ),
    (f"{NOT_A_TENSOR}|argument 'tensors'|{NONE}", f"{HOOK}; or: {CALLED}"),
)


@exercise("08/4", "overlapped: hooks", points=15, minutes=20, reference=exercises.overlapped)
def overlapped(student):
    for case, size, groups, parts in CASES:
        own = [[draw(parts, rank, step) for rank in range(size)] for step in range(3)]
        steps = [Step([Pass(own[0])]), Step([Pass(own[1])], set_to_none=False), Step([Pass(own[2])])]

        known = [(TOUCHED, TWICE), *ERRORS] if case == TIED_CASE else ERRORS

        def wrap(model, group, case=case):
            finish = student(model, group)
            if not callable(finish):
                raise Wrong(
                    case,
                    f"returned {finish!r:.60}; finish itself is asked for",
                    cause="finish, without brackets, is the function" * (finish is None),
                )
            return finish, None

        run = train(
            case,
            student,
            wrap,
            parts,
            steps,
            groups=groups,
            stuck="what is sent depends on the rank",
            errors=known,
            later=(LEFT,),
            again=AGAIN,
        )
        for members in groups or [tuple(range(size))]:
            for number in range(3):
                found = [run.results[rank][0][number][0] for rank in members]
                special = {("", "twice"): LEFT, ("", "stale"): LEFT} if number else {}
                expect_means(
                    f"{case}, step {number + 1}",
                    found,
                    [own[number][rank] for rank in members],
                    parts,
                    before=[own[number - 1][rank] for rank in members] if number else None,
                    world=own[number] if groups else None,
                    special=special,
                    sentences=SENTENCES
                    | _unread(run)
                    | (ON_ONE if any(call.name == "reduce" for call in run.calls) else {}),
                )
        expect_asynchronous(case, run)
        wanted = [part for part in parts if part.kind != "frozen"]
        for rank in range(size):
            _expect_in_time(case, rank, arrivals(run, rank), wanted)
        yield f"{case}: {len(wanted)} all-reduces per step, each begun when its gradient was there"


def _unread(run) -> dict[str, str]:
    """What it is called that .grad is not a number although everything was waited for."""
    return {"unread": UNREAD} if run.calls and all(call.waited for call in run.calls) else {}


def _expect_in_time(case, rank, steps, wanted):
    for number, step in enumerate(steps):
        sent = [call for arrival in step for call in arrival.sent]
        right = f"{case}, step {number + 1}", f"the values are right, but rank {rank}"
        if any(call.name not in ("all_reduce", "all_reduce_coalesced") for call in sent):
            names = ", ".join(sorted({call.name for call in sent} - {"all_reduce"}))
            raise Wrong(right[0], f"{right[1]} calls {names}", cause="one all-reduce per gradient is enough")
        if step[-1].sent:
            cause = "all-reduces are started in finish(), after backward: they belong into send()" * (
                len(step[-1].sent) == len(sent)
            )
            raise Wrong(
                right[0],
                f"{right[1]} starts {len(step[-1].sent)} of {len(sent)} all-reduces after backward: nothing hides them",
                cause=cause,
            )
        if len(sent) != len(wanted):
            cause = TWICE if case == TIED_CASE else AGAIN * (number > 0)
            raise Wrong(right[0], f"{right[1]} makes {len(sent)} all-reduces for {len(wanted)} gradients", cause=cause)
        nbytes = sum(4 * prod(part.shape) for part in wanted)
        if sum(call.nbytes for call in sent) != nbytes:
            total = sum(call.nbytes for call in sent)
            raise Wrong(
                right[0],
                f"{right[1]} sends {total} bytes; its gradients have {nbytes}",
                cause="gradients travel in float64" * (total == 2 * nbytes),
            )
        if any(len(arrival.sent) != 1 for arrival in step[:-1]):
            late = next(arrival for arrival in step if len(arrival.sent) != 1)
            raise Wrong(
                right[0],
                (
                    f"{right[1]} sends {len(late.sent)} gradients when that of {late.name} arrives; "
                    "each goes when it arrives itself"
                ),
            )
