"""Check exercise 3 of lab 03: test a pruner against its rule on several chips, and against sweeps of an H200."""

from itertools import pairwise
from math import ceil

from labs_helpers.compile.launches import record_launches
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.prune_causes import Kept, causes
from labs_helpers.gemm.lab03.checks.ranking import ELSEWHERE, may_win, rank, waves_of
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

# 40% of these are 9.6, less than any fixed number that keeps the best of the whole grid at every recorded shape.
FEW = 24


@exercise("03/3", "pruning", points=10, minutes=15, reference=exercises.prune)
def prune(student):
    frame, h200, of_grid = recorded.measured(), DATASHEET["H200"], set()
    for shape in recorded.shapes(frame):
        case = "×".join(map(str, shape)) + " on an H200"
        with record_launches() as launches:
            kept = _kept(case, student, grid(), shape, h200)
        if launches:
            raise Wrong(case, f"your function started {launches[0].name}; prune must not run anything")
        of_grid.add(len(kept))
        bench = recorded.Recorded(frame, "fused_matmul", shape)
        best, ms = bench.best()
        lost = min(map(bench.time, kept)) / ms - 1
        if lost > 0.01:
            found = f"the best configuration kept takes {1 + lost:.2f} times as long as the recorded best, {best}"
            raise Wrong(case, f"{found}; more than 1% is lost.", advice=_look_at(best, shape, h200))
        yield f"{case}: {len(kept)} of {len(grid())} kept, the best within {lost:.1%}"
    for name, shape in ELSEWHERE:
        case = f"{'×'.join(map(str, shape))} on {'an' if name == 'A100' else 'a'} {name}"
        kept = _kept(case, student, grid(), shape, DATASHEET[name])
        yield f"{case}: {len(kept)} kept, and all of them run"
    kept = _kept("every other configuration", student, grid()[::2], (4096, 4096, 4096), h200)
    yield f"of every other configuration {len(kept)} are kept"
    good = [config for config in grid() if may_win(config, h200)][:FEW]
    case = f"a list of {FEW}, all of which pass steps 1 and 2"
    kept = _kept(case, student, good, (4096, 4096, 4096), h200, of_grid)
    yield f"of {FEW} good ones {len(kept)} are kept"


def _kept(case: str, student, given: list[Config], shape, chip, of_grid: set[int] | None = None) -> list[Config]:
    """Return what `student` keeps of `given`. Raises Wrong if that breaks the rule. of_grid: see `_expect_few`."""
    handed = list(given)
    kept = student(handed, *shape, chip)
    if handed != given:
        cause = (
            "configs.remove and .sort change the list itself, and a loop over it then skips elements; make a new one."
        )
        raise Wrong(case, "the list of configurations that you were given was changed.", cause=cause)
    if not isinstance(kept, (list, tuple)) or not all(isinstance(config, Config) for config in kept):
        cause = "each element is still a tuple with its estimate; return only its last entry" * (
            isinstance(kept, (list, tuple)) and all(isinstance(one, tuple) and Config in map(type, one) for one in kept)
        )
        raise Wrong(case, f"returned {kept!r:.80}; return a list of configurations", cause=cause)
    if len(set(kept)) != len(kept):
        raise Wrong(case, "a configuration is kept twice")
    if strange := set(kept) - set(given):
        found = f"{min(strange, key=str)} was not among those given"
        raise Wrong(
            case, found, cause="prune chooses from `configs`; grid() may contain more." * (strange <= set(grid()))
        )
    if not kept:
        least = 0.4 * DATASHEET["H200"].shared_bytes_per_block
        fits = any(exercises.resources(config, chip)[0] >= least for config in given if may_win(config, chip))
        advice = "take each limit from the chip, as in chip.shared_bytes_per_block."
        cause = "" if fits else "take 40% of a program's shared memory on `chip`, not on another chip."
        raise Wrong(case, f"nothing is kept; {len(given)} were given.", cause=cause, advice=advice)
    _expect_few(case, len(kept), len(given), of_grid)
    for config in kept:
        if (verdict := exercises.resources(config, chip)[2]) != "runs":
            found = f"{config} is kept, although its verdict is {verdict!r}."
            cause = "your function ignores the verdict of resources(config, chip), or passes another chip."
            raise Wrong(case, found, cause=cause)
    seen = Kept(list(kept), given, shape, chip)
    _expect_order(case, student, seen)
    _expect_best(case, student, seen)
    return seen.kept


def _expect_order(case: str, student, seen: Kept) -> None:
    ranks = seen.ranks()
    i = next((i for i, (before, after) in enumerate(pairwise(ranks)) if before > after), None)
    if i is None:
        return
    (before, more), (after, fewer) = ranks[i : i + 2]
    found = f"{seen.kept[i]} comes before {seen.kept[i + 1]}: "
    found += (
        f"their estimates are {before:,} and {after:,}; put the lowest first"
        if before != after
        else f"both estimates are {before:,}, with {-more} and {-fewer} accumulators; put more accumulators first"
    )
    advice = "print each configuration that you return with its estimate and the parts of the estimate."
    raise Wrong(case, found, cause=causes(student, seen), advice=advice)


def _expect_best(case: str, student, seen: Kept) -> None:
    """Raise Wrong if one is missing that passes steps 1 and 2 with a better estimate than the last one kept."""
    missing = seen.missing()
    if not missing:
        return
    chip = seen.chip
    first = min(missing, key=lambda config: rank(config, seen.shape, chip))
    shared, accumulators, _ = exercises.resources(first, chip)
    told = f"{first} is missing, although its estimate is better than that of the last one kept. It runs, fills "
    found = f"{told}{shared:,} of {chip.shared_bytes_per_block:,} bytes, and has {accumulators} accumulators"
    advice = _look_at(first, seen.shape, chip)
    raise Wrong(case, found, cause=causes(student, seen, limits=True), advice=advice)


def _expect_few(case: str, kept: int, given: int, of_grid: set[int] | None) -> None:
    """Raise Wrong if more than 40% are kept.

    of_grid: the numbers kept of the whole grid in earlier cases, if this case is a short list of good configurations.
    """
    if kept <= 0.4 * given:
        return
    cause = "" if of_grid else "the list is not cut after the ranking, or a rule drops too little."
    if of_grid and len(of_grid) == 1 and kept == min(*of_grid, given):
        (number,) = of_grid
        good = sum(may_win(config, DATASHEET["H200"]) for config in grid())
        uncut = "the list is not cut after the ranking, or " * (number >= good)
        cause = f"{uncut}the cut is at a fixed number; keep at most 40% of `configs`, for any length."
    if of_grid and kept == ceil(0.4 * given):
        cause = f"the share is rounded up: 40% of {given} are {0.4 * given:g}, so keep {kept - 1} at most."
    raise Wrong(case, f"{kept} of {given} are kept; keep at most 40%.", cause=cause)


def _look_at(best, shape, chip) -> str:
    _, count, last = waves_of(*shape[:2], best, chip.multiprocessors)
    shared = exercises.resources(best, chip)[0] // 1024
    return (
        f"find out which of your rules drops it or ranks it low. It takes {count} waves, the last {last:.0%} "
        f"full, and {shared} KiB of shared memory, and its tile loads few bytes per multiply-add."
    )
