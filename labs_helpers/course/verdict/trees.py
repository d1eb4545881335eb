"""Compare an answer with the right one, leaf by leaf: arrays and tensors in lists, tuples and dicts, on one or many
ranks.

    comparison = Comparison("rank {0}'s mean {1}", bound=rounded(8), slack=1e-4, advice="draw two ranks, …")
    comparison.expect(case, found, right, causes)      # found[rank][i] is a tensor

The braces are replaced by the indices and keys on the path to a leaf. A candidate's result is a tree of the same
structure. The candidate is named if it equals the answer everywhere, is not itself right, and would not have failed in
an earlier case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from labs_helpers.course.verdict.causes import Candidates, Passed, likely, still_possible
from labs_helpers.course.verdict.holdings import compared
from labs_helpers.course.verdict.picture import Picture
from labs_helpers.course.verdict.wrong import Wrong

Path = tuple[Any, ...]  # the indices and keys on the path to a leaf, outermost first
Bound = Callable[[Any, np.ndarray], Any]  # (found leaf, right leaf) → the largest error, or one per element


def exact(found: Any, right: np.ndarray) -> float:
    """The bound for values that rounding cannot change."""
    return 0.0


def rounded(times: float) -> Bound:
    """Return a bound of `times` the spacing of the tensor's dtype at its largest right number; 0 for integers."""

    def bound(found: Any, right: np.ndarray) -> float:
        dtype = getattr(found, "dtype", None)
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or not right.size:
            return 0.0
        return times * torch.finfo(dtype).eps * max(1.0, float(np.abs(right).max()))

    return bound


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield (path, leaf) of a tree of lists, tuples and dicts."""
    if isinstance(tree, dict | list | tuple):
        for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(branch, (*path, key))
    else:
        yield path, tree


def as_array(leaf: Any) -> np.ndarray | None:
    """Return a tensor, array or number as an array on the CPU, floating point in float64; None for anything else."""
    if isinstance(leaf, torch.Tensor):
        leaf = leaf.detach().cpu()
        return (leaf.double() if leaf.is_floating_point() else leaf).numpy()
    if isinstance(leaf, np.ndarray | np.generic | int | float):
        array = np.asarray(leaf)
        return array.astype(np.float64) if array.dtype.kind == "f" else array
    return None


@dataclass(frozen=True)
class Difference:
    """The first place in which an answer differs from the right one. wrong: the paths of all leaves that differ."""

    found: dict[Path, Any]
    right: dict[Path, Any]
    wrong: list[Path]

    @property
    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (found, right) for every leaf that is an array on both sides."""
        both = ((as_array(self.found[path]), as_array(self.right[path])) for path in self.right)
        return [(a, b) for a, b in both if a is not None and b is not None]


