"""Exercise 3 of lab 03: pruning, held against its rule on several chips and against the sweeps recorded on an H200."""

from labs_helpers.compile.launches import record_launches
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

ELSEWHERE = (("T4", (1152, 8192, 1024)), ("A100", (4096, 4096, 4096)), ("A100", (640, 8192, 1024)))


@exercise("03/3", "pruning", points=10, minutes=15, reference=exercises.prune)
def prune(student):
    frame, h200 = recorded.measured(), DATASHEET["H200"]
    for shape in recorded.shapes(frame):
        case = "×".join(map(str, shape)) + " on an H200"
        with record_launches() as launches:
            kept = _kept(case, student, grid(), shape, h200)
        if launches:
            raise Wrong(case, f"{launches[0].name} was started; pruning runs nothing")
        bench = recorded.Recorded(frame, "fused_matmul", shape)
        best, ms = bench.best()
        lost = min(map(bench.time, kept)) / ms - 1
        if lost > 0.01:
            found = f"the best of what is kept takes {1 + lost:.2f} times the recorded best, {best}"
            raise Wrong(case, f"{found}: more than 1% is lost.", advice=_look_at(best, shape, h200))
        yield f"{case}: {len(kept)} of {len(grid())} kept, the best within {lost:.1%}"
    for name, shape in ELSEWHERE:
        case = f"{'×'.join(map(str, shape))} on {'an' if name == 'A100' else 'a'} {name}"
        kept = _kept(case, student, grid(), shape, DATASHEET[name])
        yield f"{case}: {len(kept)} are kept, and all of them run"
    kept = _kept("every other configuration", student, grid()[::2], (4096, 4096, 4096), h200)
    yield f"of every other configuration {len(kept)} are kept"


def _kept(case: str, student, given: list[Config], shape, chip) -> list[Config]:
    """What `student` keeps of `given`; raises Wrong where that breaks the rule."""
    handed = list(given)
    kept = student(handed, *shape, chip)
    if handed != given:
        cause = "configs.remove or .sort changes the list itself, and while a loop walks it, it skips: make a new one."
        raise Wrong(case, "the list of configurations that you were given was changed.", cause=cause)
    if not isinstance(kept, (list, tuple)) or not all(isinstance(config, Config) for config in kept):
        raise Wrong(case, f"returned {kept!r:.80}; a list of configurations is asked for")
    if len(set(kept)) != len(kept):
        raise Wrong(case, "a configuration is kept twice")
    if strange := set(kept) - set(given):
        found = f"{min(strange, key=str)} was not among those given"
        raise Wrong(
            case, found, cause="prune chooses among `configs`; grid() may have more." * (strange <= set(grid()))
        )
    if not kept:
        advice = "take each limit from the chip, as in chip.shared_bytes_per_block; bytes that stand for one chip do "
        raise Wrong(case, f"nothing is kept; {len(given)} were given.", advice=f"{advice}not fit another.")
    if len(kept) > 0.4 * len(given):
        raise Wrong(
            case,
            f"{len(kept)} of {len(given)} are kept; at most 40% are worth a measurement.",
            cause="nothing is cut off after the ranking, or a rule drops too little.",
        )
    for config in kept:
        if (verdict := exercises.resources(config, chip)[2]) != "runs":
            found = f"{config} is kept, whose verdict is {verdict!r}."
            raise Wrong(case, found, cause="resources is not asked, or for another chip.")
    kept = list(kept)
    _expect_order(case, kept, given, shape, chip)
    _expect_best(case, kept, given, shape, chip)
    return kept


def _may_win(config, chip) -> bool:
    """Steps 1 and 2. An answer that keeps more is judged by its order, and by the time it loses."""
    shared, accumulators, verdict = exercises.resources(config, chip)
    return verdict == "runs" and accumulators >= 32 and shared >= 0.4 * chip.shared_bytes_per_block


def _rank(config, shape, chip, at_once=None, swapped=False, waves=True, tile=True, edges=32, sign=1, whole=False):
    """The key of the order: the estimate, and minus the accumulators. What is not given here is a mistake."""
    M, N, _ = shape
    three = exercises.waves(*((N, M) if swapped else (M, N)), config, at_once or chip.multiprocessors)
    count, cost = three[1], config.BLOCK_M * config.BLOCK_N + edges * (config.BLOCK_M + config.BLOCK_N)
    if whole:  # a tuple times a number is the tuple so many times, and tuples are compared from the front
        return (*three, cost), 0
    estimate = (count if waves else 1) * (cost if tile else 1)
    return sign * estimate, -sign * exercises.resources(config, chip)[1]


