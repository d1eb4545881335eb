"""What proves the first three exercises of lab 03 right; the others stand in check_search.py and check_cache.py."""

from __future__ import annotations

from functools import cache

from labs_helpers.compile.launches import record_launches
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.gemm.tuning.sweep import compile_table
from labs_helpers.measure.datasheet import DATASHEET

CHIPS = ("T4", "A100", "H100")
LIVE = [Config(64, 64, 32, num_stages=2), Config(128, 128, 64, num_stages=3), Config(64, 256, 64, 8, 8, 4)]


@exercise("03/1", "resources", points=15, minutes=15, reference=exercises.resources)
def resources(student):
    table = recorded.compiled()
    for name in CHIPS:
        chip = DATASHEET[name]
        rows = {recorded.config_of(row): row for row in table[table["target"] == chip.architecture].to_dict("records")}
        for config in [Config(64, 256, 32, num_stages=4), *grid()]:
            _expect_resources(f"{config} on a {name}", student(config, chip), config, chip)
        answers = {config: student(config, chip) for config in rows}
        agree = sum(answers[config][0] == row["shared"] for config, row in rows.items())
        large = sum(verdict == "too large" for *_, verdict in answers.values())
        spill = sum(verdict == "spills" for *_, verdict in answers.values())
        yield (
            f"{name}: {agree} of {len(rows)} as the compiler reported"
            + ("" if agree == len(rows) else "; in the others it needs more than the buffers")
            + f"; {large} too large, {spill} spill"
        )
    for (config, target), shared in compiled_live().items():
        chip = next(DATASHEET[name] for name in CHIPS if DATASHEET[name].architecture == target)
        if student(config, chip)[0] != shared:
            yield f"{config} for {target}: the Triton installed here takes {shared:,} bytes"
    yield f"{len(compiled_live())} of them compiled here and now"


@cache
def compiled_live() -> dict:
    """(Config, target) → bytes of shared memory, for six, compiled on this machine."""
    records = compile_table(("sm_80", "sm_90"), LIVE)
    return {(recorded.config_of(record), record["target"]): record["shared"] for record in records}


def _expect_resources(case: str, answer, config, chip) -> None:
    if not (isinstance(answer, tuple) and len(answer) == 3):
        raise Wrong(case, f"returned {answer!r}; (shared, accumulators, verdict) is asked for")
    shared, accumulators, verdict = answer
    expected, held, truth = exercises.resources(config, chip)
    stages = {"sm_75": 1, "sm_80": config.num_stages - 1, "sm_90": config.num_stages}[chip.architecture]
    tile = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K
    if shared != expected:
        raise Wrong(
            case,
            f"shared is {shared!r}, the compiler needs {expected:,}"
            + _cause(
                shared,
                {
                    "float16 has two bytes": expected // 2,
                    "one buffer holds a tile of A and a tile of B, not a tile of D": config.BLOCK_M
                    * config.BLOCK_N
                    * 2
                    * stages,
                    "only A's tile is counted": config.BLOCK_M * config.BLOCK_K * 2 * stages,
                    "one buffer alone; the pipeline has several": tile * 2,
                    "without asynchronous copies there is one buffer, whatever num_stages says": tile
                    * 2
                    * config.num_stages
                    if chip.architecture == "sm_75"
                    else None,
                    "sm_80 has num_stages - 1 buffers: the tile being multiplied has gone to registers": tile
                    * 2
                    * config.num_stages
                    if chip.architecture == "sm_80"
                    else None,
                    "on sm_90 wgmma reads shared memory itself, so all num_stages buffers are there": tile
                    * 2
                    * (config.num_stages - 1)
                    if chip.architecture == "sm_90"
                    else None,
                },
            ),
        )
    if accumulators != held:
        raise Wrong(
            case,
            f"accumulators is {accumulators!r}, it is {held}: {config.BLOCK_M}·{config.BLOCK_N} float32 "
            f"over {32 * config.num_warps} threads"
            + _cause(
                accumulators,
                {
                    "a warp has 32 threads": config.BLOCK_M * config.BLOCK_N // config.num_warps,
                    "num_warps warps share the tile": config.BLOCK_M * config.BLOCK_N // 32,
                    "a register holds 4 bytes, one float32": 4 * held,
                    "the accumulator is float32 and not float16": held // 2,
                },
            ),
        )
    if verdict != truth:
        raise Wrong(
            case,
            f"the verdict is {verdict!r}, expected {truth!r}: {expected:,} bytes of "
            f"{chip.shared_bytes_per_block:,}, {held} accumulators"
            + _cause(
                verdict,
                {
                    "exactly the limit still fits": "too large" if expected == chip.shared_bytes_per_block else 0,
                    "shared memory comes first, against chip.shared_bytes_per_block: what does not fit does not "
                    "even start": verdict if truth == "too large" else 0,
                    "256 accumulators are already one more than a thread's 255 registers": "runs"
                    if truth == "spills"
                    else 0,
                    "128 accumulators leave room for addresses and tiles": "spills",
                },
            ),
        )


