"""Exercise 5 of lab 09: bytes per step by formula, for gradients and parameters of different sizes."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_table
from labs_helpers.data_parallel.lab09 import exercises

DDP, ONE_WHOLE, ONE, TWO, THREE = ASKED = ("DDP", "ZeRO-1 with all-reduce", "ZeRO-1", "ZeRO-2", "ZeRO-3")
# Gradients and parameters of other sizes, so that a mistake in one of the two shows.
CASES = [(500.0, 300.0, 4, 3), (500.0, 300.0, 4, 1), (14e9, 14e9, 8, 1), (28e9, 14e9, 64, 16), (60.0, 60.0, 1, 2)]
CALLS = {  # reduce-scatters or all-gathers of gradients and of parameters in a step of K micro-batches
    DDP: lambda K: (2, 0),
    ONE_WHOLE: lambda K: (2, 1),
    ONE: lambda K: (1, 1),
    TWO: lambda K: (K, 1),
    THREE: lambda K: (K, 2 * K),
}
OTHER_CALLS = {
    DDP: {
        "an all-reduce is a reduce-scatter and an all-gather: twice B (N − 1) / N": lambda K: (1, 0),
        "DDP keeps whole gradients, so that it can send once per step": lambda K: (2 * K, 0),
        "an all-reduce of the gradients alone: parameters are not sent": lambda K: (1, 1),
        "an all-reduce of the gradients alone; parameters are not sent": lambda K: (2, 2),
        "DDP's ranks update whole parameters each: no gather": lambda K: (2, 1),
    },
    ONE_WHOLE: {
        "an all-reduce is a reduce-scatter and an all-gather: twice B (N − 1) / N": lambda K: (1, 1),
        "gradients are sent once per step, not in every pass": lambda K: (2 * K, 1),
        "the updated parameters have to be gathered, too": lambda K: (2, 0),
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (2, 2),
        "parameters are gathered once per step, after the update": lambda K: (2, K),
        "all-reduce and reduce-scatter are both counted": lambda K: (3, 1),
    },
    ONE: {
        "the gradients have to be reduced, too": lambda K: (0, 1),
        "this is with an all-reduce; a reduce-scatter sends half of it": lambda K: (2, 1),
        "gradients are sent once per step, not in every pass": lambda K: (K, 1),
        "the updated parameters have to be gathered, too": lambda K: (1, 0),
        "parameters are gathered once per step, after the update": lambda K: (1, K),
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (1, 2),
    },
    TWO: {
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (K, 2),
        "no whole gradients are kept: every backward pass reduce-scatters": lambda K: (1, 1),
        "this is with an all-reduce; a reduce-scatter sends half of it": lambda K: (2 * K, 1),
        "the updated parameters have to be gathered, too": lambda K: (K, 0),
        "parameters are gathered once per step, after the update": lambda K: (K, K),
    },
    THREE: {
        "the parameters are gathered for the forward pass, and again for the backward pass": lambda K: (K, K),
        "every micro-batch gathers anew": lambda K: (K, 2),
        "every backward pass reduce-scatters": lambda K: (1, 2 * K),
        "every micro-batch gathers and reduce-scatters": lambda K: (1, 2),
        "nothing is gathered after the update: the next forward pass does it": lambda K: (K, 2 * K + 1),
        "gradients are reduce-scattered, not all-reduced": lambda K: (2 * K, 2 * K),
        "the gradients have to be reduced, too": lambda K: (0, 2 * K),
    },
}
SHARES = {
    "the share is (N − 1) / N; twice that is an all-reduce": lambda N: 2 * (N - 1) / N,
    "the share is (N − 1) / N, not N": lambda N: float(N),
    "one rank sends nothing": lambda N: (N - 1) / N if N > 1 else 1.0,
    "a rank sends B (N − 1) / N: its own part stays": lambda N: 1.0,
    "the share is (N − 1) / N, and this 1 / N": lambda N: 1 / N,
    "of N parts N − 1 are sent: (N − 1) / N, not N − 1": lambda N: N - 1.0,
    "the share is (N − 1) / N; // rounds it down": lambda N: (N - 1) // N,
    "this is what all ranks together send": lambda N: N - 1.0,
    "the share is (N − 1) / N, not N / (N − 1)": lambda N: N / (N - 1) if N > 1 else 1.0,
    "the share is (N − 1) / N, not (N + 1) / N": lambda N: (N + 1) / N,
    "these are GB; bytes are asked for": lambda N: (N - 1) / N / 1e9,
    "N is ranks, not always 8": lambda N: 7 / 8,
}
ADVICE = (
    "list the scheme's collectives in one step of 3 micro-batches; each sends B (N − 1) / N, an all-reduce twice that."
)


@exercise("09/5", "what each stage sends", points=10, minutes=10, reference=exercises.sent_per_step)
def sent_per_step(student):
    done = []
    for G, P, N, K in CASES:
        case = f"gradients {G:g} B, parameters {P:g} B, {N} rank{'s' * (N > 1)}, {K} micro-batch{'es' * (K > 1)}"
        try:
            answer = student(G, P, N, K)
        except Exception as error:
            raise describe_error(student, error, case) from None
        if not isinstance(answer, dict):
            cause = "a return is missing" if answer is None else ""
            raise Wrong(case, f"returned {answer!r:.60}; a dict {{scheme: bytes}} is asked for", cause=cause)
        done.append(((G, P, N, K), answer))
        rows = {name: [value] for name, value in answer.items()}
        right = {name: [_bytes(calls, G, P, N, K)] for name, calls in CALLS.items()}
        try:
            expect_table(case, rows, right, ("bytes",), advice=ADVICE)
        except Wrong as wrong:
            wrong_name = next((name for name in CALLS if name in answer and _off(done[-1:], name, CALLS[name])), None)
            causes = list(_causes(done, wrong_name)) if wrong_name and answer.keys() == CALLS.keys() else []
            if answer.keys() != CALLS.keys() and len(answer) == len(CALLS):
                causes = ["the schemes' names are those of the docstring, letter by letter"]
            found = wrong.found.replace(": bytes is", " is")
            raise Wrong(case, found, cause=causes if 1 <= len(causes) <= 2 else "", advice=ADVICE) from None
        yield f"{case}: " + " / ".join(f"{row[0] / 2 / G:.3g}" for row in right.values()) + " × 2 G"


def _bytes(calls, G: float, P: float, N: int, K: int, share=lambda N: (N - 1) / N) -> float:
    of_gradients, of_parameters = calls(K)
    return (of_gradients * G + of_parameters * P) * share(N)


def _off(done: list, name: str, calls, **how) -> bool:
    """Whether an answer of the cases so far is not what `calls` makes it."""
    for arguments, answer in done:
        value = _bytes(calls, *arguments, **how)
        if not abs(answer[name] - value) <= 1e-9 * max(1.0, abs(value)):
            return True
    return False


def _causes(done: list, name: str):
    """Sentences that fit all cases so far."""
    for said, calls in OTHER_CALLS[name].items():
        if not _off(done, name, calls):
            yield said
    for said, share in SHARES.items():
        if not any(_off(done, other, calls, share=share) for other, calls in CALLS.items()):
            yield said

    def swapped(K):
        return CALLS[name](K)[::-1]

    if not _off(done, name, swapped) and len(set(CALLS[name](2))) > 1:
        yield "gradients and parameters are exchanged"
