"""Exercise 8 of lab 09: the norm of all shards on all ranks, and one factor for all."""

from functools import partial

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.torch import SIZES_DIFFER
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.on_ranks import expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers

MISSING = "a return is missing; the norm that it had is returned, also where nothing is scaled"
ERRORS = ((SIZES_DIFFER, "shards differ in size; add up numbers, not vectors"),)
ADVICE = "two ranks with shards (3) and (4): what does each bring to the all-reduce, and what is the norm?"


@exercise("09/8", "clip by the global norm", points=10, minutes=10, reference=exercises.clip_shards)
def clip_shards(student):
    of_norm, of_shards = RankTensors("norm", ADVICE), RankTensors("shards")
    for title, ranks, sizes, max_norm, scale, dtype, groups in (
        ("two ranks, one shard each", 2, (6,), 5.0, 1.0, torch.float32, None),
        ("four ranks, three shards each", 4, (7, 1, 12), 30.0, 1.0, torch.float32, None),
        ("a norm below max_norm: nothing is scaled", 3, (5, 4), 1000.0, 1.0, torch.float32, None),
        ("a norm of nearly nothing", 2, (5,), 1e-6, 4e-8, torch.float32, None),
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
            cause = "nothing is scaled: .float() of bfloat16 is a copy; shard.mul_ is the shard" if copied else ""
            raise Wrong(case, "the shards are off by more than one rounding to bfloat16", cause=cause)
        expect_sent(case, run, [("all-reduce", 1)] * (ranks > 1), partial(_cost, len(sizes)))
        yield f"{case}: norm {float(whole[0]):.4g}, times {factors[0]:.3g}"


def _call(student, group, shards, max_norm):
    before, where = list(shards), [one.data_ptr() for one in shards]
    norm = student(shards, max_norm, group)
    same = len(before) == len(shards) and all(a is b for a, b in zip(before, shards, strict=True))
    if not same or [one.data_ptr() for one in before] != where:
        cause = "shards = …, shards[i] = … makes new tensors; mul_, *= and copy_ change those that are there"
        raise Wrong("", "has other tensors in shards now; they are scaled in place", cause=cause)
    return norm, torch.cat([one.double() for one in before])


def _cost(shards: int, sent: list) -> str:
    made = [elements for _, elements in sent]
    if made == [1] * shards:
        return "an all-reduce per shard: numbers of one rank are added up before anything is sent"
    if set(made) == {1}:
        return "one all-reduce is enough: what follows from its result every rank knows by itself"
    if len(made) == 1:
        return "one number is enough: what this rank's shards have is added up first"
    return "the whole gradient is put together again; its norm needs one number of each rank" if made else ""


def _norms(shards, flat, members, max_norm, whole):
    ranks = range(len(flat))

    def over(values):
        """Of each rank the sum over its group."""
        return [sum(values[other] for other in members[r]) for r in ranks]

    def root(values):
        return [one.sqrt() for one in over(values)]

    def of_own(function):
        """Of each rank the sum of a function of its shards."""
        return [sum(function(one.double()) for one in own) for own in shards]

    def largest(values):
        return [max(values[other] for other in members[r]) for r in ranks]

    squares, size = [one.square().sum() for one in flat], [len(group) for group in members]
    each, alone = of_own(torch.Tensor.norm), [one.sqrt() for one in squares]
    yield "the norm of this rank's shards alone: no all-reduce", alone
    yield "norms are added up; squares can be, and the root comes last", over(alone)
    yield "the norms of a rank's shards are added up; squares can be", root([e**2 for e in each])
    yield "the norms of all shards are added up; squares can be", over(each)
    yield "the largest of the ranks' norms; their squares are added up", largest(alone)
    yield "the square of the norm: the root is missing", over(squares)
    yield "the mean over the ranks, not the sum", [w / n**0.5 for w, n in zip(whole, size, strict=True)]
    yield "one shard alone counts, the first", root([own[0].double().square().sum() for own in shards])
    yield "one shard alone counts, the last", root([own[-1].double().square().sum() for own in shards])
    yield "this is the norm after clipping; the one before is asked for", [w.clamp(max=max_norm) for w in whole]
    yield "this is the factor; the norm is asked for", [(max_norm / (w + 1e-6)).clamp(max=1.0) for w in whole]
    yield "the numbers are added up, not their squares", over([one.sum() for one in flat])
    yield "the numbers are added up, not their squares", root([one.sum() for one in flat])
    yield "divided by the number of ranks", [w / n for w, n in zip(whole, size, strict=True)]
    yield "this is the sum of absolute values", over([one.abs().sum() for one in flat])
    yield "the largest number is another norm", largest([one.abs().max() for one in flat])
    low = "added up in bfloat16, which has 8 bits: .float() first"
    yield low, root([sum(s.square().sum() for s in own).double() for own in shards])
    yield low, root([sum(s.square().sum().double() for s in own) for own in shards])
    yield low, root([sum(s.norm().square() for s in own).double() for own in shards])
    rounded = "squares made in bfloat16 are rounded to it: .float() comes first"
    yield rounded, root([sum(s.square().double().sum() for s in own) for own in shards])
    yield "the 1e-6 is added to the norm, not to the squares", [(one + 1e-6).sqrt() for one in over(squares)]


def _scaled(flat, whole, max_norm, factors, first, ranks):
    def times(values):
        return [value * one for value, one in zip(values, flat, strict=True)]

    def by(factor, norms=whole):
        return times([factor(norm) for norm in norms])

    firsts = [torch.cat([f * one[:first], one[first:]]) for f, one in zip(factors, flat, strict=True)]
    yield "the first shard alone is scaled", firsts
    yield "divided by the number of ranks as well", times([f / ranks for f in factors])
    yield "multiplied by max_norm, and not divided by the norm", by(lambda w: max_norm)
    yield "nothing is scaled", flat
    yield "the factor is never more than 1: a small gradient stays as it is", by(lambda w: max_norm / (w + 1e-6))
    own = "scaled by this rank's own norm, so that ranks scale differently"
    yield own, by(lambda w: min(1.0, max_norm / (w + 1e-6)), [float(one.norm()) for one in flat])
    yield "scaled to a norm of 1, not of max_norm", by(lambda w: 1 / (w + 1e-6))
    yield "multiplied where it is to be divided", by(lambda w: (w + 1e-6) / max_norm)
    yield "scaled twice", times([f * f for f in factors])
    cut_off = "numbers are cut off at max_norm one by one; it is the norm that is limited"
    yield cut_off, [one.clamp(-max_norm, max_norm) for one in flat]
    yield "the 1e-6 belongs to the norm: max_norm / (norm + 1e-6)", by(lambda w: min(1.0, max_norm / w) if w else 1.0)
    yield "max_norm squared: it is compared with a norm", by(lambda w: min(1.0, max_norm**2 / (w + 1e-6)))
    first_rank = "the first rank alone scales: what every rank does stands in no if"
    yield first_rank, [factors[0] * flat[0], *flat[1:]]
    yield "only a norm above max_norm is scaled, and then by max_norm / (norm + 1e-6)", by(lambda w: 0.0)
