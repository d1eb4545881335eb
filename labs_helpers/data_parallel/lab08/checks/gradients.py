"""Compare averaged gradients rank by rank, and name mistakes that affect only some of the parameters."""

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

UNREAD = "NaN, which marks a result that was read before the all-reduce was done: call wait() on its handle first"
ON_ONE = "reduce delivers the sum to one rank only; all_reduce delivers it to all"
FROZEN = "a frozen parameter has requires_grad False: leave its .grad unchanged"
OVERFLOWN = "an overflow on one rank has to reach all ranks, so that they skip the step, like lab 01's loss scaler"
KINDS = {
    "transposed": "the transposed parameter",
    "tied": "the weight that two layers share",
    "unused": "the parameters that not every rank has used",
    "idle": "the parameter that no rank has used",
}
Scopes = Mapping[str, set[str]]  # a name for a set of parameters
Special = Mapping[tuple[str, str], str]  # (the name of the wrong parameters, a sentence) → a better sentence


def gradients() -> Comparison:
    """Return a comparison of the ranks' .grad."""
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

    run: the run that produced `found`. before: `own` of the previous step. more: candidates of this exercise, which
    cover all parameters. unread: the cause of a NaN.
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
    """Return a candidate that equals `right` except for NaN: a tensor holds NaN until its communication is done."""

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
    """Yield the candidates restricted to the tensors that are wrong on some rank; the others are right.

    The sentence names these tensors if `scopes` or their kind has a name for them, or if there are at most two.
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
        text = special.get((scope, said)) or (f"only in {scope}: {said}" if scope else said)
        yield text, partial(_within, changed, tree, right)


def _within(names: set[str], tree: Tree | Callable[[], Tree], right: Tree) -> Tree:
    """Return `right` with the tensors of these names replaced by those of `tree`."""
    made = tree() if callable(tree) else tree
    return {r: {n: made[r][n] if n in names else x for n, x in one.items()} for r, one in right.items()}


def _scopes_of(parts: Sequence[Part]) -> dict[str, set[str]]:
    """Return a name for the parameters of each special kind or dtype, and the set of these parameters."""
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