class Comparison:
    """Compares answers case by case, and drops a mistake that would have failed in an earlier case.

    name: of a leaf, with {0}, {1} … for its path. bound: a function of (found, right), or a tree with the structure of
    the right answer. slack: how far a candidate may be from the answer, relative to it, in addition to four times the
    bound. otherwise: causes to try if no candidate fits, functions of a Difference that return a sentence or ''.
    advice: what to try if no cause fits.
    """

    def __init__(
        self,
        name: str,
        *,
        bound: Bound | Any = exact,
        slack: float = 0.0,
        otherwise: Sequence[Callable[[Difference], str]] = (),
        advice: str = "",
        why: str = "",
    ):
        self.name, self.bound, self.slack, self.why = name, bound, slack, why
        self.otherwise, self.advice = otherwise, advice
        self.passed: list[Passed] = []

    def expect(
        self,
        case: str,
        found: Any,
        right: Any,
        causes: Callable[[], Candidates] = lambda: (),
        told: Callable[[Any], str] = lambda value: "",
    ) -> None:
        """Raise Wrong unless every leaf of `found` equals that of `right`, up to the bound.

        causes(): pairs of a sentence and a tree, or a function that returns a tree; called only if needed. told: a note
        after a number that is shown, such as its origin.
        """
        mine, wanted = dict(leaves(found)), dict(leaves(right))
        if missing := [path for path in wanted if path not in mine] or [path for path in mine if path not in wanted]:
            what = "is missing" if missing[0] in wanted else "is too many"
            raise Wrong(case, f"{self.place(missing[0])} {what}", advice=self.advice)
        wrong = [path for path, leaf in wanted.items() if not self._near(path, mine[path], leaf, 1.0, 0.0)]
        if not wrong:
            self.passed.append((causes(), lambda answer: self._fits(wanted, _made(answer), 1.0, 0.0)))
            return
        difference = Difference(mine, wanted, wrong)
        fitting = [candidate for candidate in causes() if self._explains(mine, wanted, candidate[1])]
        fitting = likely(still_possible(fitting, self.passed), lambda answer: True)
        fitting = fitting or next(filter(None, (cause(difference) for cause in self.otherwise)), "")
        place, where, got, expected = self._words(difference, told)
        picture = self._picture(difference)
        raise Wrong(case, got, expected, where, fitting, self.advice.format(where=place), picture)

    def _picture(self, difference: Difference) -> Picture | None:
        """Return the picture of each rank's content, if all leaves are arrays."""
        found, right = (
            {p: as_array(leaf) for p, leaf in tree.items()} for tree in (difference.found, difference.right)
        )
        if any(array is None for array in (*found.values(), *right.values())):
            return None

        def close(path: Path, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return within(a, b, self._bound(path, difference.found[path], b), 0.0)

        return compared(self.name, found, right, difference.wrong, close)  # type: ignore[arg-type]

    def _explains(self, found: dict[Path, Any], right: dict[Path, Any], answer: Any) -> bool:
        made = _made(answer)
        return self._fits(found, made, 4.0, self.slack) and not self._fits(right, made, 1.0, 0.0)

    def same(self, found: Any, right: Any) -> bool:
        """Tell whether two trees have equal leaves, up to the bound."""
        return self._fits(dict(leaves(found)), right, 1.0, 0.0)

    def place(self, path: Path) -> str:
        """Return the name of a leaf."""
        return self.name.format(*path)

    def _bound(self, path: Path, found: Any, right: np.ndarray) -> Any:
        if callable(self.bound):
            return self.bound(found, right)
        bound = self.bound
        for key in path if isinstance(bound, dict | list | tuple) else ():
            bound = bound[key]
        return np.asarray(as_array(bound))

    def _near(self, path: Path, found: Any, right: Any, times: float, slack: float) -> bool:
        a, b = as_array(found), as_array(right)
        if a is None or b is None:
            return found is right or (a is b is None and found == right)
        if a.shape != b.shape or (a == b).all():
            return a.shape == b.shape
        bound = self._bound(path, found, b)
        if np.shape(bound) not in ((), b.shape):  # a candidate has the wrong shape
            bound = np.max(bound, initial=0.0)
        return not (~within(a, b, times * bound, slack)).any()

    def _fits(self, found: dict[Path, Any], answer: Any, times: float, slack: float) -> bool:
        made = dict(leaves(answer))
        return made.keys() == found.keys() and all(self._near(p, found[p], made[p], times, slack) for p in found)

    def _words(self, difference: Difference, told: Callable[[Any], str]) -> tuple[str, str, str, str]:
        """Return (place, where, found, expected) in words for the first wrong leaf; where says how much is wrong."""
        path, *others = difference.wrong
        found, right = difference.found[path], difference.right[path]
        a, b = as_array(found), as_array(right)
        more = (
            f"; so {'is' if len(others) == 1 else 'are'} {_listed([self.place(p) for p in others])}" if others else ""
        )
        place = self.place(path)
        if a is None or b is None or a.shape != b.shape:
            return place, place + more, *(_form(leaf) for leaf in (found, right))
        bound = self._bound(path, found, b)
        off = ~within(a, b, bound, 0.0)
        with np.errstate(all="ignore"):
            excess = np.nan_to_num(np.abs(np.subtract(a, b, dtype=float)) - bound, nan=np.inf, posinf=np.inf)
        shown_first = np.where(off, excess, -1.0) if np.any(bound) else off  # the worst element, or the first
        at = np.unravel_index(int(shown_first.argmax()), a.shape)
        got, wanted = a[at], b[at]
        if a.ndim:
            place = f"{place}, element {[int(i) for i in at] if a.ndim > 1 else int(at[0])}"
            more = f" ({int(off.sum()):,} of {off.size:,} are off)" * (a.size > 1) + more
        digits = next((d for d in (6, 8, 17) if f"{got:.{d}g}" != f"{wanted:.{d}g}"), 17)
        shown = [(str(x) if isinstance(x, np.integer) else f"{x:.{digits}g}") + told(x) for x in (got, wanted)]
        error, allowed = abs(float(got) - float(wanted)), float(np.broadcast_to(bound, a.shape)[at])
        if self.why and error < 1e3 * allowed:
            shown[1] += f"\n  error {error:.2g}, allowed {allowed:.2g} ({self.why})"
        return place, place + more, *shown


def _made(answer: Any) -> Any:
    return answer() if callable(answer) else answer


def within(a: np.ndarray, b: np.ndarray, bound: Any, slack: float) -> np.ndarray:
    """Return where a is b within the bound, and not finite exactly where b is not."""
    same = (a == b) | ((a != a) & (b != b))
    if not (slack or np.any(bound)):
        return same
    b = b.astype(float)
    with np.errstate(all="ignore"):
        near = np.abs(np.subtract(a, b, dtype=float)) <= bound + slack * np.abs(b)
    return same | (near & np.isfinite(b))


def _form(leaf: Any) -> str:
    """Return 'shape (3, 4)', '3.5', 'None' or 'a list'."""
    shape = getattr(leaf, "shape", None)
    return f"shape {tuple(shape)}" if shape is not None else f"{leaf!r:.60}"


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:3], f"{len(names) - 3} more"] if len(names) > 3 else list(names)
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
