"""What a pruner that breaks its rule may have done. A mistake is named only where it explains all that the pruner
keeps: in the case that went wrong, and at every recorded shape and on every chip of the cases."""

from typing import NamedTuple

from labs_helpers.course.verdict import likely
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.ranking import ELSEWHERE, may_win, rank
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

HALF_WAVES = (
    "a wave takes its whole time however full it is: count whole waves, as `waves` does, not tiles or tiles over "
    "multiprocessors"
)


class Kept(NamedTuple):
    """`kept` of `given`, for a shape (M, N, K) on a chip."""

    kept: list[Config]
    given: list[Config]
    shape: tuple[int, int, int]
    chip: object

    def ranks(self, **changes) -> list[tuple]:
        return [rank(config, self.shape, self.chip, **changes) for config in self.kept]

    def missing(self, **changes) -> list[Config]:
        """What passes steps 1 and 2 and is estimated better than the last one kept."""
        last, left_out = max(self.ranks(**changes)), [c for c in self.given if c not in self.kept]
        return [
            config
            for config in left_out
            if may_win(config, self.chip) and rank(config, self.shape, self.chip, **changes) < last
        ]


def causes(student, wrong: Kept, limits: bool = False) -> tuple[str, ...]:
    """The mistakes that give just what `student` keeps, everywhere. limits: in steps 1 and 2 and the cut, too."""
    seen = [wrong, *_elsewhere(student)]
    candidates = [*_rankings(seen), *(_limits(seen) if limits else ())]
    return likely(candidates, bool)


def _elsewhere(student):
    """What `student` keeps of the grid in the cases; where that is no list of them, it tells nothing."""
    h200 = [("H200", shape) for shape in recorded.shapes(recorded.measured())]
    for name, shape in (*h200, *ELSEWHERE):
        try:
            kept = student(grid(), *shape, DATASHEET[name])
        except Exception:
            continue
        if isinstance(kept, (list, tuple)) and kept and all(config in grid() for config in kept):
            yield Kept(list(kept), grid(), shape, DATASHEET[name])


def _rankings(seen: list[Kept]):
    """Sentence, and whether a mistake in the ranking gives just what is kept, in its order."""

    def so_ranked(**changes) -> bool:
        def fits(one: Kept) -> bool:
            ranks = one.ranks(**changes)
            return ranks == sorted(ranks) and not one.missing(**changes)

        return all(map(fits, seen))

    yield "the order is turned around", so_ranked(sign=-1)
    yield "M and N are swapped in the waves", so_ranked(swapped=True)
    counts = {sheet.multiprocessors for sheet in DATASHEET.values()}
    yield "the waves are counted for another chip than `chip`", any(so_ranked(at_once=count) for count in counts)
    yield "waves returns three numbers, and the second is the count: waves(…)[1]", so_ranked(whole=True)
    yield "the waves are missing from the estimate", so_ranked(times=lambda *_: 1)
    fractions = (lambda tiles, count, at_once: tiles, lambda tiles, count, at_once: tiles / at_once)  # rounded apart
    yield HALF_WAVES, any(so_ranked(times=fraction) for fraction in fractions)
    yield (
        "the last, partial wave takes its time too: the waves are rounded down",
        so_ranked(times=lambda tiles, count, at_once: tiles // at_once),
    )
    yield "what one tile costs is missing from the estimate", so_ranked(tile=False)
    yield "the edges, 32 · (BLOCK_M + BLOCK_N), are missing from the estimate", so_ranked(edges=0)
    yield "of equal estimates the order is not decided by the accumulators", so_ranked(ties=False)


def _limits(seen: list[Kept]):
    """Sentence, and whether a mistake in steps 1 and 2, or in the cut, gives just what is kept."""
    h200 = DATASHEET["H200"]

    def so_limited(rule) -> bool:
        def keeps(config, chip):
            return rule(*exercises.resources(config, chip)[:2], chip)

        return all(
            all(keeps(c, one.chip) for c in one.kept) and not any(keeps(c, one.chip) for c in one.missing())
            for one in seen
        )

    yield (
        "40% of the shared memory is the least, not the most",
        so_limited(lambda shared, _, chip: shared <= 0.4 * chip.shared_bytes_per_block),
    )
    yield "32 accumulators are the least, not the most", so_limited(lambda _, accumulators, chip: accumulators <= 32)
    yield "exactly 32 accumulators are enough", so_limited(lambda _, accumulators, chip: accumulators > 32)
    yield (
        "the 40% are of a program's shared memory on `chip`, not of another chip's",
        so_limited(lambda shared, *_: shared >= 0.4 * h200.shared_bytes_per_block),
    )

    def first_come(one: Kept) -> list[Config]:
        return [config for config in one.given if may_win(config, one.chip)][: len(one.kept)]

    yield (
        "the list is cut before it is sorted: the first ones stay, not the best",
        all(set(one.kept) == set(first_come(one)) for one in seen),
    )
