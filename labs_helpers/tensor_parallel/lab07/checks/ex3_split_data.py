"""Exercise 3 of lab 07: samples that say their number, in grids whose two sizes differ."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.copies import copied, what_changed
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.calls import call
from labs_helpers.tensor_parallel.lab07.checks.refusals import expect_refused
from labs_helpers.tensor_parallel.lab07.checks.samples_causes import Split, cause_of_parts, text

ERRORS = (
    (r"^ValueError.*\n.*\braise\b", "dp_size divides n here, and more is not asked: mp_size need not divide it"),
    (
        r"does not result in an equal division",
        "np.split(x, dp_size) cuts the first axis into dp_size equal parts; another number or axis does not fit",
    ),
    (r"^IndexError: too many indices", "x and y may have any number of dimensions: one slice cuts the first of them"),
    (r"^IndexError", "an index is too large: there are dp_size parts, and dp_idx runs from 0 to dp_size − 1"),
    (r"name '(mp_idx|dp_idx)' is not defined", "a rank's two indices follow from rank and mp_size, as in get_info"),
    (r"name '(comm|mp_comm|dp_comm|MPI)' is not", "nothing is sent: rank is an argument, and so is all the data"),
)
ADVICE = "write down rank, mp_idx and dp_idx of all ranks, and beside each its samples."


@exercise("07/3", "split the data", points=10, minutes=10, reference=exercises.split_data)
def split_data(student):
    for name, split, x_shape, y_shape, dtype in (
        ("mp 2 × dp 3", Split(2, 3, 36), (2,), (), np.float64),
        ("mp 3 × dp 2", Split(3, 2, 24), (4, 3), (5,), np.float32),
        ("mp 2 × dp 3, images in uint8", Split(2, 3, 9), (2, 2, 3), (), np.uint8),
        ("mp 2 × dp 2, x a slice that is not contiguous", Split(2, 2, 8), (3,), (), np.float64),
        ("mp 4 × dp 1", Split(4, 1, 7), (2,), (), np.float64),
        ("mp 1 × dp 4", Split(1, 4, 20), (), (1, 2), np.float64),
        ("1 rank", Split(1, 1, 3), (2,), (), np.float64),
    ):
        case = f"{name}, {split.n} samples"
        x, y = _samples(split.n, x_shape, dtype), _samples(split.n, y_shape, np.int64)
        if "slice" in name:
            x = np.repeat(x, 2, axis=1)[:, ::2]
        _expect_right(case, split, x, y, [_part(case, student, x, y, split, rank) for rank in split.ranks])
        same = f", the same on {split.mp_size} ranks" if split.mp_size > 1 else ""
        yield f"{case}: {split.n // split.dp_size} on each rank{same}"
    for split in (Split(2, 3, 10), Split(1, 4, 6), Split(2, 2, 7)):
        given = _samples(split.n, (2,), np.float64), _samples(split.n, (), np.int64)
        case = f"mp {split.mp_size} × dp {split.dp_size}, {split.n} samples"
        own = [(*given, split.mp_size, split.dp_size)] * len(split.ranks)
        expect_refused(student, _on_each, case, own, partial(_what_happened, split))
    yield "10 samples for 3 models, 6 for 4 and 7 for 2: ValueError on every rank"


def _samples(n: int, shape: tuple, dtype) -> np.ndarray:
    """(n, *shape): all elements of a sample are equal, and no other sample's; in no order, as real data are."""
    values = np.random.default_rng(n).permutation(n)
    return np.broadcast_to(values.reshape(n, *[1] * len(shape)), (n, *shape)).astype(dtype)


