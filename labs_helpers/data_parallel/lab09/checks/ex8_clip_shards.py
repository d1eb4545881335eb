"""Exercise 8 of lab 09: one norm over all shards on all ranks, and one factor for all of them."""

from functools import partial

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.torch import SIZES_DIFFER
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.on_ranks import expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers

MISSING = "a return is missing: return the original norm, even if nothing is scaled"
ERRORS = ((SIZES_DIFFER, "shards differ in size, so add their sums of squares and not the shards themselves"),)
ADVICE = "two ranks hold the shards (3) and (4). What does each send to the all-reduce, and what is the norm?"


@exercise("09/8", "clip by the global norm", points=10, minutes=10, reference=exercises.clip_shards)
def clip_shards(student):
    of_norm, of_shards = RankTensors("norm", ADVICE), RankTensors("shards")
    for title, ranks, sizes, max_norm, scale, dtype, groups in (
        ("two ranks, one shard each", 2, (6,), 5.0, 1.0, torch.float32, None),
        ("four ranks, three shards each", 4, (7, 1, 12), 30.0, 1.0, torch.float32, None),
        ("a norm below max_norm: nothing is scaled", 3, (5, 4), 1000.0, 1.0, torch.float32, None),
        ("a norm close to zero", 2, (5,), 1e-6, 4e-8, torch.float32, None),
        ("bfloat16, norm in float32", 4, (900, 300), 5.0, 0.01, torch.bfloat16, None),
        ("two groups of two ranks", 4, (6, 3), 20.0, 1.0, torch.float32, [[2, 0], [1, 3]]),
        ("one rank", 1, (8,), 20.0, 1.0, torch.float32, None),
    ):
        shards = [[scale * numbers(n, 10 * rank + i) for i, n in enumerate(sizes)] for rank in range(ranks)]
        shards[-1][-1][-1] = 0.0  # padding
        shards = [[one.to(dtype) for one in own] for own in shards]
        case = f"{title}, max_norm {max_norm:g}"
        run = on_ranks(case, student, _call, [(own, max_norm) for own in shards], errors=ERRORS, groups=groups)
        norms, after = zip(*run.results, strict=True)
        members = places(ranks, groups).of_rank
        flat = [torch.cat([one.double() for one in own]) for own in shards]
        whole = [torch.cat([flat[other] for other in members[rank]]).norm() for rank in range(ranks)]
        of_norm.expect(case, norms, whole, partial(_norms, shards, flat, members, max_norm, whole), none=MISSING)
        factors = [min(1.0, max_norm / (float(norm) + 1e-6)) for norm in whole]
        right = [factor * one for factor, one in zip(factors, flat, strict=True)]
        if dtype == torch.float32:
            causes = partial(_scaled, flat, list(map(float, whole)), max_norm, factors, sizes[0], len(members[0]))
            of_shards.expect(case, after, right, causes, torch.float64)
        elif any(bool(((a - r).abs() > 2**-7 * r.abs() + 1e-9).any()) for a, r in zip(after, right, strict=True)):
            copied = all(map(torch.equal, after, flat))
            cause = (
                "nothing is scaled: .float() copies a bfloat16 tensor, so apply mul_ to the shard itself"
                if copied
                else ""
            )
            raise Wrong(case, "the shards differ by more than one rounding to bfloat16", cause=cause)
        expect_sent(case, run, [("all-reduce", 1)] * (ranks > 1), partial(_cost, len(sizes)))
        yield f"{case}: norm {float(whole[0]):.4g}, times {factors[0]:.3g}"


def _call(student, group, shards, max_norm):
    before, where = list(shards), [one.data_ptr() for one in shards]
    norm = student(shards, max_norm, group)
    same = len(before) == len(shards) and all(a is b for a, b in zip(before, shards, strict=True))
    if not same or [one.data_ptr() for one in before] != where:
        cause = "shards = … and shards[i] = … create new tensors; mul_, *=, and copy_ change the existing ones"
        raise Wrong("", "replaces tensors in shards; scale them in place", cause=cause)
    return norm, torch.cat([one.double() for one in before])


def _cost(shards: int, sent: list) -> str:
    made = [elements for _, elements in sent]
    if made == [1] * shards:
        return "you all-reduce every shard separately: first add the numbers of one rank"
    if set(made) == {1}:
        return "one all-reduce is enough, because every rank can compute the rest from its result"
    if len(made) == 1:
        return "one number is enough: first add the contributions of this rank's shards"
    return "the whole gradient is reassembled, although its norm needs only one number from each rank" if made else ""


