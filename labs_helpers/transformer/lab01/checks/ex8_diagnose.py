"""The transfer exercise of lab 01: the parts of a trace, the slowest, and whether it works or waits."""

from collections.abc import Callable, Iterable
from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Candidates, Wrong, expect_table, expect_tuple, likely
from labs_helpers.course.verdict.causes import Passed, still_possible
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.ask import ask, showing
from labs_helpers.transformer.lab01.checks.covered import covered, first_to_last
from labs_helpers.transformer.lab01.checks.diagnose_causes import launch_causes, name_causes, span_causes, us_causes
from labs_helpers.transformer.lab01.checks.diagnose_traces import CASES
from labs_helpers.transformer.lab01.checks.part_costs import Parts, launched, owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import of
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

KEYS = {
    "correlation": 'not every event has a "correlation": the GPU\'s work and the launches do',
    "External id": 'not every event has an "External id"; what leads to the launch is "correlation"',
}
LOST = "work whose launch is not in the trace is left out"
COLUMNS = (name_causes, launch_causes, us_causes, span_causes)  # names, then what each of them has
ADVICE = "follow one piece by hand: its correlation, the launch that has it, and the part in which that began."


@exercise("01/8", "transfer: which part is slow", points=45, minutes=30)
def diagnose(student):
    passed: list[list[Event]] = []
    for case, events in CASES.items():
        with showing(events):
            yield _compared(case, student, events, passed)
        passed.append(events)
    for case, events in real_traces():
        if of(events, "user_annotation"):
            yield _compared(case, student, events)


def _compared(case: str, student, events: list[Event], passed: list[list[Event]] | None = None) -> str:
    """passed: the traces before this one; without them no cause of a number."""
    lost = {e["args"].get("correlation") for e in of(events, *GPU_WORK)} - {
        launch["args"]["correlation"] for _, launch in launched(events)
    }
    answer = ask(case, student, events, KEYS | dict.fromkeys(lost, LOST))
    found, slow, why = expect_tuple(case, answer, "parts", "slow", "why")
    right = parts(owned(events))
    causes = [_still_possible(*one, events, passed) for one in enumerate(COLUMNS)] if passed is not None else ()
    expect_table(case, found, right, ("launches", "µs", "span"), causes, ADVICE)
    slowest = _slowest(right)
    spans = ", ".join(f"{name} {span:g}" for name, (_, _, span) in right.items())
    if slow not in right or right[slow][2] != right[slowest][2]:
        earlier = ((slow_causes(parts(owned(e)), e), _slowest(parts(owned(e))).__eq__) for e in passed or ())
        fits = likely(still_possible(slow_causes(right, events), earlier), lambda other: slow == other)
        raise Wrong(case, f"slow is {slow!r}, expected {slowest!r}; the spans are {spans}", cause=fits)
    launches, us, span = right[slow]
    reason = _reason(right, slow)
    if why not in ("waits", "works"):
        raise Wrong(case, f'why is {why!r}; "waits" or "works" is asked for, in these words')
    if why != reason:
        candidates = still_possible(why_causes(right, slow, events), map(_passed_why, passed or ()))
        fits = likely(candidates, lambda other: why == other)
        text = f"why is {why!r}, expected {reason!r}: of its {span:g} µs {slow} works {us:g}"
        raise Wrong(case, text, cause=fits)
    return f"{case}: {slow:.40} {reason}, {launches} launches, {us:,.0f} of {span:,.0f} µs"


def _slowest(found: Parts) -> str:
    return max(found, key=lambda name: found[name][2])


def _reason(found: Parts, name: str) -> str:
    return "waits" if found[name][1] < found[name][2] / 2 else "works"


def _passed_why(events: list[Event]) -> Passed:
    right = parts(owned(events))
    slow = _slowest(right)
    return why_causes(right, slow, events), _reason(right, slow).__eq__


def _still_possible(
    column: int, causes: Callable[[list[Event]], Candidates], events: list[Event], passed: Iterable[list[Event]]
) -> Candidates:
    def is_right(right: Parts) -> Callable[[object], bool]:
        if column == 0:
            return lambda other: set(other) == set(right)
        return lambda other: all(
            name in other and isclose(other[name][column - 1], row[column - 1]) for name, row in right.items()
        )

    return still_possible(causes(events), ((causes(one), is_right(parts(owned(one)))) for one in passed))


def slow_causes(found: Parts, events: list[Event]) -> Candidates:
    on_cpu = parts([(part, [part]) for part in of(events, "user_annotation")])
    for sentence, key in (
        ("the slowest by µs was taken; its waits count too, so by span", lambda name: found[name][1]),
        ("the one with the most launches was taken; slow is the largest span", lambda name: found[name][0]),
        (
            "the one that waits longest was taken; slow is the largest span",
            lambda name: found[name][2] - found[name][1],
        ),
        (
            "the largest share of waiting was taken; slow is the largest span",
            lambda name: -found[name][1] / (found[name][2] or 1),
        ),
        ("the smallest was taken; slow is the largest span", lambda name: -found[name][2]),
        ("the one that takes longest on the CPU was taken; slow is the largest span", lambda name: on_cpu[name][2]),
        ("the names were compared, not their spans", lambda name: name),
    ):
        if len({key(name) for name in found}) > 1:
            yield sentence, max(found, key=key)


def why_causes(found: Parts, slow: str, events: list[Event]) -> Candidates:
    _, us, span = found[slow]
    for sentence, waits in (
        ("it waits where its µs are less than half of its span, and not more", span / 2 < us < span),
        ("it waits where its µs are less than half of its span: less than all of it is not enough", us < span),
        ("exactly half is not less than half", us <= span / 2),
        (
            "its µs are to be compared with half of its own span, not with the trace's time",
            us < first_to_last(of(events)) / 2,
        ),
        (
            "its own µs are to be compared with its own span, not all of the GPU's work with the trace's time",
            covered(of(events, *GPU_WORK)) < first_to_last(of(events)) / 2,
        ),
        ("the part with the largest span is asked about", any(u < s / 2 for _, u, s in found.values())),
    ):
        yield sentence, "waits" if waits else "works"