def _part(case: str, student, x, y, split: Split, rank: int) -> tuple:
    """What a rank gets. Raises Wrong for an error, for what is no pair, and where what was given has changed."""
    given = copied(x), copied(y)
    answer = call(case, student, *given, split.mp_size, split.dp_size, rank, errors=ERRORS)
    for name, before, now in zip(("x_train", "y_train"), (x, y), given, strict=True):
        if said := what_changed(name, before, now):
            raise Wrong(case, f"rank {rank}: {said}", cause="it is sorted, shuffled or written to in place")
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        shown = f"an array of shape {answer.shape}" if isinstance(answer, np.ndarray) else f"{answer!r:.60}"
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"rank {rank}: returned {shown}; a tuple (x, y) is asked for", cause=cause)
    return tuple(answer)


def _expect_right(case: str, split: Split, x, y, answers: list[tuple]) -> None:
    """answers: each rank's (x, y)."""
    kinds = [(of.dtype, of.shape[1:]) for of in (y, x)]
    if [(getattr(part, "dtype", None), np.shape(part)[1:]) for part in answers[0]] == kinds != kinds[::-1]:
        raise Wrong(case, "rank 0: the first array is of y_train, the second of x_train; the order is (x, y)")
    for i, (name, of) in enumerate((("x", x), ("y", y))):
        found = [_numbers(case, f"rank {rank}: {name}", answer[i], of) for rank, answer in enumerate(answers)]
        right = split.right()
        wrong = [rank for rank in split.ranks if found[rank] != right[rank]]
        if wrong:
            also = f" (and on ranks {', '.join(map(str, wrong[1:]))})" if wrong[1:] else ""
            whole = name == "y" and all(len(part) == split.n for part in found)
            cause = "y is not split: every rank has all of it" if whole else cause_of_parts(split, found)
            said, expected = text(found[wrong[0]]), text(right[wrong[0]])
            raise Wrong(case, said, expected, f"{name} on rank {wrong[0]}{also}", cause, ADVICE)


def _numbers(case: str, name: str, found, of: np.ndarray) -> tuple[int, ...]:
    """The samples of which an answer is made. of: all of them."""
    if not isinstance(found, np.ndarray):
        raise Wrong(case, f"{name} is {type(found).__name__} {found!r:.50}, not a NumPy array")
    if found.shape[1:] != of.shape[1:] or found.ndim != of.ndim:
        cut = found.ndim == of.ndim and len(found) == len(of)
        cause = "the samples lie along the first axis; here another is cut" if cut else ""
        cause = "the samples keep their own shape: a part is (n / dp_size, …)" if found.ndim < of.ndim else cause
        one = "one sample is taken with an index; a slice takes several" if found.shape == of.shape[1:] else cause
        raise Wrong(case, f"{name} has shape {found.shape}, and {name[-1]}_train {of.shape}", cause=one)
    if found.dtype != of.dtype:
        raise Wrong(case, f"{name} is {found.dtype}, and {name[-1]}_train {of.dtype}")
    if not len(found):
        return ()
    rows = found.reshape(len(found), -1)
    if not (rows == rows[:, :1]).all():
        raise Wrong(case, f"{name} has samples that are mixed of several")
    numbers = {value: number for number, value in enumerate(of.reshape(len(of), -1)[:, 0].tolist())}
    strange = [value for value in rows[:, 0].tolist() if value not in numbers]
    if strange:
        raise Wrong(case, f"{name} has {strange[0]}, which is in no sample of {name[-1]}_train")
    return tuple(numbers[value] for value in rows[:, 0].tolist())


def _on_each(student, comm, *arguments):
    return student(*arguments, comm.rank)


def _what_happened(split: Split, answers: list) -> str:
    """What became of the samples that should have been refused."""
    try:
        lengths = [len(x) for x, _ in answers[:: split.mp_size]]
    except TypeError:
        return ""
    counted = " + ".join(map(str, lengths))
    if sum(lengths) < split.n:
        return f"// rounds down, and the models get {counted} of {split.n} samples: some are lost"
    if len(set(lengths)) > 1:
        return f"the parts have {counted} samples; the copies of the model need equally many"
    return ""
