"""Exercise 3 of lab 03: pruning, held against the sweeps recorded on an H200."""

from labs_helpers.compile.launches import record_launches
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET


@exercise("03/3", "pruning", points=10, minutes=15, reference=exercises.prune)
def prune(student):
    frame = recorded.measured()
    for shape in recorded.shapes(frame):
        case = "×".join(map(str, shape)) + " on an H200"
        with record_launches() as launches:
            kept = student(grid(), *shape, DATASHEET["H200"])
        _expect_kept(case, kept, DATASHEET["H200"])
        if launches:
            raise Wrong(case, f"{launches[0].name} was started; pruning runs nothing")
        bench = recorded.Recorded(frame, "fused_matmul", shape)
        best, ms = bench.best()
        lost = min(map(bench.time, kept)) / ms - 1
        if lost > 0.01:
            found = f"the best of what is kept takes {1 + lost:.2f} times the recorded best, {best}"
            raise Wrong(case, f"{found}: more than 1% is lost.", advice=_look_at(best, shape, DATASHEET["H200"]))
        yield f"{case}: {len(kept)} of {len(grid())} kept, the best within {lost:.1%}"
    for name in ("T4", "A100"):
        kept = student(grid(), 4096, 4096, 4096, DATASHEET[name])
        _expect_kept(f"4096×4096×4096 on a {name}", kept, DATASHEET[name])
        yield f"on a {name} {len(kept)} are kept, and all of them run"


def _expect_kept(case: str, kept, chip) -> None:
    everything = grid()
    if not isinstance(kept, (list, tuple)) or not all(isinstance(config, Config) for config in kept):
        raise Wrong(case, f"returned {kept!r:.80}; a list of configurations is asked for")
    if len(set(kept)) != len(kept):
        raise Wrong(case, "a configuration is kept twice")
    if strange := set(kept) - set(everything):
        raise Wrong(case, f"{min(strange, key=str)} was not among those given")
    if not kept:
        advice = "take each limit from the chip, as in chip.shared_bytes_per_block; bytes that stand for one chip do "
        raise Wrong(case, f"nothing is kept; {len(everything)} were given.", advice=f"{advice}not fit another.")
    if len(kept) > 0.4 * len(everything):
        raise Wrong(
            case,
            f"{len(kept)} of {len(everything)} are kept; at most 40% are worth a measurement.",
            cause="nothing is cut off after the ranking, or a rule drops too little.",
        )
    for config in kept:
        if (verdict := exercises.resources(config, chip)[2]) != "runs":
            found = f"{config} is kept, whose verdict is {verdict!r}."
            raise Wrong(case, found, cause="resources is not asked, or for another chip.")


def _look_at(best, shape, chip) -> str:
    _, count, last = exercises.waves(*shape[:2], best, chip.multiprocessors)
    shared = exercises.resources(best, chip)[0] // 1024
    return (
        f"find the rule of yours that drops the best, or ranks it low. It takes {count} waves, the last {last:.0%} "
        f"full, {shared} KB of shared memory, and its tile moves few bytes for its work."
    )
