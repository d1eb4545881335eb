"""Check exercise 1 of lab 03: compare shared memory and registers with the compiler's report."""

from collections import Counter
from dataclasses import replace
from functools import cache

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_number, expect_tuple, likely
from labs_helpers.course.verdict.returned import expect_order
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.compile_table import compile_table
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET, KIB

CHIPS = {DATASHEET[name].architecture: name for name in ("T4", "A100", "H100")}
# CUDA's default limit. It makes the limits of a program and of its SM very different.
UNASKED = replace(DATASHEET["H100"], shared_bytes_per_block=48 * KIB)
# Each mistake gives a different number for the first; the second has between 128 and 255 accumulators.
TELLING = Config(64, 256, 16, num_warps=8, num_stages=4), Config(128, 192, 32, num_warps=4, num_stages=3)
WORDS = {"too large", "spills", "runs"}
COMPILED_HERE = [Config(64, 64, 32, num_stages=2), Config(128, 128, 64, num_stages=3), Config(64, 256, 64, 8, 8, 4)]


@exercise("03/1", "resources", points=15, minutes=15, reference=exercises.resources)
def resources(student):
    table = recorded.compiled()
    for architecture, name in CHIPS.items():
        answers = _expect_resources(f"on a {name}" if name != "A100" else "on an A100", student, DATASHEET[name])
        rows = table[table["target"] == architecture].to_dict("records")
        agree = sum(answers[recorded.config_of(row)][0] == row["shared"] for row in rows)
        more = "" if agree == len(rows) else "; the others need more than the buffers"
        verdicts = Counter(verdict for *_, verdict in answers.values())
        yield (
            f"{name}: {agree} of {len(rows)} as the compiler reported{more}; {verdicts['too large']} too large, "
            f"{verdicts['spills']} spill"
        )
    _expect_resources("on an L4, whose capability is 89", student, DATASHEET["L4"])
    _expect_resources("on an H100 that gives a program 48 KiB", student, UNASKED)
    for row in _compiled_here():
        config, target = recorded.config_of(row), row["target"]
        if student(config, DATASHEET[CHIPS[target]])[0] != row["shared"]:
            yield f"{config} for {target}: the Triton installed here uses {row['shared']:,} bytes"
    yield f"{len(_compiled_here())} of them compiled just now"


@cache
def _compiled_here() -> list[dict]:
    return compile_table(("sm_80", "sm_90"), COMPILED_HERE)


def _expect_resources(where: str, student, chip) -> dict:
    """Return the answers of `student` for the whole space on `chip`. Raises Wrong at the first wrong answer."""
    answers = {config: student(config, chip) for config in [*TELLING, *grid()]}
    right = {config: exercises.resources(config, chip) for config in answers}
    for config, answer in answers.items():
        case = f"{config} {where}"
        parts = expect_tuple(case, answer, "shared", "accumulators", "verdict")
        expect_order(case, parts, right[config], "shared", "accumulators", "verdict")
        expect_number(case, "shared", parts[0], right[config][0], shared_causes(config, chip, right[config][0]))
        expect_number(case, "accumulators", parts[1], right[config][1], accumulator_causes(config))
    for config, (shared, accumulators, verdict) in right.items():
        if answers[config][2] != verdict:
            raise Wrong(
                f"{config} {where}",
                f"the verdict is {answers[config][2]!r}, expected {verdict!r}: {shared:,} bytes of "
                f"{chip.shared_bytes_per_block:,}, {accumulators} accumulators",
                cause=_verdict_cause(right, chip, [answer[2] for answer in answers.values()]),
            )
    return answers


def _verdict_cause(right: dict, chip, verdicts: list) -> str | tuple[str, ...]:
    if not {*verdicts} <= WORDS:
        return f"the verdict must be one of the words {', '.join(map(repr, sorted(WORDS)))}"
    large, small = ([one[0] for one, said in zip(right.values(), verdicts, strict=True)
                     if (said == "too large") == so] for so in (True, False))  # fmt: skip
    limit = chip.shared_bytes_per_block
    other = large and small and max(small) < min(large) and not max(small) <= limit < min(large)
    return likely(verdict_causes(right.values(), chip), verdicts.__eq__) or (
        "the limit on shared memory is chip.shared_bytes_per_block, not another number" if other else ""
    )


