"""Exercise 5 of lab 09: bytes per step by formula, for gradients and parameters of different sizes."""

from functools import partial
from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, is_number
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab09 import exercises

DDP, ONE_WHOLE, ONE, TWO, THREE = ("DDP", "ZeRO-1 with all-reduce", "ZeRO-1", "ZeRO-2", "ZeRO-3")
# Gradients and parameters differ in size, so that a mistake in only one of them shows.
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
        "an all-reduce is a reduce-scatter and an all-gather, twice B (N − 1) / N": lambda K: (1, 0),
        "DDP keeps whole gradients, so it sends them only once per step": lambda K: (2 * K, 0),
        "DDP all-reduces only gradients and sends no parameters": lambda K: (2, 2),
        "every DDP rank updates all parameters, so it gathers nothing": lambda K: (2, 1),
    },
    ONE_WHOLE: {
        "an all-reduce is a reduce-scatter and an all-gather, twice B (N − 1) / N": lambda K: (1, 1),
        "gradients are sent once per step, not in every pass": lambda K: (2 * K, 1),
        "the updated parameters must also be gathered": lambda K: (2, 0),
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (2, 2),
        "parameters are gathered once per step, after the update": lambda K: (2, K),
        "you count both an all-reduce and a reduce-scatter": lambda K: (3, 1),
    },
    ONE: {
        "the gradients must also be reduced": lambda K: (0, 1),
        "you count an all-reduce, but a reduce-scatter sends half as much": lambda K: (2, 1),
        "gradients are sent once per step, not in every pass": lambda K: (K, 1),
        "the updated parameters must also be gathered": lambda K: (1, 0),
        "parameters are gathered once per step, after the update": lambda K: (1, K),
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (1, 2),
    },
    TWO: {
        "parameters are gathered, not reduced: B (N − 1) / N": lambda K: (K, 2),
        "no whole gradients are kept, so every backward pass reduce-scatters": lambda K: (1, 1),
        "you count an all-reduce, but a reduce-scatter sends half as much": lambda K: (2 * K, 1),
        "the updated parameters must also be gathered": lambda K: (K, 0),
        "parameters are gathered once per step, after the update": lambda K: (K, K),
    },
    THREE: {
        "the parameters are gathered for the forward pass and again for the backward pass": lambda K: (K, K),
        "every micro-batch gathers the parameters again": lambda K: (K, 2),
        "every backward pass reduce-scatters": lambda K: (1, 2 * K),
        "every micro-batch gathers and reduce-scatters": lambda K: (1, 2),
        "nothing is gathered after the update, because the next forward pass gathers": lambda K: (K, 2 * K + 1),
        "gradients are reduce-scattered, not all-reduced": lambda K: (2 * K, 2 * K),
        "the gradients must also be reduced": lambda K: (0, 2 * K),
    },
}
SHARES = {
    "the share is (N − 1) / N; twice that is an all-reduce": lambda N: 2 * (N - 1) / N,
    "a single rank sends nothing": lambda N: (N - 1) / N if N > 1 else 1.0,
    "a rank sends B (N − 1) / N, because it keeps its own part": lambda N: 1.0,
    "the share is (N − 1) / N, not 1 / N": lambda N: 1 / N,
    "a rank sends N − 1 of N parts, (N − 1) / N; all ranks together send N − 1": lambda N: N - 1.0,
    "the share is (N − 1) / N, and // rounds it down": lambda N: (N - 1) // N,
    "this is in GB; return bytes": lambda N: (N - 1) / N / 1e9,
}
OWN = "use gradient_bytes for gradients and parameter_bytes for parameters"
ADVICE = (
    "list the scheme's collectives in one step of 3 micro-batches. Each sends B (N − 1) / N, an all-reduce twice that."
)


def sent(G: float, P: float, N: int, K: int, *, calls=CALLS, share=lambda N: (N - 1) / N) -> dict[str, float]:
    """Return the right answer, or with other calls or another share a wrong one."""
    often = ((name, *of(K)) for name, of in calls.items())
    return {name: (gradients * G + parameters * P) * share(N) for name, gradients, parameters in often}


MISTAKES = [  # either one scheme is wrong, or all of them
    *((said, partial(sent, calls={name: of})) for name, others in OTHER_CALLS.items() for said, of in others.items()),
    *(
        (
            OWN if 0 in of(1) else "gradients and parameters are swapped",
            partial(sent, calls={name: lambda K, of=of: of(K)[::-1]}),
        )
        for name, of in CALLS.items()
        if name != ONE
    ),
    *((said, partial(sent, share=share)) for said, share in SHARES.items()),
    (OWN, lambda G, P, N, K: sent(G, G, N, K)),
    (OWN, lambda G, P, N, K: sent(P, P, N, K)),
]


@exercise("09/5", "bytes sent per step", points=10, minutes=10, reference=exercises.sent_per_step)
def sent_per_step(student):
    call, cases = partial(_formed, student), list(map(_case, CASES))
    yield from judge(student, call, cases, MISTAKES, told=_told, same=_same, advice=ADVICE)


def _case(arguments: tuple) -> Case:
    G, P, N, K = arguments
    name = f"gradients {G:g} B, parameters {P:g} B, {N} rank{'s' * (N > 1)}, {K} micro-batch{'es' * (K > 1)}"
    right = sent(*arguments)
    times = " / ".join(f"{one / 2 / G:.3g}" for one in right.values())
    return Case(name, arguments, right, f"{name}: {times} × 2 G")


def _formed(student, *given) -> dict[str, float]:
    answer = student(*given)
    if not isinstance(answer, dict) or not all(map(is_number, answer.values())):
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.60}; expected a dict {{scheme: bytes}}", cause=cause)
    if answer.keys() != CALLS.keys():
        cause = "use the exact names of the schemes from the docstring"
        raise Wrong("", f"has {', '.join(map(repr, answer))}; expected {', '.join(map(repr, CALLS))}", cause=cause)
    return answer


def _off(found: dict, right: dict) -> list[str]:
    """Return the schemes that both contain with different bytes."""
    return [name for name in found.keys() & right.keys() if not isclose(found[name], right[name], abs_tol=1e-9)]


def _same(one: dict, other: dict) -> bool:
    return not _off(one, other)


def _told(case: Case, answer: dict) -> tuple[str, str]:
    name = next(name for name in CALLS if name in _off(answer, case.right))
    return f"{name} is {answer[name]:,.6g}, expected {case.right[name]:,.6g}", ""
