"""What common mistakes of lab 07's exercise 4 give."""

from itertools import permutations

import numpy as np

from labs_helpers.tensor_parallel.lab07.checks.slices import by_model

NOTHING = (
    r"dispatcher for __array_function__|'NoneType'",
    "None is used as an array: methods with a capital letter return nothing, and the result is in recv; gather and "
    "reduce return None on all ranks but one",
)
ERRORS = (
    NOTHING,
    (
        r"^ValueError: Allgather: recv has \d+ elements",
        "recv holds everybody's x, which is mp_size times as many elements as one",
    ),
)
_TWICE = (
    "an all-reduce of x between zeros sends 2·(p − 1)/p of the whole tensor from each rank, an all-gather half of that"
)
_ROOT = "all ranks' parts go through one rank, which the others wait for"
_ONE_EACH = "a broadcast for each rank: each costs its latency, and the others wait meanwhile"
COSTLY = {
    "Allreduce": _TWICE,
    "allreduce": _TWICE,
    "gather": _ROOT,
    "Gather": _ROOT,
    "Bcast": _ONE_EACH,
    "bcast": _ONE_EACH,
}
AXES = ("rank", "batch", "length", "feature")
RIGHT = (1, 2, 0, 3)  # what reshape can join: the rank before the features


def causes(xs, mp_size):
    """Their answers: each rank's result. xs: each rank's x, with its strides."""
    groups = [np.stack(of_model) for of_model in by_model(xs, mp_size)]
    batch, length, part = xs[0].shape
    whole = (batch, length, mp_size * part)

    def of_all(function):
        """function(parts, mp_idx) on each rank; parts: (mp_size, batch, length, part)."""
        return [function(parts, place) for parts in groups for place in range(mp_size)]

    def joined(parts):
        return np.concatenate(list(parts), axis=2)

    as_it_is = "recv is returned as it is: one part behind the other, the rank before the batch"
    yield as_it_is, of_all(lambda p, _: p)
    yield as_it_is, of_all(lambda p, _: p.reshape(-1))
    yield (
        "a reshape moves nothing: the parts lie behind one another, so the first rows are all of rank 0",
        of_all(lambda p, _: p.reshape(whole)),
    )
    for axis, name in ((0, "batch"), (1, "length")):
        sentence = f"joined along the axis {axis}, the {name}; the features are axis 2"
        yield sentence, of_all(lambda p, _, axis=axis: np.concatenate(list(p), axis=axis))
    for axis in (1, 2, 3):
        moved = of_all(lambda p, _, axis=axis: np.moveaxis(p, 0, axis))
        yield "the rank still has an axis of its own; reshape joins it to the features", moved
    for order in permutations(range(4)):
        if order not in ((0, 1, 2, 3), RIGHT):
            axes = ", ".join(AXES[axis] for axis in order)
            sentence = f"the axes are ({axes}) before reshape, in place of (batch, length, rank, feature)"
            if order == (1, 2, 3, 0):
                sentence = (
                    "the ranks' features alternate: the rank's axis has to stand before the features', not behind"
                )
            yield sentence, of_all(lambda p, _, order=order: p.transpose(order).reshape(whole))
            # recv with another shape, read as if it were filled so
            shape = [groups[0].shape[axis] for axis in order]
            back = [order.index(axis) for axis in RIGHT]
            sentence = f"recv is read as ({axes}), and filled as (rank, batch, length, feature)"
            yield sentence, of_all(lambda p, _, s=shape, b=back: p.reshape(s).transpose(b).reshape(whole))
    yield "the ranks are in reverse order", of_all(lambda p, _: joined(p[::-1]))
    own_first = "each rank has its own features first; they are in the order of the ranks everywhere"
    yield own_first, of_all(lambda p, place: joined(np.roll(p, -place, 0)))
    yield own_first, of_all(lambda p, place: joined([p[place], *np.delete(p, place, 0)]))
    yield "it is x itself: what was collected is not returned", of_all(lambda p, place: p[place])
    yield "it is the rank's own x, mp_size times", of_all(lambda p, place: joined([p[place]] * mp_size))
    yield (
        "it is rank 0's x, mp_size times: every part is read from the same place",
        of_all(lambda p, _: joined([p[0]] * mp_size)),
    )
    alone = "only the rank's own features are there: what the others have is not collected"
    yield alone, of_all(lambda p, place: joined(p * (np.arange(mp_size) == place)[:, None, None, None].astype(p.dtype)))
    for rank in range(mp_size):
        others = (np.arange(mp_size) != rank)[:, None, None, None]
        yield f"rank {rank}'s features are missing", of_all(lambda p, _, o=others: joined(p * o.astype(p.dtype)))
    yield "the parts were added up; they stand side by side", of_all(lambda p, _: p.sum(0, dtype=p.dtype))
    turned = of_all(lambda p, _: joined(p))
    for order in permutations(range(3)):
        if order != (0, 1, 2):
            axes = ", ".join(AXES[1 + axis] for axis in order)
            yield f"the result's axes are ({axes})", [array.transpose(order) for array in turned]
    if np.issubdtype(xs[0].dtype, np.integer):
        for dtype in (np.float64, np.float32):
            through = [array.astype(dtype).astype(array.dtype) for array in turned]
            yield f"the values went through {dtype.__name__}, which does not hold all their digits", through
    if not xs[0].flags.c_contiguous:
        as_they_lie = "x is sent as it lies in memory, and this one is not in C order; np.ascontiguousarray(x) is"
        groups = [np.stack([x.ravel("K").reshape(x.shape) for x in parts]) for parts in by_model(xs, mp_size)]
        yield as_they_lie, of_all(lambda p, _: joined(p))
