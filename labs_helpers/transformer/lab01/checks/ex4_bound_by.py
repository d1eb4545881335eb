"""Exercise 4 of lab 01: bytes and FLOPs of operations, their times at the roofs, and the share reached."""

from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple, likely
from labs_helpers.course.verdict.causes import Passed, still_possible
from labs_helpers.measure.trace import Event
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.ask import ask
from labs_helpers.transformer.lab01.checks.bound_by_causes import ONLY_PRODUCTS, bound_causes, share_causes
from labs_helpers.transformer.lab01.checks.by_operation_causes import pairs
from labs_helpers.transformer.lab01.checks.operation_costs import Roofs, cost, listed
from labs_helpers.transformer.lab01.checks.practice_traces import event
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

# A GPU's roofs, made small; much faster at FLOPs; much slower at them; and what real operations are asked with.
GPU, TENSOR_CORES, PLAIN, SLOW = Roofs(1e12, 1e11), Roofs(1e14, 1e11), Roofs(2e10, 4e11), Roofs(2e10, 2e9)
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
NO_INPUT = "where no input is left there are 0 bytes and 0 FLOPs: max(…, default=…)"
ERRORS = {
    "TensorList": 'a "TensorList" is not in ITEMSIZE, and counts nothing',
    "Scalar": 'a "Scalar" is not in ITEMSIZE, and counts nothing',
    "": 'what is no tensor has the type "", which is not in ITEMSIZE, and counts nothing',
}
LISTED = 'the shape of a "TensorList" is a list of shapes: its type is not in ITEMSIZE, so it counts nothing'


@exercise("01/4", "bytes, FLOPs or neither", points=15, minutes=20, reference=exercises.bound_by)
def bound_by(student):
    passed: list[Passed] = []
    for name, us, roofs, *inputs in CASES:
        args = {"Input Dims": [shape for _, shape in inputs], "Input type": [kind for kind, _ in inputs]}
        operation = event("cpu_op", name, 5.0, 40.0, id=3)
        operation["args"] |= args
        case = f"{_text(operation)} in {us:g} µs"
        bound, share = _compared(case, student, operation, us, roofs, passed)
        yield f"{case}: {bound}, {share:.0%}"
    for case, events in real_traces():
        took: dict[int, tuple[Event, float]] = {}
        for operation, piece in pairs(events):
            if {"Input Dims", "Input type"} <= operation["args"].keys() and cost(operation).bytes:
                took[id(operation)] = operation, took.get(id(operation), (0, 0.0))[1] + piece["dur"]
        for operation, us in took.values():
            _compared(f"{case}: {_text(operation)}", student, operation, us, SLOW)
        yield f"{case}: {len(took):,} calls"


def _compared(
    case: str, student, operation: Event, us: float, roofs: Roofs, passed: list[Passed] | None = None
) -> tuple[str, float]:
    """What is right. passed: the cases before this one, to which it is added; without them no cause of a share."""
    right = cost(operation)
    errors = ERRORS | ({ValueError: NO_INPUT, IndexError: NO_INPUT} if not right.bytes else {})
    if "TensorList" in operation["args"]["Input type"]:
        errors = errors | {TypeError: LISTED}
    if operation["name"] == "aten::addmm":
        errors = errors | {ValueError: ONLY_PRODUCTS, IndexError: ONLY_PRODUCTS}
    answer = ask(case, student, [operation], errors, lambda given: (given[0], us, *roofs))
    bound, share = expect_tuple(case, answer, "bound", "share")
    at_bytes, at_flops = right.us(roofs)
    longer = max(at_bytes, at_flops)
    expected = "neither" if longer / us < 0.3 else "bytes" if at_bytes > at_flops else "FLOPs"
    where = (
        f"{right.bytes:,} bytes at {roofs.bandwidth:g} bytes/s take {at_bytes:.4g} µs, {right.flops:,} FLOPs at "
        f"{roofs.peak:g} FLOP/s {at_flops:.4g} µs; the operation took {us:g} µs"
    )
    expect_is_number(case, "share", share)
    if not isclose(share, longer / us):
        candidates = () if passed is None else still_possible(share_causes(operation, us, roofs), passed)
        fits = likely(candidates, lambda other: isclose(share, other))
        advice = "print the elements and bytes of each input, then the result's."
        raise Wrong(case, f"share is {share:.6g}, expected {longer / us:.6g}\n  {where}", cause=fits, advice=advice)
    if bound != expected:
        fits = likely(bound_causes(at_bytes, at_flops, us), lambda other: bound == other)
        found = f"bound is {bound!r}, expected {expected!r}; the share, {share:.3g}, is right"
        raise Wrong(case, f"{found}\n  {where}", cause=fits)
    if passed is not None:
        passed.append((share_causes(operation, us, roofs), lambda other: isclose(other, longer / us)))
    return expected, share


def _text(operation: Event) -> str:
    """aten::mm (float 64×32, float 32×16)"""
    inputs = (
        f"{kind.removeprefix('c10::') or 'nothing'} {'×'.join(map(str, shape)) or '[]'}"
        for shape, kind in listed(operation)
    )
    return f"{operation['name']} ({', '.join(inputs)})"