def shared_causes(config, chip, expected: int):
    buffer = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2
    buffers, stages = expected // buffer, buffer * config.num_stages
    yield "float16 has two bytes", expected // 2
    yield "float16 has two bytes, not four", expected * 2
    yield (
        "one buffer holds a tile of A and a tile of B, not a tile of D",
        config.BLOCK_M * config.BLOCK_N * 2 * buffers,
    )
    yield "only A's tile is counted", config.BLOCK_M * config.BLOCK_K * 2 * buffers
    yield "only B's tile is counted", config.BLOCK_N * config.BLOCK_K * 2 * buffers
    yield "this is one buffer; the pipeline has several", buffer
    area = config.BLOCK_M * config.BLOCK_N * config.BLOCK_K
    yield (
        "add the two tiles, (BLOCK_M + BLOCK_N) · BLOCK_K elements; do not multiply them",
        (
            area * 2 * buffers,
            area * 2,
            area * config.BLOCK_K * 2 * buffers,
        ),
    )
    yield (
        "parentheses are missing: (BLOCK_M + BLOCK_N) · BLOCK_K",
        (
            (config.BLOCK_M + config.BLOCK_N * config.BLOCK_K) * 2 * buffers,
            (config.BLOCK_M * config.BLOCK_K + config.BLOCK_N) * 2 * buffers,
        ),
    )
    yield "return bytes, not KiB", (expected // 1024, expected // 1000)
    tile = config.BLOCK_M * config.BLOCK_N
    yield "the tile of D is in registers, not in shared memory", (expected + 4 * tile, expected + 2 * tile)
    if chip.capability < 80:
        yield "without asynchronous copies there is one buffer, whatever num_stages says", (stages, stages - buffer, 0)
    elif chip.capability < 90:
        yield "from 80 on there are num_stages - 1 buffers, because the tile being multiplied is in registers", stages
    else:
        yield "on sm_90 wgmma reads shared memory itself, so the kernel needs all num_stages buffers", stages - buffer
        yield "from 90 on there are num_stages buffers and no more", stages + buffer


def accumulator_causes(config):
    tile, threads = config.BLOCK_M * config.BLOCK_N, 32 * config.num_warps
    sides = (config.BLOCK_M * config.BLOCK_K // threads, config.BLOCK_N * config.BLOCK_K // threads)
    yield "a tile of D has BLOCK_M · BLOCK_N elements, whatever BLOCK_K is", sides
    yield "a warp has 32 threads", (tile // config.num_warps, tile // (64 * config.num_warps))
    yield "num_warps warps share the tile", tile // 32
    yield "a register holds 4 bytes, one float32", 4 * tile // threads
    yield "the accumulator is float32 and not float16", tile // (2 * threads)
    yield (
        "the accumulators hold only D; A and B are in shared memory",
        (tile + (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K) // threads,
    )


def verdict_causes(right, chip):
    """Yield (cause, verdicts): the verdict of each configuration that a common mistake would give."""
    right = [(shared, accumulators) for shared, accumulators, _ in right]

    def verdicts(large, spills, first="too large"):
        both = {"too large": large, "spills": spills}
        order = sorted(both, key=lambda word: word != first)
        return [next((word for word in order if both[word](s, a)), "runs") for s, a in right]

    limit = chip.shared_bytes_per_block
    too_large, spills = lambda s, a: s > limit, lambda s, a: a > 255
    yield (
        "the limit is that of one program, chip.shared_bytes_per_block, not that of its whole SM",
        verdicts(lambda s, a: s > chip.shared_bytes_per_sm, spills),
    )
    yield (
        "shared memory comes first; a program that does not fit cannot even start",
        verdicts(too_large, spills, first="spills"),
    )
    yield "shared memory is not compared with chip.shared_bytes_per_block", verdicts(lambda s, a: False, spills)
    yield (
        "the code contains the limit of one chip; use chip.shared_bytes_per_block",
        verdicts(lambda s, a: s > DATASHEET["H100"].shared_bytes_per_block, spills),
    )
    yield "exactly the limit still fits", verdicts(lambda s, a: s >= limit, spills)
    yield (
        "256 accumulators are already one more than a thread's 255 registers",
        verdicts(too_large, lambda s, a: a > 256),
    )
    for most in (127, 128):
        room = verdicts(too_large, lambda s, a, most=most: a > most)
        yield "128 accumulators leave room for addresses and tiles", room
