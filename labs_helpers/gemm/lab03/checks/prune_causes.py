"""Find the mistake of a pruner that breaks its rule.

A mistake is named only if it explains everything that the pruner keeps: in the case that went wrong, at every recorded
shape and on every chip of the cases.
"""

from typing import NamedTuple

from labs_helpers.course.verdict import likely
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.ranking import ELSEWHERE, cost, may_win, rank
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

COUNT = "waves returns three numbers; the second is the number of waves, waves(…)[1]"
EDGES = "the edges, 32 · (BLOCK_M + BLOCK_N)"
ESTIMATES = (  # a cause, and its estimate as a function of (config, tiles, waves, share of the last, at_once)
    # Multiplying a tuple by a number repeats it, and Python compares tuples from the front.
    (COUNT, lambda c, t, w, s, n: (t, w, s, cost(c)), lambda c, t, w, s, n: s * cost(c)),
    ("the waves are missing from the estimate", lambda c, t, w, s, n: cost(c)),
    (
        "a wave takes the same time however full it is; count whole waves with `waves`, not tiles or tiles / "
        "multiprocessors",
        lambda c, t, w, s, n: t * cost(c),
        lambda c, t, w, s, n: t / n * cost(c),
    ),
    (
        "the partial last wave counts too, but the waves are rounded down",
        lambda c, t, w, s, n: t // n * cost(c),
    ),
    ("multiply the waves by the cost of one tile; do not add the two", lambda c, t, w, s, n: w + cost(c)),
    ("the cost of one tile is missing from the estimate", lambda c, t, w, s, n: w),
    (f"{EDGES}, are missing from the estimate", lambda c, t, w, s, n: w * cost(c, edges=0)),
    (f"the estimate counts only {EDGES}", lambda c, t, w, s, n: w * cost(c, area=0)),
    (f"{EDGES}, count 32 times, not once", lambda c, t, w, s, n: w * cost(c, edges=1)),
    (f"the factor 32 belongs only to {EDGES}", lambda c, t, w, s, n: w * cost(c, edges=32, area=32)),
)


class Kept(NamedTuple):
    """The configurations `kept` of those `given`, for a shape (M, N, K) on a chip."""

    kept: list[Config]
    given: list[Config]
    shape: tuple[int, int, int]
    chip: object

    def rank(self, config, **changes) -> tuple:
        return rank(config, self.shape, self.chip, **changes)

    def may_win(self, config) -> bool:
        return may_win(config, self.chip)

    def ranks(self, **changes) -> list[tuple]:
        return [self.rank(config, **changes) for config in self.kept]

    def missing(self, **changes) -> list[Config]:
        """Return those left out that pass steps 1 and 2 and have a better estimate than the last one kept."""
        last, left_out = max(self.ranks(**changes)), [c for c in self.given if c not in self.kept]
        return [config for config in left_out if self.may_win(config) and self.rank(config, **changes) < last]


def causes(student, wrong: Kept, limits: bool = False) -> tuple[str, ...]:
    """Return the mistakes that explain what `student` keeps in all cases. limits: include steps 1 and 2 and the cut."""
    seen = [wrong, *_elsewhere(student)]
    candidates = [*_rankings(seen), *(_limits(seen) if limits else ())]
    return likely(candidates, bool)


def _elsewhere(student):
    """Yield what `student` keeps of the grid in each case, skipping cases in which it returns no configurations."""
    h200 = [("H200", shape) for shape in recorded.shapes(recorded.measured())]
    for name, shape in (*h200, *ELSEWHERE):
        try:
            kept = student(grid(), *shape, DATASHEET[name])
        except Exception:
            continue
        if isinstance(kept, (list, tuple)) and kept and all(config in grid() for config in kept):
            yield Kept(list(kept), grid(), shape, DATASHEET[name])


def _rankings(seen: list[Kept]):
    """Yield (cause, whether this mistake in the ranking explains what is kept, and its order)."""

    def so_ranked(**changes) -> bool:
        def fits(one: Kept) -> bool:
            ranks = one.ranks(**changes)
            return ranks == sorted(ranks) and not one.missing(**changes)

        return all(map(fits, seen))

    yield "the order is reversed", so_ranked(sign=-1)
    yield "M and N are swapped in the waves", so_ranked(swapped=True)
    counts = {sheet.multiprocessors for sheet in DATASHEET.values()}
    yield "the waves are counted for another chip than `chip`", any(so_ranked(at_once=count) for count in counts)
    for sentence, *estimates in ESTIMATES:
        yield sentence, any(so_ranked(estimate=estimate) for estimate in estimates)
    fewest = so_ranked(ties=-1)
    yield "of equal estimates the one with fewer accumulators comes first: sort by -accumulators", fewest
    yield "among equal estimates, the accumulators do not decide the order", not fewest and so_ranked(ties=0)
    given = [[config for config in one.given if config in one.kept] for one in seen]
    yield (
        "nothing is sorted; the order is that of `configs`",
        all(one.kept == some for one, some in zip(seen, given, strict=True)),
    )


def _limits(seen: list[Kept]):
    """Yield (cause, whether this mistake in steps 1 and 2 or in the cut explains what is kept)."""
    h200 = DATASHEET["H200"]

    def so_limited(rule) -> bool:
        def keeps(config, chip):
            return rule(*exercises.resources(config, chip)[:2], chip)

        return all(
            all(keeps(c, one.chip) for c in one.kept) and not any(keeps(c, one.chip) for c in one.missing())
            for one in seen
        )

    yield (
        "40% of the shared memory is the minimum, not the maximum",
        so_limited(lambda shared, _, chip: shared <= 0.4 * chip.shared_bytes_per_block),
    )
    yield (
        "32 accumulators are the minimum, not the maximum",
        so_limited(lambda _, accumulators, chip: accumulators <= 32),
    )
    yield "exactly 32 accumulators are enough", so_limited(lambda _, accumulators, chip: accumulators > 32)
    yield (
        "take 40% of a program's shared memory on `chip`, not on another chip",
        so_limited(lambda shared, *_: shared >= 0.4 * h200.shared_bytes_per_block),
    )

    def first_come(one: Kept) -> list[Config]:
        return list(filter(one.may_win, one.given))[: len(one.kept)]

    yield (
        "the last ones are kept, not the first",
        all(one.kept == sorted(filter(one.may_win, one.given), key=one.rank)[-len(one.kept) :] for one in seen),
    )
    yield (
        "the list is cut before it is sorted, which keeps the first ones instead of the best",
        all(set(one.kept) == set(first_come(one)) for one in seen),
    )