def _norms(shards, flat, members, max_norm, whole):
    ranks = range(len(flat))

    def over(values):
        """Return for each rank the sum over its group."""
        return [sum(values[other] for other in members[r]) for r in ranks]

    def root(values):
        return [one.sqrt() for one in over(values)]

    def of_own(function):
        """Return for each rank the sum of a function of its shards."""
        return [sum(function(one.double()) for one in own) for own in shards]

    def largest(values):
        return [max(values[other] for other in members[r]) for r in ranks]

    squares, size = [one.square().sum() for one in flat], [len(group) for group in members]
    each, alone = of_own(torch.Tensor.norm), [one.sqrt() for one in squares]
    yield "the norm covers only this rank's shards: the all-reduce is missing", alone
    yield "you add norms; add squares instead and take the root last", over(alone)
    yield "you add the norms of a rank's shards; add their squares instead", root([e**2 for e in each])
    yield "you add the norms of all shards; add their squares instead", over(each)
    yield "you take the largest norm of all ranks; add their squares instead", largest(alone)
    yield "this is the square of the norm: the root is missing", over(squares)
    yield "the sum over the ranks is needed, not the mean", [w / n**0.5 for w, n in zip(whole, size, strict=True)]
    yield "only the first shard counts", root([own[0].double().square().sum() for own in shards])
    yield "only the last shard counts", root([own[-1].double().square().sum() for own in shards])
    yield "this is the norm after clipping; return the one before", [w.clamp(max=max_norm) for w in whole]
    yield "this is the factor; return the norm", [(max_norm / (w + 1e-6)).clamp(max=1.0) for w in whole]
    yield "you add the numbers, not their squares", over([one.sum() for one in flat])
    yield "you add the numbers, not their squares", root([one.sum() for one in flat])
    yield "divided by the number of ranks", [w / n for w, n in zip(whole, size, strict=True)]
    yield "this is the sum of absolute values", over([one.abs().sum() for one in flat])
    yield "the largest number is a different norm", largest([one.abs().max() for one in flat])
    low = "added in bfloat16, which keeps 8 bits: convert with .float() first"
    yield low, root([sum(s.square().sum() for s in own).double() for own in shards])
    yield low, root([sum(s.square().sum().double() for s in own) for own in shards])
    yield low, root([sum(s.norm().square() for s in own).double() for own in shards])
    rounded = "the squares are rounded to bfloat16: convert with .float() first"
    yield rounded, root([sum(s.square().double().sum() for s in own) for own in shards])
    yield "add the 1e-6 to the norm, not to the squares", [(one + 1e-6).sqrt() for one in over(squares)]


def _scaled(flat, whole, max_norm, factors, first, ranks):
    def times(values):
        return [value * one for value, one in zip(values, flat, strict=True)]

    def by(factor, norms=whole):
        return times([factor(norm) for norm in norms])

    firsts = [torch.cat([f * one[:first], one[first:]]) for f, one in zip(factors, flat, strict=True)]
    yield "only the first shard is scaled", firsts
    yield "also divided by the number of ranks", times([f / ranks for f in factors])
    yield "multiplied by max_norm without dividing by the norm", by(lambda w: max_norm)
    yield "nothing is scaled", flat
    yield "the factor must not exceed 1: a small gradient stays as it is", by(lambda w: max_norm / (w + 1e-6))
    own = "each rank scales by its own norm, so the ranks use different factors"
    yield own, by(lambda w: min(1.0, max_norm / (w + 1e-6)), [float(one.norm()) for one in flat])
    yield "scaled to a norm of 1 instead of max_norm", by(lambda w: 1 / (w + 1e-6))
    yield "multiplied where a division is needed", by(lambda w: (w + 1e-6) / max_norm)
    yield "scaled twice", times([f * f for f in factors])
    cut_off = "each number is clipped to max_norm separately, but the norm must be limited"
    yield cut_off, [one.clamp(-max_norm, max_norm) for one in flat]
    yield "the 1e-6 is missing: max_norm / (norm + 1e-6)", by(lambda w: min(1.0, max_norm / w) if w else 1.0)
    yield "max_norm is squared, but compared with a norm that is not", by(lambda w: min(1.0, max_norm**2 / (w + 1e-6)))
    first_rank = "only the first rank scales: every rank must do so, without an if on the rank"
    yield first_rank, [factors[0] * flat[0], *flat[1:]]
    yield "scale only if the norm exceeds max_norm, and then by max_norm / (norm + 1e-6)", by(lambda w: 0.0)
