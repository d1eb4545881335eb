"""What common mistakes of lab 07's exercise 9 give."""

import torch

from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import ERRORS as OF_GROUPS

ROWS = "reshape goes through rows, whatever the strides are"
ERRORS = (
    (r"x is written to", "in_place=True writes into what it is given; the gradients stay as they are"),
    (r"0-d tensor", "a gradient may be one number, of shape (): numel() counts its elements"),
    (r"'list' object has no attribute|'list' and 'int'", "it is done to one tensor, not to a list of them"),
    (r"setStorage", f"as_strided reads a part as if it lay in memory as the gradient does; {ROWS}"),
    (
        r"^IndexError: tuple index",
        "gradients have different numbers of dimensions, one has none: numel() and reshape(-1)",
    ),
    (r"name 'dp_(size|rank|comm|idx)'", "dp_group has rank and size"),
    *OF_GROUPS,
)
_TWO = "an all_reduce does both, in one call"
COSTLY = {
    "each": "an all-reduce for each gradient: every message costs its latency anew",
    "several": "every message costs its latency anew",
    "all_gather": "every rank gets all ranks' gradients: an all-gather sends p − 1 vectors, an all-reduce 2·(p − 1)/p",
    "reduce_scatter": _TWO,
    "broadcast": "the means are the same on all ranks after an all_reduce already",
    "wider": "what travels has a wider dtype than float32, or there is more of it",
}


def causes(groups, mp_size):
    """Their answers: each rank's list of means. groups: of each data-parallel group its ranks' gradients."""
    dp_size, count = len(groups[0]), len(groups[0][0])
    ranks = [(groups[rank % mp_size], rank // mp_size) for rank in range(dp_size * mp_size)]
    same = [[[one.double() for one in of_one] for of_one in zip(*group, strict=True)] for group in groups]
    sums = [[sum(of_one) for of_one in same[rank % mp_size]] for rank in range(len(ranks))]
    elements = sum(one.numel() for one in sums[0])

    def of_all(function):
        """function(gradients' sum, the group's gradients, the rank's place) for each gradient, on each rank."""
        return [
            [function(*both, rank // mp_size) for both in zip(own, same[rank % mp_size], strict=True)]
            for rank, own in enumerate(sums)
        ]

    yield "the sum, not the mean: a division by dp_group.size is missing", sums
    counted = {
        "the number of all elements": elements,
        "the number of gradients": count,
        "the number of ranks in the grid": dp_size * mp_size,
        "the number of ranks of a model": mp_size,
        "the number of other ranks": dp_size - 1,
        "dp_group.size twice": dp_size**2,
    }
    for what, divisor in counted.items():
        if divisor not in (0, 1, dp_size):
            yield f"a division by {what}", of_all(lambda total, _, __, n=divisor: total / n)
    for divisor in range(2, 65):
        if divisor != dp_size:
            constant = f"a division by {divisor}, whatever dp_group.size is"
            yield constant, of_all(lambda total, _, __, n=divisor: total / n)
    elementwise = "a division by a gradient's number of elements; the mean goes over the ranks"
    yield elementwise, of_all(lambda total, _, __: total / total.numel())
    vectors = [torch.cat([one.reshape(-1) for one in own]) for own in sums]
    for divisor in (1, dp_size):
        means = [vector.mean() / divisor for vector in vectors]
        filled = [[torch.full_like(one, mean) for one in own] for mean, own in zip(means, sums, strict=True)]
        yield "mean() goes over the elements; the mean that is asked for goes over the ranks", filled
    for first in (0, 1):
        by_rank = "a division by dp_group.rank, which is another number on each rank; dp_group.size is the same"
        yield by_rank, of_all(lambda total, _, place, first=first: total / (place + first))
    yield "// rounds down to a whole number; / divides", of_all(lambda total, _, __: total // dp_size)
    alone = "nothing is added up: all_reduce returns the sum, and leaves what it is given as it is"
    yield alone, of_all(lambda _, own, place: own[place])
    yield alone, of_all(lambda _, own, place: own[place] / dp_size)
    twice = "the rank's own gradients are in it twice: the sum has them already"
    for divisor in (1, dp_size, dp_size + 1):
        yield twice, of_all(lambda total, own, place, n=divisor: (total + own[place]) / n)
    for divisor in (1, dp_size):
        first_alone = "all have rank 0's gradients: a broadcast adds nothing up"
        yield first_alone, of_all(lambda _, own, __, n=divisor: own[0] / n)
    some = "only rank 0 divides; every rank has the sum"
    yield some, of_all(lambda total, _, place: total if place else total / dp_size)
    yield "the mean is multiplied by dp_group.size, not divided", of_all(lambda total, _, __: total * dp_size)
    largest = "the largest, not the sum: all_reduce adds up unless it is told otherwise"
    yield largest, of_all(lambda _, own, __: torch.stack(own).amax(0))
    yield largest, of_all(lambda _, own, __: torch.stack(own).amax(0) / dp_size)
    yield "0 everywhere: what is returned is never filled", of_all(lambda total, _, __: total * 0)
    means = of_all(lambda total, _, __: total / dp_size)
    only = "the first gradient alone is averaged; the others are this rank's"
    yield only, [[own[0], *group[place][1:]] for own, (group, place) in zip(means, ranks, strict=True)]
    mixed = "the gradients' order is another in the vector than among the parts"
    yield mixed, [_cut(own[::-1], own) for own in means]
    yield mixed, [_cut(sorted(own, key=torch.Tensor.numel), own) for own in means]
    turned = [[one.reshape(one.shape[::-1]).mT if one.ndim == 2 else one for one in own] for own in means]
    yield "matrices are turned round: a part of the vector lies row by row", turned
    columns = [[one.permute(tuple(reversed(range(one.ndim)))).reshape(one.shape) for one in own] for own in means]
    yield "matrices are turned round: a part of the vector lies row by row", columns
    yield (
        "every part begins at element 0 of the vector",
        [
            [torch.cat([one.reshape(-1) for one in own])[: old.numel()].reshape(old.shape) for old in own]
            for own in means
        ],
    )
    by_memory = f"the elements' order is that in memory; {ROWS}"
    yield by_memory, [_from_memory(group) for group, _ in ranks]
    yield by_memory, [_in_memory(own, group[place]) for own, (group, place) in zip(means, ranks, strict=True)]


def _cut(order, shapes):
    """The vector of the tensors in `order`, cut into tensors shaped as `shapes`."""
    parts = torch.cat([one.reshape(-1) for one in order]).split([one.numel() for one in shapes])
    return [part.reshape(one.shape) for part, one in zip(parts, shapes, strict=True)]


def _by_stride(tensor):
    """Its dimensions in the order in which they lie in memory."""
    return sorted(range(tensor.ndim), key=tensor.stride, reverse=True)


def _from_memory(group):
    """The means of vectors in which each rank's elements stand as in its memory."""
    vectors = [[one.double().permute(_by_stride(one)).reshape(-1) for one in own] for own in group]
    means = [sum(same) / len(group) for same in zip(*vectors, strict=True)]
    return [mean.reshape(old.shape) for mean, old in zip(means, group[0], strict=True)]


def _in_memory(means, gradients):
    """The means' elements, row by row, laid into memory as the gradients' are."""
    laid = []
    for mean, old in zip(means, gradients, strict=True):
        order = _by_stride(old)
        back = [order.index(axis) for axis in range(old.ndim)]
        laid.append(mean.reshape([old.shape[axis] for axis in order]).permute(back))
    return laid
