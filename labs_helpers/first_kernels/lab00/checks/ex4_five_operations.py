"""Exercise 4 of lab 00: FLOPs, bytes and bounds of five operations, compared with the bytes that PyTorch moves."""

from collections.abc import Callable

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Wrong, expect_number, likely_in_all
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.measure.datasheet import DATASHEET

ROOFS = {name: (DATASHEET[name].fp16_flops, DATASHEET[name].bandwidth) for name in ("T4", "H200")}
ROOFS["a machine of 300 GFLOP/s and 30 GB/s"] = 300e9, 30e9
SIZES = ((8192, 2), (1024, 4), (16, 4))  # n and itemsize
NAMES = tuple(exercises.five_operations(1, 1, 1.0, 1.0))
BY_BOTH = "compare flops / peak_flops with bytes / bandwidth: the bound comes from both roofs, n and itemsize."


@exercise("00/4", "five operations", points=15, minutes=15, reference=exercises.five_operations)
def five_operations(student):
    n, itemsize = 48, 4  # no power of two: 2 · 32 columns are not n
    x, v, V = torch.ones(n, n), torch.ones(n), torch.ones(n, 32)
    operations = dict(
        zip(NAMES, (lambda: x + x, lambda: x.sum(1), lambda: x @ v, lambda: x @ V, lambda: x @ x), strict=True)
    )
    answer, right = (counted(function, n, itemsize, 1e12, 1e12) for function in (student, exercises.five_operations))
    if answer != right and (moved := exchanged(answer, right)):
        cause = f"the numbers of {' and '.join(moved)} are swapped, or belong to other names."
        raise Wrong("", f"{moved[0]} has {answer[moved[0]][:2]}, expected {right[moved[0]][:2]}.", cause=cause)
    for name, operation in operations.items():
        case, (flops, moved, _) = f"{name} at n = {n}, {itemsize} bytes per element", answer[name]
        expect_number(case, "flops", flops, right[name][0], flops_causes(name, n, *right[name]))
        with TorchTraffic() as traffic:
            operation()
        expect_number(case, "bytes", moved, traffic.bytes, bytes_causes(name, n, itemsize, traffic))
        yield f"{name}: {flops:,} FLOPs, {moved:,} bytes, as counted in PyTorch"
    expect_bounds(student)
    for machine in ROOFS:
        yield f"bounds under the roofs of {machine}"


def counted(function, *arguments) -> dict:
    """Return the answer, with tuples in place of lists. Raise Wrong unless it maps each of the five names to three
    values."""
    answer, keys = function(*arguments), ", ".join(map(repr, NAMES))
    if not isinstance(answer, dict) or set(answer) != set(NAMES):
        cause = "the function returns nothing" if answer is None else ""
        if isinstance(answer, (list, tuple)) and len(answer) == len(NAMES):
            cause = "a list has no names; dict(zip(names, …)) makes it a dict"
        if isinstance(answer, dict) and {_letters(key) for key in answer} == {_letters(key) for key in NAMES}:
            cause = "the keys differ in their spaces, or in the dot ·: take them from `names`, as in names[2]"
        raise Wrong("", f"returned {answer!r:.300}; return a dict with the keys {keys}", cause=cause)
    for name, value in answer.items():
        if not isinstance(value, (tuple, list)) or len(value) != 3:
            raise Wrong(name, f"has {value!r:.80}; give (flops, bytes, bound)")
    return {name: tuple(answer[name]) for name in NAMES}


def exchanged(answer: dict, right: dict) -> list[str]:
    """Return the names whose FLOPs and bytes are swapped among each other; [] if any number belongs to none of them."""
    numbers, wanted = ({name: row[:2] for name, row in rows.items()} for rows in (answer, right))
    wrong = [name for name in NAMES if numbers[name] != wanted[name]]
    same = sorted(numbers[name] for name in wrong) == sorted(wanted[name] for name in wrong)
    return wrong if same else []


def _letters(key) -> str:
    return "".join(letter for letter in str(key) if letter.isalpha())


def flops_causes(name: str, n: int, flops: int, moved: int, _):
    yield "flops and bytes are swapped: the order is (flops, bytes, bound)", moved
    yield "give FLOPs, not MFLOP or GFLOP", (flops / 1e6, flops / 1e9)
    yield "FLOPs do not depend on itemsize", (4 * flops, 2 * flops if "·" not in name else 4 * flops)
    if "·" in name:
        yield "a multiply-add is two FLOPs", flops // 2
    else:
        yield "one addition is one FLOP; nothing is multiplied here", 2 * n * n
        yield "each of the n rows takes n additions, n² in total", n
    if name == "X + Y":
        yield "an element of the sum takes one addition: two matrices are added, n² times", 3 * n * n
    if name == "row sums of X":
        yield "a sum of n numbers is counted as n additions here, not n − 1", n * (n - 1)
    if name == "X · v":
        yield "each of the n elements of the product takes n multiply-adds", 2 * n
    if name == "X · V":
        yield "V has 32 columns, and each is a product X · v", 2 * n * n
        yield "V has 32 columns, not n", 2 * n**3
    if name == "X · Y":
        yield "each of the n² elements of the product takes n multiply-adds", 2 * n * n


