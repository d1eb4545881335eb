"""What ranks ended up with, held against what they should have, and against what mistakes would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.causes import still_possible

Answers = Sequence[Tensor]  # one for each rank
WAITS = "NaN is what a tensor holds here from the start of a collective until its wait(), and freed memory"
NOT_A_NUMBER = f"it was read too early, or freed, or never written; {WAITS}"


def near(found: Tensor, right: Tensor) -> bool:
    """The same shape and, up to rounding in float32, the same numbers."""
    if found.shape != right.shape:
        return False
    return not bool(_off(found, right).any())


def _off(found: Tensor, right: Tensor) -> Tensor:
    """Where they differ by more than sums and divisions in float32 do."""
    found, right = found.detach().double(), right.detach().double()
    bound = 2e-5 * right.abs() + (2e-6 * right.abs().max() if right.numel() else 0.0)
    return ~((found - right).abs() <= bound + 1e-12)


def expect_tensor(case: str, name: str, found, like: Tensor) -> None:
    """Raises Wrong unless `found` is a tensor of `like`'s shape and dtype."""
    if not isinstance(found, Tensor):
        cause = "a return is missing" if found is None else ""
        raise Wrong(case, f"{name} is {found!r:.60}; a tensor is asked for", cause=cause)
    if found.shape != like.shape:
        raise Wrong(case, f"{name} has shape {tuple(found.shape)}, expected {tuple(like.shape)}")
    if found.dtype != like.dtype:
        raise Wrong(case, f"{name} is {found.dtype}, expected {like.dtype}")


def expect_all(
    case: str,
    what: str,
    found: Answers,
    right: Answers,
    causes: Callable[[], Iterable[tuple[str, Answers]]] = lambda: (),
    passed: list | None = None,
    advice: str = "",
) -> None:
    """Raises Wrong unless each rank's vector is `right`. what: its name, as in 'rank 1's {what}'.

    causes(): pairs (sentence, a vector for each rank). passed: of earlier cases, to which those of this one are added.
    """
    passed = [] if passed is None else passed
    for rank, (mine, one) in enumerate(zip(found, right, strict=True)):
        expect_tensor(case, f"rank {rank}'s {what}", mine, one.to(mine.dtype) if isinstance(mine, Tensor) else one)

    def fits(answers: Answers, wanted: Answers = found) -> bool:
        return all(map(near, wanted, answers))

    if not fits(right):
        rank = next(i for i, one in enumerate(right) if not near(found[i], one))
        mine, one = found[rank].detach().double().flatten(), right[rank].double().flatten()
        off = _off(mine, one)
        at = int(off.nonzero()[0])
        element = f", element {at}," if one.numel() > 1 else ""
        cause = likely(((s, a) for s, a in still_possible(causes(), passed) if not fits(a, right)), fits)
        if not cause and (times := _factor(found, right)):
            cause = (f"all of it is {times:.4g} times what it should be: a factor or a division",)
        if not cause and bool(mine.isnan().any()):
            cause = (NOT_A_NUMBER,)
        where = f"rank {rank}'s {what}{element} is {mine[at]:.6g}, expected {one[at]:.6g}"
        more = f" ({int(off.sum())} of {one.numel()} are off)" if one.numel() > 1 else ""
        raise Wrong(case, where + more, cause=cause, advice=advice)
    passed.append((list(causes()), lambda answers: fits(answers, right)))


def _factor(found: Answers, right: Answers) -> float:
    """By how much all numbers of all ranks are too large; 0 where that differs, or there are too few of them."""
    mine, one = (torch.cat([x.detach().double().flatten() for x in each]) for each in (found, right))
    kept = one.abs() > 1e-6 * one.abs().max()
    if found[0].numel() < 2 or not bool(kept.any()):
        return 0.0
    ratios = mine[kept] / one[kept]
    times = float(ratios[0])
    same = bool(((ratios - times).abs() <= 1e-4 * abs(times)).all()) and bool((mine[~kept].abs() < 1e-3).all())
    return times if same and abs(times) > 1e-6 else 0.0


def numbers(n: int, seed: int, whole: bool = True) -> Tensor:
    """(n,) of float32: small integers, whose sums are exact, or normally distributed."""
    generator = torch.Generator().manual_seed(seed)
    if whole:
        return torch.randint(-40, 41, (n,), generator=generator).float()
    return torch.randn(n, generator=generator)