def _expect_order(case: str, kept: list[Config], given: list[Config], shape, chip) -> None:
    i = next((i for i in range(len(kept) - 1) if _rank(kept[i], shape, chip) > _rank(kept[i + 1], shape, chip)), None)
    if i is None:
        return
    (before, more), (after, fewer) = (_rank(config, shape, chip) for config in kept[i : i + 2])
    found = f"{kept[i]} comes before {kept[i + 1]}: "
    found += (
        f"estimates {before:,} and {after:,}, the lowest first"
        if before != after
        else f"of equal estimates, {before:,}, the one with more accumulators first, and they have {-more} and {-fewer}"
    )
    advice = "print the estimates of what you return, beside what they are made of."
    raise Wrong(case, found, cause=likely(_rankings(kept, given, shape, chip), bool), advice=advice)


def _expect_best(case: str, kept: list[Config], given: list[Config], shape, chip) -> None:
    """Of what passes steps 1 and 2, nothing that is estimated better than the last one kept may be missing."""
    missing = _missing(kept, given, shape, chip)
    if not missing:
        return
    first = min(missing, key=lambda config: _rank(config, shape, chip))
    shared, accumulators, _ = exercises.resources(first, chip)
    told = f"{first} is left out, which is estimated better than the last one kept: it runs, fills {shared:,} bytes of "
    found = f"{told}{chip.shared_bytes_per_block:,}, and has {accumulators} accumulators"
    limits = (
        ("40% of the shared memory is the least, not the most", lambda s, a: s <= 0.4 * chip.shared_bytes_per_block),
        ("32 accumulators are the least, not the most", lambda s, a: a <= 32),
        ("exactly 32 accumulators are enough", lambda s, a: a > 32),
        (
            "the 40% are of a program's shared memory on `chip`, not of another chip's",
            lambda s, a: s >= 0.4 * DATASHEET["H200"].shared_bytes_per_block,
        ),
    )

    def fits(rule) -> bool:
        def keeps(config):
            return rule(*exercises.resources(config, chip)[:2])

        return all(map(keeps, kept)) and not any(map(keeps, missing))

    first_come = [config for config in given if _may_win(config, chip)][: len(kept)]
    causes = [(sentence, fits(rule)) for sentence, rule in limits] + list(_rankings(kept, given, shape, chip))
    causes.append(
        ("the list is cut before it is sorted: the first ones stay, not the best", set(kept) == set(first_come))
    )
    raise Wrong(case, found, cause=likely(causes, bool), advice=_look_at(first, shape, chip))


def _missing(kept, given, shape, chip, **changes) -> list[Config]:
    last = max(_rank(config, shape, chip, **changes) for config in kept)
    return [c for c in given if c not in kept and _may_win(c, chip) and _rank(c, shape, chip, **changes) < last]


def _rankings(kept, given, shape, chip):
    """Sentence, and whether a mistake in the ranking gives just what is kept, in its order."""

    def so_ranked(**changes) -> bool:
        ranks = [_rank(config, shape, chip, **changes) for config in kept]
        return ranks == sorted(ranks) and not _missing(kept, given, shape, chip, **changes)

    yield "the order is turned around", so_ranked(sign=-1)
    yield "M and N are swapped in the waves", so_ranked(swapped=True)
    # Elsewhere than on an H200 it can only be the H200's: all cases there have passed.
    h200 = DATASHEET["H200"].multiprocessors
    others = {h200} if chip.multiprocessors != h200 else {s.multiprocessors for s in DATASHEET.values()} - {h200}
    yield "the waves are counted for another chip than `chip`", any(so_ranked(at_once=count) for count in others)
    yield "waves returns three numbers, and the second is the count: waves(…)[1]", so_ranked(whole=True)
    yield "the waves are missing from the estimate", so_ranked(waves=False)
    yield "what one tile costs is missing from the estimate", so_ranked(tile=False)
    yield "the edges, 32 · (BLOCK_M + BLOCK_N), are missing from the estimate", so_ranked(edges=0)
    ranks = [_rank(config, shape, chip) for config in kept]
    by_estimate = sorted(ranks, key=lambda rank: rank[0]) == ranks != sorted(ranks)
    yield "of equal estimates the order is not decided by the accumulators", by_estimate


def _look_at(best, shape, chip) -> str:
    _, count, last = exercises.waves(*shape[:2], best, chip.multiprocessors)
    shared = exercises.resources(best, chip)[0] // 1024
    return (
        f"find the rule of yours that drops it, or ranks it low. It takes {count} waves, the last {last:.0%} "
        f"full, {shared} KB of shared memory, and its tile moves few bytes for its work."
    )
