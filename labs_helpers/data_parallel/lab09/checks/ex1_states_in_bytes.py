"""Exercise 1 of lab 09: each stage in each layout, including the published figures for a 7B model on 8 GPUs."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import describe_error, expect_table
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.planner.accounting import GB, LAYOUTS, PARTS, STAGES, bytes_per_parameter, states

ASKED = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")
MASTER, AUTOCAST, BF16 = NAMES = ("bf16 with float32 master", "autocast over float32", "bf16")
CASES = [(7e9, 8, MASTER), (7e9, 8, AUTOCAST), (7e9, 8, BF16), (7.5e9, 64, MASTER), (100, 3, BF16), (10**9, 1, MASTER)]
OTHER_BYTES = {  # (layout, part) → {bytes per parameter: the reason for this wrong count}
    (MASTER, 0): {4: "a bf16 number takes 2 bytes", 6: "the master weights belong to the optimizer"},
    (MASTER, 1): {4: "gradients are bf16 here, 2 bytes each"},
    (MASTER, 2): {
        8: "the two moments and the master weights take 4 bytes each, and one of the three is missing",
        4: "the optimizer keeps two float32 moments and the master weights, 4 bytes each",
        6: "the optimizer's three numbers are float32, 4 bytes each",
        10: "the master weights are float32 too",
        14: "the bf16 parameters do not belong to the optimizer",
        16: "this layout has no float32 copy of the gradients",
    },
    (AUTOCAST, 0): {2: "autocast stores parameters in float32 and creates the 16-bit values temporarily"},
    (AUTOCAST, 1): {2: "gradients have the dtype of their parameters, float32, because autocast does not convert them"},
    (AUTOCAST, 2): {4: "Adam keeps two moments", 12: "the parameters are already float32, so there is no second copy"},
    **{(BF16, part): {4: "a bf16 number takes 2 bytes", 1: "bf16 has 16 bits, 2 bytes"} for part in (0, 1)},
    (BF16, 2): {
        2: "Adam keeps two moments",
        8: "the moments are bf16 here, 2 bytes each",
        12: "this layout has no second copy",
        6: "this layout has no second copy",
    },
}
OTHER_STAGES = {  # part → {stages said to divide it: the reason}; one stage too many, or too few, is handled below
    0: {
        ("ZeRO-1", "ZeRO-2", "ZeRO-3"): "the parameters stay whole through ZeRO-2",
        ("ZeRO-1",): "ZeRO-1 divides the optimizer states, not the parameters",
        ASKED: "DDP divides nothing, and only ZeRO-3 divides the parameters",
    },
    1: {
        (): "ZeRO-2 and ZeRO-3 divide the gradients",
        ASKED: "DDP divides nothing, and ZeRO-1 divides only the optimizer states",
    },
    2: {
        (): "every ZeRO stage divides the optimizer states",
        ("ZeRO-1",): "each stage divides everything that the stage before divides",
        ("ZeRO-3",): "ZeRO-1 and ZeRO-2 already divide the optimizer states",
    },
}
DIVISIONS = (  # bytes divided by ranks
    ("// rounds down, whereas / keeps the fraction", lambda a, b: a // b),
    ("the result is rounded; keep the fraction", lambda a, b: -(-a // b)),
    ("the result is rounded; keep the fraction", lambda a, b: round(a / b)),
)
UNITS = {
    1 / GB: "this is in GB; return bytes",
    8: "this is in bits",
    2.0**-30: "this is in GiB; return bytes",
}
ERRORS = ((r"^KeyError", f"spell the layouts exactly: {', '.join(map(repr, NAMES))}"),)
NOUNS = ("parameters", "gradients", "optimizer states")
ADVICE = "for one parameter, which numbers are stored, in which dtype, and which of them does every rank hold?"


@exercise("09/1", "model states per rank", points=10, minutes=10, reference=exercises.states_in_bytes)
def states_in_bytes(student):
    for count, ranks, layout in CASES:
        case = f"{count:g} parameters on {ranks} rank{'s' * (ranks > 1)}, {layout}"
        try:
            answer = student(count, ranks, layout)
        except Exception as error:
            raise describe_error(student, error, case, ERRORS) from None
        right = {stage: [part.bytes for part in states(count, stage, ranks, layout)] for stage in ASKED}
        other_names = [("use the names of the stages from the docstring", _renamed(answer))] if answer else []
        causes = [other_names, *(_causes(part, count, ranks, layout) for part in range(3))]
        expect_table(case, answer, right, PARTS, causes, ADVICE)
        sums = " / ".join(f"{count * bytes_per_parameter(stage, ranks, layout) / GB:.4g}" for stage in ASKED)
        yield f"{case}: {sums} GB under DDP, ZeRO-1, 2, 3" if count > 1e6 else f"{case}: fractions are kept"


def _renamed(answer) -> dict:
    same = {str(name).lower().replace("-", "").replace(" ", "").replace("stage", "zero") for name in answer}
    return dict(answer) if same == {"ddp", "zero1", "zero2", "zero3"} else {}


def _causes(part: int, count: float, ranks: int, layout: str):
    """Yield candidates: tables of which the column `part` is compared."""
    each = LAYOUTS[layout][part]
    stages = [stage for stage in ASKED if PARTS[part] in STAGES[stage]]

    def table(each, divided=stages, divide=lambda a, b: a / b):
        return {stage: [divide(each * count, ranks) if stage in divided else each * count] * 3 for stage in ASKED}

    for other, said in OTHER_BYTES.get((layout, part), {}).items():
        yield said, table(other)
    for divided, said in OTHER_STAGES[part].items():
        yield said, table(each, divided)
    for factor, said in UNITS.items():
        yield said, table(each * factor)
    for name in NAMES:
        if LAYOUTS[name][part] not in (each, *OTHER_BYTES.get((layout, part), {})):
            yield f"these are the bytes of {name!r}", table(LAYOUTS[name][part])
    if (layout, part) == (MASTER, 2):
        said = "the master weights belong to the optimizer and are divided with its moments"
        for with_master in ((), ("ZeRO-3",), ("ZeRO-2", "ZeRO-3")):
            moments, master = table(8), table(4, with_master)
            yield said, {stage: [a + b for a, b in zip(moments[stage], master[stage], strict=True)] for stage in ASKED}
    for said, divide in DIVISIONS:
        yield said, table(each, divide=divide)
    yield "this is per parameter: multiply by count", table(each / count)
    yield "divided by the number of ranks once too often", table(each / ranks)
    for stage in ASKED:
        said = f"{stage} divides the {NOUNS[part]}" if stage in stages else f"{stage} leaves the {NOUNS[part]} whole"
        yield said, table(each, [one for one in ASKED if (one in stages) != (one == stage)])
