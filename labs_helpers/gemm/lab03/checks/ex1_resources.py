"""Exercise 1 of lab 03: shared memory and registers of a configuration, held against the compiler's report."""

from collections import Counter
from functools import cache

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_number, expect_tuple, likely
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.gemm.tuning.sweep import compile_table
from labs_helpers.measure.datasheet import DATASHEET

CHIPS = {DATASHEET[name].architecture: name for name in ("T4", "A100", "H100")}
TELLING = Config(64, 256, 32, num_warps=8, num_stages=4)  # each cause gives another number here
COMPILED_HERE = [Config(64, 64, 32, num_stages=2), Config(128, 128, 64, num_stages=3), Config(64, 256, 64, 8, 8, 4)]


@exercise("03/1", "resources", points=15, minutes=15, reference=exercises.resources)
def resources(student):
    table = recorded.compiled()
    for architecture, name in CHIPS.items():
        answers = {config: student(config, DATASHEET[name]) for config in [TELLING, *grid()]}
        for config, answer in answers.items():
            _expect_resources(f"{config} on a {name}", answer, config, DATASHEET[name])
        rows = table[table["target"] == architecture].to_dict("records")
        agree = sum(answers[recorded.config_of(row)][0] == row["shared"] for row in rows)
        more = "" if agree == len(rows) else "; in the others it needs more than the buffers"
        verdicts = Counter(verdict for *_, verdict in answers.values())
        yield (
            f"{name}: {agree} of {len(rows)} as the compiler reported{more}; {verdicts['too large']} too large, "
            f"{verdicts['spills']} spill"
        )
    for row in _compiled_here():
        config, target = recorded.config_of(row), row["target"]
        if student(config, DATASHEET[CHIPS[target]])[0] != row["shared"]:
            yield f"{config} for {target}: the Triton installed here takes {row['shared']:,} bytes"
    yield f"{len(_compiled_here())} of them compiled here and now"


@cache
def _compiled_here() -> list[dict]:
    return compile_table(("sm_80", "sm_90"), COMPILED_HERE)


def _expect_resources(case: str, answer, config, chip) -> None:
    shared, accumulators, verdict = expect_tuple(case, answer, "shared", "accumulators", "verdict")
    right = exercises.resources(config, chip)
    expect_number(case, "shared", shared, right[0], shared_causes(config, chip.architecture, right[0]))
    expect_number(case, "accumulators", accumulators, right[1], accumulator_causes(config))
    if verdict != right[2]:
        raise Wrong(
            case,
            f"the verdict is {verdict!r}, expected {right[2]!r}: {right[0]:,} bytes of "
            f"{chip.shared_bytes_per_block:,}, {right[1]} accumulators",
            cause=likely(verdict_causes(*right, chip.shared_bytes_per_block), lambda other: other == verdict),
        )


def shared_causes(config, architecture: str, expected: int):
    buffer = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2
    buffers, stages = expected // buffer, buffer * config.num_stages
    yield "float16 has two bytes", expected // 2
    yield (
        "one buffer holds a tile of A and a tile of B, not a tile of D",
        config.BLOCK_M * config.BLOCK_N * 2 * buffers,
    )
    yield "only A's tile is counted", config.BLOCK_M * config.BLOCK_K * 2 * buffers
    yield "one buffer alone; the pipeline has several", buffer
    yield {
        "sm_75": ("without asynchronous copies there is one buffer, whatever num_stages says", stages),
        "sm_80": ("sm_80 has num_stages - 1 buffers: the tile being multiplied has gone to registers", stages),
        "sm_90": ("on sm_90 wgmma reads shared memory itself, so all num_stages buffers are there", stages - buffer),
    }[architecture]


def accumulator_causes(config):
    tile = config.BLOCK_M * config.BLOCK_N
    yield "a warp has 32 threads", tile // config.num_warps
    yield "num_warps warps share the tile", tile // 32
    yield "a register holds 4 bytes, one float32", 4 * tile // (32 * config.num_warps)
    yield "the accumulator is float32 and not float16", tile // (64 * config.num_warps)


def verdict_causes(shared: int, accumulators: int, verdict: str, limit: int):
    if shared == limit:
        yield "exactly the limit still fits", "too large"
    if verdict == "too large":
        first = "shared memory comes first, against chip.shared_bytes_per_block: what does not fit does not even start"
        yield from ((first, other) for other in ("spills", "runs"))
    elif accumulators == 256:
        yield "256 accumulators are already one more than a thread's 255 registers", "runs"
    elif accumulators == 128:
        yield "128 accumulators leave room for addresses and tiles", "spills"
