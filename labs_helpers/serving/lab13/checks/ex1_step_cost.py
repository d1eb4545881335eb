"""Check exercise 1 of lab 13: the FLOPs and bytes of a forward pass."""

from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.cost_mistakes import bytes_, flops, right
from labs_helpers.transformer.config import SIZES, TransformerConfig

GROUPED = TransformerConfig(512, layers=3, width=96, heads=6, hidden=256, kv_heads=2, context=1 << 20)
CASES = (  # name, config, parameters, batch, new, past
    ("one decoding step of three sequences", GROUPED, 7_000, 3, 1, 100),
    ("a prefill of 37 positions, two sequences", GROUPED, 7_000, 2, 37, 0),
    ("a chunk of 16 positions behind 48", GROUPED, 7_000, 5, 16, 48),
    ("a first token", GROUPED, 7_000, 1, 1, 0),
    ("lab 01's 1B model decodes 64 sequences at 1,000 positions", SIZES["1b"], 887_619_584, 64, 1, 1_000),
)  # fmt: skip
ADVICE = "compute the weights' part and the cache's part separately, for 1 sequence and new = 2, past = 0"


@exercise("13/1", "the cost of a forward pass", points=10, minutes=15, reference=exercises.step_cost)
def step_cost(student):
    def numbers(*arguments):
        answer = expect_tuple("", student(*arguments), "flops", "bytes")
        for name, number in zip(("flops", "bytes"), answer, strict=True):
            expect_is_number("", name, number)
        return answer

    parts = [
        Part(itemgetter(i), mistakes, lambda case, found, i=i, name=name: (f"{found:,}", f"{case.right[i]:,}", name))
        for i, (name, mistakes) in enumerate((("flops", flops), ("bytes", bytes_)))
    ]
    yield from judge_parts(student, numbers, [_case(*case) for case in CASES], parts, advice=ADVICE)


def _case(name, *arguments):
    cost = right(*arguments)
    return Case(name, arguments, cost, f"{name}: {cost[0] / cost[1]:.3g} FLOPs per byte")
