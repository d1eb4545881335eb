"""Check exercise 4 of lab 01: bytes and FLOPs of operations, their times at the roofs, and the share reached."""

from math import isclose
from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.measure.trace import operations
from labs_helpers.measure.written_trace import event
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import bound_by_mistakes as mistakes
from labs_helpers.transformer.lab01.checks.ask import leaving_alone
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

# (peak, bandwidth): a scaled-down GPU; one with many more FLOP/s; one with far fewer; one for real operations.
GPU, TENSOR_CORES, PLAIN, SLOW = (1e12, 1e11), (1e14, 1e11), (2e10, 4e11), (2e10, 2e9)
BF16, HALF = "c10::BFloat16", "c10::Half"
CASES = (  # name, µs, roofs, type and shape of each input
    ("aten::add", 0.3, GPU, ("float", [64, 32]), ("float", [32]), ("Scalar", [])),
    ("aten::mm", 60.0, PLAIN, ("float", [192, 16]), ("float", [16, 160])),
    ("aten::mm", 20.0, GPU, ("float", [192, 256]), ("float", [256, 160])),
    ("aten::mul", 0.2, GPU, (BF16, [40, 20]), ("float", [40, 20])),
    ("aten::mul", 0.1, GPU, ("float", [10, 40]), ("double", [40, 10])),
    ("aten::mm", 7.0, TENSOR_CORES, (BF16, [2, 512]), (BF16, [512, 400])),
    ("aten::bmm", 60.0, GPU, (BF16, [3, 192, 256]), (BF16, [3, 256, 160])),
    ("aten::addmm", 4.0, GPU, ("float", [64]), ("float", [256, 192]), ("float", [192, 64])),
    ("aten::bmm", 2.5, TENSOR_CORES, (HALF, [10, 12, 64]), (HALF, [10, 64, 48])),
    ("aten::add", 0.2, GPU, ("float", [30]), (BF16, [30, 20]), ("Scalar", [])),
    ("aten::embedding", 1.1, GPU, (BF16, [300, 16]), ("long int", [2, 900]), ("Scalar", []), ("Scalar", [])),
    ("aten::mul", 0.12, PLAIN, ("float", [20, 50]), ("double", [50])),
    ("aten::where", 1.1, GPU, ("bool", [4, 50, 50]), ("float", [4, 50, 50]), ("float", [])),
    ("aten::add_", 6.5, GPU, ("int", [12]), ("", []), ("int", [12])),
    ("aten::silu", 0.1, GPU, ("float", [2000])),
    ("aten::cat", 1.5, GPU, ("TensorList", [[4, 16], [8, 16]]), ("Scalar", [])),
    ("aten::div_", 1.5, GPU, ("float", []), ("double", [])),
)
ERRORS = (
    (r"^KeyError: '(TensorList|Scalar)'", 'a "TensorList" or "Scalar" is not in ITEMSIZE, and counts nothing'),
    (r"^KeyError: ''", 'an input that is not a tensor has the type "", which is not in ITEMSIZE; it counts nothing'),
)
IN_ADDMM = ((r"^(Value|Index)Error", mistakes.ONLY_PRODUCTS),)
WITHOUT_INPUTS = (
    (r"^(Value|Index)Error", "without inputs, bytes and FLOPs are 0: use max(…, default=…)"),
    (r"^TypeError", 'the shape of a "TensorList", a list of shapes, counts nothing: its type is not in ITEMSIZE'),
)


def told(case, said, found, at):
    operation, us, *roofs = case.arguments
    flops, moved = mistakes.cost(operation)
    at_bytes, at_flops = mistakes.Cost(flops, moved).us(*roofs)
    where = (
        f"{moved:,} bytes at {roofs[1]:g} bytes/s take {at_bytes:.4g} µs, {flops:,} FLOPs at {roofs[0]:g} FLOP/s "
        f"{at_flops:.4g} µs; the operation took {us:g} µs"
    )
    expected = "{1:.6g}" if at else "{0!r}"
    return (f"{said.format(found)}, expected {expected.format(*case.right)}\n  {where}",)


PARTS = [
    Part(
        itemgetter(1),
        mistakes.shares,
        lambda case, share: told(case, "share is {:.6g}", share, 1),
        isclose,
        mistakes.implied,
    ),
    Part(itemgetter(0), mistakes.bound, lambda case, bound: told(case, "the share is right, bound is {!r}", bound, 0)),
]
ADVICE = "print the elements and bytes of each input, then the result's."


@exercise("01/4", "bytes, FLOPs or neither", points=15, minutes=20, reference=exercises.bound_by)
def bound_by(student):
    def read(answer):
        bound, share = expect_tuple("", answer, "bound", "share")
        expect_is_number("", "share", share)
        if bound not in ("bytes", "FLOPs", "neither"):
            words = 'return "bytes", "FLOPs" or "neither", spelled exactly like this'
            raise Wrong("", f"bound is {bound!r:.60}", cause=words)
        return bound, share

    call = leaving_alone(student, read)
    yield from judge_parts(student, call, list(map(_made, CASES)), PARTS, errors=ERRORS, advice=ADVICE)
    alone = [part._replace(mistakes=lambda *_: ()) for part in PARTS]
    for case, events in real_traces():
        timed = [(one, us) for one, us in operations(events) if {"Input Dims", "Input type"} <= one["args"].keys()]
        timed = [(one, us) for one, us in timed if mistakes.cost(one).bytes]
        cases = [_case(f"{case}: {_text(one)}", one, us, *SLOW) for one, us in timed]
        list(judge_parts(student, call, cases, alone, errors=ERRORS))
        yield f"{case}: {len(cases):,} calls"


def _made(row) -> Case:
    name, us, roofs, *given = row
    operation = event("cpu_op", name, 5.0, 40.0, id=3)
    operation["args"] |= {"Input Dims": [shape for _, shape in given], "Input type": [kind for kind, _ in given]}
    case = _case(f"{_text(operation)} in {us:g} µs", operation, us, *roofs)
    errors = IN_ADDMM * (name == "aten::addmm") + WITHOUT_INPUTS * (not mistakes.inputs(operation))
    return case._replace(line="{}: {}, {:.0%}".format(case.name, *case.right), errors=errors)


def _case(name, *arguments) -> Case:
    return Case(name, arguments, mistakes.right(*arguments))


def _text(operation) -> str:
    """Describe an operation: aten::mm (float 64×32, float 32×16)"""
    inputs = (
        f"{kind.removeprefix('c10::') or 'nothing'} {'×'.join(map(str, shape)) or '[]'}"
        for shape, kind in mistakes.listed(operation)
    )
    return f"{operation['name']} ({', '.join(inputs)})"
