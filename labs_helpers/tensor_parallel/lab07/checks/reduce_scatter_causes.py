"""What common mistakes of lab 07's exercise 6 give."""

from itertools import permutations

import numpy as np

from labs_helpers.tensor_parallel.lab07.checks.collect_causes import NOTHING
from labs_helpers.tensor_parallel.lab07.checks.slices import by_model

ERRORS = (
    NOTHING,
    (
        r"^ValueError: Reduce_scatter(_block)?: (send has|recv has|\d+ elements)",
        "recv holds this rank's part, of which send has one for each rank: mp_size times as many elements",
    ),
)
_WHOLE = "every rank gets the whole sum and keeps 1/p of it: an all-reduce sends twice the bytes of a reduce-scatter"
_ALL = "every rank gets all ranks' whole gradients: p times the bytes of a reduce-scatter"
_ROOT = "all ranks' gradients go through one rank, which the others wait for"
COSTLY = {
    "Allreduce": _WHOLE,
    "allreduce": _WHOLE,
    "Allgather": _ALL,
    "allgather": _ALL,
    "Reduce": _ROOT,
    "reduce": _ROOT,
    "gather": _ROOT,
    "Gather": _ROOT,
}
AXES = ("batch", "length", "rank", "feature")
RIGHT = (2, 0, 1, 3)


def causes(gradients, mp_size):
    """Their answers: each rank's result. gradients: each rank's grad_x, with its strides."""
    groups = [np.stack(of_model) for of_model in by_model(gradients, mp_size)]
    batch, length, features = gradients[0].shape
    part = features // mp_size
    blocks = (mp_size, batch, length, part)  # what recv is read as, on each rank
    cut = (batch, length, mp_size, part)

    def of_all(function):
        """function(the model's gradients, the rank's place) on each rank."""
        return [function(parts, place) for parts in groups for place in range(mp_size)]

    def of_sums(function):
        return of_all(lambda parts, place: function(parts.sum(0, dtype=parts.dtype), place))

    def sliced(total, place):
        return total[:, :, place * part : (place + 1) * part]

    yield (
        "blocks of rows in place of features: grad_x is sent in the order batch, length, feature",
        of_sums(lambda total, i: total.reshape(blocks)[i]),
    )
    for order in permutations(range(4)):
        apart = abs(order.index(2) - order.index(3)) > 1 or order.index(3) < order.index(2)  # else below, with 3 axes
        if order != RIGHT and apart:
            axes = ", ".join(AXES[axis] for axis in order)
            sentence = f"what is sent has the axes ({axes}), in place of (rank, batch, length, feature)"
            yield sentence, of_sums(lambda t, i, o=order: t.reshape(cut).transpose(o).reshape(blocks)[i])
    yield (
        "every mp_size-th feature; a rank's lie side by side, as reshape(…, mp_size, part) takes them",
        of_sums(lambda total, i: total[:, :, i::mp_size]),
    )
    for order in permutations(range(3)):
        if order != (0, 1, 2):
            axes = ", ".join(("batch", "length", "feature")[axis] for axis in order)
            read = f"what is sent has the axes ({axes}), and recv is read as (batch, length, feature)"
            yield read, of_sums(lambda t, i, o=order: t.transpose(o).reshape(blocks)[i])
            yield f"the result's axes are ({axes})", of_sums(lambda t, i, o=order: sliced(t, i).transpose(o))
    alone = "the rank's own gradient alone: nothing is added up"
    yield alone, of_all(lambda parts, i: sliced(parts[i], i))
    yield f"{alone}, and blocks of rows in place of features", of_all(lambda parts, i: parts[i].reshape(blocks)[i])
    yield "the rank's own part, mp_size times", of_all(lambda parts, i: sliced(parts[i], i) * mp_size)
    for rank in range(mp_size):
        yield "one rank's gradient alone: nothing is added up", of_all(lambda p, i, rank=rank: sliced(p[rank], i))
    summed = "the parts of the rank's own gradient are added up; the sum goes over the ranks"
    yield summed, of_all(lambda parts, i: sum(np.split(parts[i], mp_size, axis=2)))
    yield "the rank's own part is missing", of_all(lambda p, i: sliced(p.sum(0, dtype=p.dtype) - p[i], i))
    yield "the sum, divided by mp_size: gradients of one loss add up", of_sums(lambda t, i: sliced(t, i) / mp_size)
    yield "the sum, divided by mp_size: gradients of one loss add up", of_sums(lambda t, i: sliced(t, i) // mp_size)
    for by in range(1, mp_size):
        yield "it is another rank's slice of the sum", of_sums(lambda t, i, by=by: sliced(t, (i + by) % mp_size))
    yield "the rank's own part is in it twice", of_all(lambda p, i: sliced(p.sum(0, dtype=p.dtype) + p[i], i))
    for axis, name in ((0, "batch"), (1, "length")):
        for width in (part, gradients[0].shape[axis] // mp_size):
            cut_there = of_sums(lambda t, i, a=axis, n=width: np.moveaxis(t, a, 0)[i * n : (i + 1) * n])
            sentence = f"the sum is sliced along the axis {axis}, the {name}; the features are axis 2"
            yield sentence, [np.moveaxis(array, 0, axis) for array in cut_there]
    yield "the slice is the same on all ranks, the first one's", of_sums(lambda t, _: sliced(t, 0))
    yield "it is the whole sum, of which a rank keeps its slice", of_sums(lambda t, _: t)
    yield "it is the whole sum, divided: a part is a slice of it", of_sums(lambda t, _: t / mp_size)
    yield "it is grad_x itself: what was received is not returned", of_all(lambda parts, i: parts[i])
    yield (
        "the largest, not the sum: op is MPI.SUM unless it is told otherwise",
        of_all(lambda p, i: sliced(p.max(0), i)),
    )
    received = of_all(lambda parts, i: np.stack([sliced(one, i) for one in parts]))
    yield "the parts have all come, and are not added up", received
    yield "the parts have all come, and are not added up", [np.concatenate(list(one), axis=2) for one in received]
    if np.issubdtype(gradients[0].dtype, np.integer):
        for dtype in (np.float64, np.float32):
            through = of_all(lambda p, i, d=dtype: sliced(p.astype(d).sum(0, dtype=d), i).astype(p.dtype))
            yield f"the values went through {dtype.__name__}, which does not hold all their digits", through
    if not gradients[0].flags.c_contiguous:
        lie = "what is sent is not in C order, and is sent as it lies in memory; np.ascontiguousarray puts it in order"
        groups = [
            np.stack([one.ravel("K").reshape(one.shape) for one in parts]) for parts in by_model(gradients, mp_size)
        ]
        yield lie, of_sums(lambda total, i: total.reshape(blocks)[i])
