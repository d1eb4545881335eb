"""Check the transfer exercise of lab 01: the parts of a trace, the slowest, and whether it works or waits."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_tuple
from labs_helpers.course.verdict.pure_functions import Part
from labs_helpers.course.verdict.tables import expect_rows, table_parts
from labs_helpers.measure.written_trace import of
from labs_helpers.transformer.lab01.checks import diagnose_mistakes as mistakes
from labs_helpers.transformer.lab01.checks.ask import judge_traces
from labs_helpers.transformer.lab01.checks.real_traces import real_traces
from labs_helpers.transformer.lab01.checks.traces import DIAGNOSE

COLUMNS = ("launches", "µs", "span")
ERRORS = (  # no launch has correlation 99
    (r"^KeyError: (99|None)\b", "leave out work whose launch is not in the trace"),
    (r"^KeyError: 'correlation'", 'not every event has a "correlation": the GPU\'s work and the launches do'),
    (r"^KeyError: 'External id'", 'not every event has an "External id"; "correlation" leads to the launch'),
)
ADVICE = "follow one piece by hand: its correlation, the launch that has it, and the part in which that began."


def told_slow(case, slow):
    spans = ", ".join(f"{name} {span:g}" for name, (_, _, span) in case.right.table.items())
    return (f"slow is {slow!r}, expected {case.right.slow!r}; the spans are {spans}",)


def told_why(case, why):
    table, slow, right = case.right
    if why not in ("waits", "works"):
        return (f'why is {why!r}; return "waits" or "works", spelled exactly like this',)
    return (f"why is {why!r}, expected {right!r}: of its {table[slow][2]:g} µs {slow} works {table[slow][1]:g}",)


PARTS = [
    *table_parts(COLUMNS, [mistakes.names, mistakes.launches, mistakes.us, mistakes.spans], lambda answer: answer[0]),
    Part(lambda answer: answer.slow, mistakes.slow, told_slow),
    Part(lambda answer: answer.why, mistakes.why, told_why),
]


@exercise("01/8", "transfer: which part is slow", points=45, minutes=30)
def diagnose(student):
    def read(answer):
        table, slow, why = expect_tuple("", answer, "parts", "slow", "why")
        return mistakes.Answer(expect_rows("", table, COLUMNS), slow, why)

    def line(answer):
        launches, us, span = answer.table[answer.slow]
        return f"{answer.slow:.40} {answer.why}, {launches} launches, {us:,.0f} of {span:,.0f} µs"

    real = (pair for pair in real_traces() if of(pair[1], "user_annotation"))
    yield from judge_traces(
        student, read, DIAGNOSE, mistakes.right, PARTS, line, real=real, errors=ERRORS, advice=ADVICE
    )