def bytes_causes(name: str, n: int, itemsize: int, traffic: TorchTraffic):
    matrix, right = n * n * itemsize, traffic.bytes
    yield "bytes are elements times itemsize", right // itemsize
    yield "this counts bits: multiply elements by itemsize only", 8 * right
    for unit in (1e3, 1e6, 1e9):
        yield "give bytes, not kB, MB or GB", right / unit
    yield "add the result, which is also written", sum(operation.bytes_read for operation in traffic.operations)
    if "Y" in name:
        yield "both matrices are read", right - matrix
        yield "a matrix consists of n² elements, not n", right // n
    if name != "row sums of X":
        yield "only X is counted; add the other operand and the result", matrix
    else:
        yield "the result has one element per row: n, not n²", 2 * matrix
        yield "the result has one element per row: n, not one", matrix + itemsize
    if name == "X · v":
        yield "v and the result each have n elements, not n²", (3 * matrix, 2 * matrix + n * itemsize)
    if name == "X · V":
        yield "V and the result each have n × 32 elements; you count n", matrix + 2 * n * itemsize
        yield "V and the result each have n × 32 elements; you count n²", 3 * matrix
        yield "the result has 32 columns too: n × 32 elements, not n", matrix + 33 * n * itemsize
        yield "V and the result each have n × 32 elements, not n × n × 32", 33 * matrix
        yield "the result has n rows, like X: n × 32 elements, not 32 × 32", matrix + (n + 32) * 32 * itemsize
    if name == "X · Y":
        yield "each element counts once, not once per multiplication", (2 * n * matrix, 2 * n * matrix + matrix)


def expect_bounds(student) -> None:
    """Raise Wrong for the first wrong bound. Its cause must explain the bounds on all machines and at all sizes."""
    given = [(machine, *size, *roofs) for machine, roofs in ROOFS.items() for size in SIZES]
    answers = [counted(student, n, itemsize, *roofs) for _, n, itemsize, *roofs in given]
    expected = [counted(exercises.five_operations, n, itemsize, *roofs) for _, n, itemsize, *roofs in given]
    for (machine, n, itemsize, peak, bandwidth), answer, right in zip(given, answers, expected, strict=True):
        for name in NAMES:
            if answer[name] == right[name]:
                continue
            cause: str | tuple[str, ...] = ()
            if answer[name][:2] != right[name][:2]:
                cause = "a number computed for n = 48 or for 4 bytes is hard-coded in the function"
            elif answer[name][2] not in ("memory", "compute"):
                cause = "the words are 'memory' and 'compute', in lower case"
            else:
                mistaken = [mistaken_bounds(one[3], one[4], r) for one, r in zip(given, expected, strict=True)]
                cause = likely_in_all(mistaken, [tuple(answer[key][2] for key in NAMES) for answer in answers])
            flops, moved, _ = right[name]
            seconds = f"computing takes {flops / peak:.2g} s, moving {moved / bandwidth:.2g} s"
            found = f"{name} is bound by {answer[name][2]!r}, expected {right[name][2]!r}: {seconds}."
            if answer[name][:2] != right[name][:2]:
                found = f"{name} is {answer[name]}, expected {right[name]}."
            raise Wrong(f"n = {n}, {itemsize} bytes per element, {machine}", found, cause=cause, advice=BY_BOTH)


def mistaken_bounds(peak: float, bandwidth: float, right: dict):
    """Yield each mistake with the five bounds that it produces under two roofs. right: the correct rows there."""

    def bounds(computes: Callable[[int, int], bool]) -> tuple[str, ...]:
        return tuple("compute" if computes(flops, moved) else "memory" for flops, moved, _ in right.values())

    yield "the comparison is reversed in every operation", bounds(lambda f, b: f / peak < b / bandwidth)
    yield (
        "flops belong to peak_flops and bytes to bandwidth; here they are divided crosswise",
        bounds(lambda f, b: f / bandwidth >= b / peak),
    )
    yield "FLOPs are compared with bytes; compare seconds with seconds", bounds(lambda f, b: f >= b)
    yield (
        "the bandwidth is missing: moving takes bytes / bandwidth seconds, and the ridge is peak_flops / bandwidth",
        bounds(lambda f, b: f / peak >= b),
    )
    yield "every bound is 'compute'; does // round seconds below 1 down to 0?", bounds(lambda f, b: True)
    for itemsize in (2, 4):
        yield (
            "elements are divided by the bandwidth, not bytes",
            bounds(lambda f, b, size=itemsize: f / peak >= b / size / bandwidth),
        )
    sentence = (
        "the peak is missing: computing takes flops / peak_flops seconds, and the ridge is peak_flops / bandwidth"
    )
    yield sentence, bounds(lambda f, b: f >= b / bandwidth)
    yield (
        "the bound depends only on the operation's name; derive it from both roofs",
        tuple("compute" if name == "X · Y" else "memory" for name in right),
    )
