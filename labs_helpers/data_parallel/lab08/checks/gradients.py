"""Gradients after averaging, compared rank by rank; a mistake may concern some of the parameters alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch

from labs_helpers.course.verdict.messages.distributed import SENT_AGAIN
from labs_helpers.course.verdict.tree_causes import fewer_bits, scaled
from labs_helpers.course.verdict.trees import Comparison, Difference, rounded
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import Candidate, Everyone, Groups, Tree, means, mistakes
from labs_helpers.data_parallel.lab08.checks.replicas import Part
from labs_helpers.practice.process_groups import ProcessRun

UNREAD = "not a number: it was read before the all-reduce was done; wait() on its handle first"
ON_ONE = "reduce leaves the sum on one rank alone; all_reduce brings it to all"
FROZEN = "a frozen parameter has requires_grad False, and is left alone"
OVERFLOWN = "what has overflowed on one rank has to reach all: by it a step is left out, as lab 01's loss scaler does"
KINDS = {
    "transposed": "the parameter that lies transposed in memory",
    "tied": "the weight that two layers share",
    "unused": "the parameters that not every rank has used",
    "idle": "the parameter that no rank has used",
}
Scopes = Mapping[str, set[str]]  # what a set of names is called
Special = Mapping[tuple[str, str], str]  # (what the wrong ones are called, a sentence) → a better sentence


def gradients() -> Comparison:
    """A comparison of what ranks have in .grad."""
    causes = (_of_frozen, _overflown, fewer_bits, scaled)
    advice = "print rank, name and .grad before and after each collective, on two ranks"
    return Comparison("rank {0}: {1}.grad", bound=rounded(2), otherwise=causes, advice=advice)


def expect_means(
    comparison: Comparison,
    case: str,
    run: ProcessRun,
    found: Everyone,
    own: Everyone,
    groups: Groups | None,
    parts: Sequence[Part],
    *,
    before: Everyone | None = None,
    scopes: Scopes | None = None,
    special: Special | None = None,
    more: Iterable[Candidate] = (),
    unread: str = UNREAD,
) -> None:
    """Raise Wrong unless every rank's gradients are the means of `own` over its group, and frozen parameters have none.

    run: what has left `found`. before: `own` of the step before. more: causes of this exercise, whatever is wrong.
    unread: the cause of a NaN.
    """
    groups = groups or [range(len(own))]
    frozen = {part.name: None for part in parts if part.kind == "frozen"}
    right = {r: {**mean, **frozen} for r, mean in means(own, groups, parts).items()}
    mine = {r: {n: found[r][n] for n in one} for r, one in right.items()}

    def causes():
        nan = ON_ONE if any(call.name == "reduce" for call in run.calls) else unread
        nan = SENT_AGAIN if any(call.again for call in run.started_between(0, "step 0", "finished")) else nan
        candidates = *mistakes(own, groups, parts, before), not_a_number(nan, mine, right)
        yield from of_wrong(comparison, mine, right, candidates, parts, scopes or {}, special or {})
        yield from ((said, {r: {**tree[r], **frozen} for r in right}) for said, tree in more)

    comparison.expect(case, mine, right, causes)


def not_a_number(sentence: str, found: Tree, right: Tree) -> tuple[str, Tree]:
    """A candidate for what is right where it is a number: a rank holds NaN while communication is under way."""

    def nan(x):
        return x is not None and x.is_floating_point() and bool(x.isnan().any())

    return sentence, {r: {n: x if nan(x) else right[r][n] for n, x in one.items()} for r, one in found.items()}


def of_wrong(
    comparison: Comparison,
    found: Tree,
    right: Tree,
    candidates: Iterable[Candidate],
    parts: Sequence[Part],
    scopes: Scopes,
    special: Special,
) -> Iterator[Candidate]:
    """Yield the candidates as mistakes of those tensors alone that are wrong on some rank, all others right.

    The sentence says which, where `scopes` or their kind has a name for them, or they are two at most.
    """

    def of_all(tree, name):
        return {r: one[name] for r, one in tree.items()}

    every = {n for n, x in next(iter(right.values())).items() if x is not None}
    wrong = {n for n in every if not comparison.same(of_all(found, n), of_all(right, n))}
    some, changed = wrong if wrong != every else set(), wrong or every
    known = {**scopes, **_scopes_of(parts)}
    inside = [said for said, names in known.items() if names & every and names & every <= some]
    named = next((said for said in inside if known[said] & every == some), "")
    if not named and some and set().union(*(known[said] & every for said in inside)) == some:
        named = " and ".join(inside)
    scope = named or ", ".join(sorted(some)) * (len(some) <= 2)
    for said, tree in candidates:
        text = special.get((scope, said)) or (f"of {scope} alone: {said}" if scope else said)
        yield text, partial(_within, changed, tree, right)


def _within(names: set[str], tree: Tree | Callable[[], Tree], right: Tree) -> Tree:
    """`right` with the tensors of these names from `tree`."""
    made = tree() if callable(tree) else tree
    return {r: {n: made[r][n] if n in names else x for n, x in one.items()} for r, one in right.items()}


def _scopes_of(parts: Sequence[Part]) -> dict[str, set[str]]:
    """What the parameters of each special kind, or dtype, are called."""
    scopes: dict[str, set[str]] = {}
    for part in parts:
        if part.kind in KINDS:
            scopes.setdefault(KINDS[part.kind], set()).add(part.name)
        if part.dtype != torch.float32:
            scopes.setdefault(f"the parameters in {str(part.dtype).removeprefix('torch.')}", set()).add(part.name)
    return scopes


def _of_frozen(difference: Difference) -> str:
    return FROZEN if any(difference.right[path] is None for path in difference.wrong) else ""


def _overflown(difference: Difference) -> str:
    return OVERFLOWN if any(((abs(b) == torch.inf) & (abs(a) < torch.inf)).any() for a, b in difference.pairs) else ""