@exercise("03/2", "waves", points=10, minutes=10, reference=exercises.waves)
def waves(student):
    for M, N, config, at_once in (
        (4096, 4096, Config(128, 256, 64), 132),
        (1152, 4096, Config(128, 256, 64), 132),
        (2048, 1024, Config(128, 64, 32), 4),
        (100, 1000, Config(64, 256, 32), 3),
        (1, 1, Config(64, 64, 32), 132),
        (1024, 1056, Config(128, 64, 32), 136),
    ):
        case = f"{M}×{N}, tiles of {config.BLOCK_M}×{config.BLOCK_N}, {at_once} at once"
        answer = student(M, N, config, at_once)
        if not (isinstance(answer, tuple) and len(answer) == 3):
            raise Wrong(case, f"returned {answer!r}; (tiles, waves, last) is asked for")
        tiles, count, last = exercises.waves(M, N, config, at_once)
        if answer[0] != tiles:
            raise Wrong(
                case,
                f"tiles is {answer[0]!r}, expected {tiles}"
                + _cause(
                    answer[0],
                    {
                        "a partial tile is a tile too: round up": (M // config.BLOCK_M) * (N // config.BLOCK_N),
                        "each of the two directions rounds up by itself": -(
                            -M * N // (config.BLOCK_M * config.BLOCK_N)
                        ),
                        "BLOCK_M and BLOCK_N are swapped": -(-M // config.BLOCK_N) * -(-N // config.BLOCK_M),
                    },
                ),
            )
        if answer[1] != count:
            raise Wrong(
                case,
                f"waves is {answer[1]!r}, expected {count}"
                + _cause(
                    answer[1],
                    {
                        "the last, partial wave takes its time too: round up": tiles // at_once,
                        "a wave is whole: round up": tiles / at_once,
                        "where the last wave is full, none comes after it": count + 1,
                    },
                ),
            )
        if not isinstance(answer[2], (int, float)) or abs(answer[2] - last) > 1e-9:
            raise Wrong(
                case,
                f"last is {answer[2]!r}, expected {last:.4g}"
                + _cause(
                    answer[2],
                    {
                        "a full last wave is 1.0, and its remainder is 0": 0,
                        "the share of all places was given, not that of the last wave": tiles / (count * at_once),
                        "the empty places were counted": 1 - last,
                        "a fraction of the wave is asked for, not tiles": last * at_once,
                    },
                ),
            )
        yield f"{case}: {tiles} tiles, {count} waves, the last {last:.0%} full"
    curve = recorded.wave_curve()
    if not curve.empty:
        rate = (curve["M"] / curve["median_ms"]).to_numpy()
        counts = [
            student(int(row.M), int(row.N), recorded.config_of(row._asdict()), 132)[1]
            for row in curve.itertuples(index=False)
        ]
        steps = [i for i in range(1, len(counts)) if counts[i] > counts[i - 1]]
        dips = sum(rate[i] < rate[i - 1] for i in steps)
        yield f"the recorded H200 is slower after {dips} of the {len(steps)} steps from one wave to the next"


@exercise("03/3", "pruning", points=10, minutes=15, reference=exercises.prune)
def prune(student):
    measured, chip, everything = recorded.measured(), DATASHEET["H200"], grid()
    for shape in recorded.shapes(measured):
        case = "×".join(map(str, shape)) + " on an H200"
        with record_launches() as launches:
            kept = student(list(everything), *shape, chip)
        _expect_kept(case, kept, everything, chip)
        if launches:
            raise Wrong(case, f"{launches[0].name} was started; pruning runs nothing")
        bench = recorded.Recorded(measured, "fused_matmul", shape)
        best, ms = bench.best()
        found = min((bench.time(config) for config in kept), default=float("inf"))
        if found > 1.01 * ms:
            raise Wrong(
                case,
                f"the best of what is kept takes {found / ms:.2f} times the recorded best, {best}: more "
                f"than 1% is lost.\nLikely cause: {_lost(best, shape, chip)}",
            )
        yield f"{case}: {len(kept)} of {len(everything)} kept, the best within {found / ms - 1:.1%}"
    for name in ("T4", "A100"):
        kept = student(list(everything), 4096, 4096, 4096, DATASHEET[name])
        _expect_kept(f"4096×4096×4096 on a {name}", kept, everything, DATASHEET[name])
        yield f"on a {name} {len(kept)} are kept, and all of them run"


def _expect_kept(case: str, kept, everything, chip) -> None:
    if not isinstance(kept, (list, tuple)) or not all(isinstance(config, Config) for config in kept):
        raise Wrong(case, f"returned {kept!r:.80}; a list of configurations is asked for")
    if len(set(kept)) != len(kept):
        raise Wrong(case, "a configuration is kept twice")
    if strange := set(kept) - set(everything):
        raise Wrong(case, f"{min(strange, key=str)} was not among those given")
    if not kept:
        raise Wrong(
            case,
            f"nothing is kept; {len(everything)} were given.\nLikely cause: a limit in bytes that stands "
            "for one chip; take it from chip.shared_bytes_per_block.",
        )
    if len(kept) > 0.4 * len(everything):
        raise Wrong(
            case,
            f"{len(kept)} of {len(everything)} are kept; at most 40% are worth a measurement.\n"
            "Likely cause: nothing is cut off after the ranking, or a rule drops too little.",
        )
    for config in kept:
        if (verdict := exercises.resources(config, chip)[2]) != "runs":
            raise Wrong(
                case,
                f"{config} is kept, whose verdict is {verdict!r}.\n"
                "Likely cause: resources is not asked, or for another chip.",
            )


def _lost(best, shape, chip) -> str:
    count, last = exercises.waves(*shape[:2], best, chip.multiprocessors)[1:]
    return (
        f"it takes {count} waves, the last {last:.0%} full, {exercises.resources(best, chip)[0] // 1024} KB of shared "
        "memory, and its tile moves few bytes for its work. Which rule of yours drops it, or ranks it low?"
    )


def _cause(got, suspects: dict) -> str:
    causes = [
        text for text, value in suspects.items() if value is not None and type(value) is not bool and got == value
    ]
    return f".\nLikely cause: {causes[0]}." if causes else ""
