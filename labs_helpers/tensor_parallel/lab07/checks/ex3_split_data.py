"""Check exercise 3 of lab 07: numbered samples, mostly in grids whose two sizes differ."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.copies import copied, what_changed
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.refusals import expect_refused
from labs_helpers.tensor_parallel.lab07.checks.sample_mistakes import MISTAKES, right, seen

ERRORS = (
    (
        r"^ValueError.*\n.*\braise\b",
        "dp_size divides n, which is len(x_train), and that is the only condition: mp_size need not divide n",
    ),
    (
        r"does not result in an equal division",
        "split the first axis into dp_size equal parts, np.split(x, dp_size); another number or axis does not fit",
    ),
    (r"^IndexError: too many indices", "x and y may have any number of dimensions; slice only the first one"),
    (r"^IndexError: ", "an index is too large; there are dp_size parts, and dp_idx runs from 0 to dp_size − 1"),
    (r"name '(mp_idx|dp_idx)' is not defined", "compute a rank's two indices from rank and mp_size, as in get_info"),
    (
        r"name '(comm|mp_comm|dp_comm|MPI)' is not",
        "this function needs no communication: rank and all data are arguments",
    ),
)
ADVICE = "list rank, mp_idx and dp_idx of all ranks, and the samples of each"
CASES = (  # name, mp_size, dp_size, n, x.shape[1:], y.shape[1:], x.dtype
    ("mp 2 × dp 3", 2, 3, 36, (2,), (), np.float64),
    ("mp 3 × dp 2", 3, 2, 24, (4, 3), (5,), np.float32),
    ("mp 2 × dp 3, images in uint8", 2, 3, 9, (2, 2, 3), (), np.uint8),
    ("mp 2 × dp 2, x a slice that is not contiguous", 2, 2, 8, (3,), (), np.float64),
    ("mp 4 × dp 1", 4, 1, 7, (2,), (), np.float64),
    ("mp 1 × dp 4", 1, 4, 20, (), (1, 2), np.float64),
    ("1 rank", 1, 1, 3, (2,), (), np.float64),
)


@exercise("07/3", "split the data", points=10, minutes=10, reference=exercises.split_data)
def split_data(student):
    for i, name in enumerate(("x", "y")):
        yield from judge(
            student,
            lambda *given, i=i: _numbers_of(student, i, *given),
            [_case(*case, line=name == "y") for case in CASES],
            [(sentence, partial(_of_all, mistake)) for sentence, mistake in MISTAKES],
            told=partial(_told, name),
            errors=ERRORS,
            otherwise=lambda case, found: next(seen(found, case.arguments[0], case.arguments[2]), ""),
            advice=ADVICE,
        )
    for mp_size, dp_size, n in ((2, 3, 10), (1, 4, 6), (2, 2, 7)):
        own = [(_samples(n, (2,)), _samples(n, (), np.int64), mp_size, dp_size)] * (mp_size * dp_size)
        case = f"mp {mp_size} × dp {dp_size}, {n} samples"
        expect_refused(student, _on_rank, case, own, partial(_what_happened, mp_size, n))
    yield "10 samples for 3 models, 6 for 4 and 7 for 2: ValueError on every rank"


def _case(name, mp_size, dp_size, n, *form, line):
    case, arguments = f"{name}, {n} samples", (mp_size, dp_size, n, *form, "slice" in name)
    same = f", the same on {mp_size} ranks" if mp_size > 1 else ""
    return Case(case, arguments, _of_all(right, *arguments), f"{case}: {n // dp_size} on each rank{same}" * line)


def _of_all(function, mp_size, dp_size, n, *_):
    """Return function's samples for each rank."""
    return [function(tuple(range(n)), mp_size, dp_size, rank) for rank in range(mp_size * dp_size)]


def _samples(n: int, shape: tuple, dtype=np.float64, gaps: bool = False) -> np.ndarray:
    """Return (n, *shape) data in random order, in which all elements of a sample hold the same unique number."""
    values = np.random.default_rng(n).permutation(n)
    made = np.broadcast_to(values.reshape(n, *[1] * len(shape)), (n, *shape)).astype(dtype)
    return np.repeat(made, 2, axis=1)[:, ::2] if gaps else made


def _numbers_of(student, i, mp_size, dp_size, n, x_shape, y_shape, dtype, gaps):
    """Return the numbers of the samples that each rank gets from x (i = 0) or y (i = 1)."""
    whole = _samples(n, x_shape, dtype, gaps), _samples(n, y_shape, np.int64)
    found = []
    for rank in range(mp_size * dp_size):
        given = copied(whole[0]), copied(whole[1])
        answer = student(*given, mp_size, dp_size, rank)
        for name, before, now in zip(("x_train", "y_train"), whole, given, strict=True):
            if said := what_changed(name, before, now):
                raise Wrong("", f"rank {rank}: {said}", cause="the function sorts, shuffles or writes it in place")
        found.append(_numbers(rank, i, expect_tuple("", answer, "x", "y"), whole))
    return found


def _numbers(rank: int, i: int, answer: tuple, whole: tuple[np.ndarray, np.ndarray]) -> tuple[int, ...]:
    part, of, name = answer[i], whole[i], "xy"[i]
    where = f"rank {rank}: {name} "
    if not isinstance(part, np.ndarray):
        raise Wrong("", f"{where}is {type(part).__name__} {part!r:.50}, not a NumPy array")
    if (part.shape[1:], part.ndim, part.dtype) != (of.shape[1:], of.ndim, of.dtype):
        cause = "the samples keep their own shape: a part is (n / dp_size, …)" if part.ndim < of.ndim else ""
        if part.shape == of.shape[1:]:
            cause = "an index takes a single sample; use a slice to take several"
        elif part.ndim == of.ndim and len(part) == len(of):
            cause = "the samples are along the first axis, but another axis is split"
        if [one.shape[1:] for one in map(np.asarray, answer)] == [one.shape[1:] for one in whole[::-1]]:
            cause = "the order is (x, y)"
        found = f"{where}has shape {part.shape} in {part.dtype}, but {name}_train has {of.shape} in {of.dtype}"
        raise Wrong("", found, cause=cause)
    number = {value: i for i, value in enumerate(of.reshape(len(of), -1)[:, 0].tolist())}
    rows = part.reshape(len(part), -1) if part.size else part
    strange = [row for row in rows.tolist() if row[0] not in number or len(set(row)) > 1]
    if strange:
        raise Wrong("", f"{where}has {strange[0][:5]}, which is in no sample of {name}_train")
    return tuple(number[row[0]] for row in rows.tolist())


def _told(name: str, case: Case, found: list) -> tuple[str, str, str]:
    wrong = [rank for rank, mine in enumerate(found) if mine != case.right[rank]]
    also = f" (and on ranks {', '.join(map(str, wrong[1:]))})" if wrong[1:] else ""
    return _said(found[wrong[0]]), _said(case.right[wrong[0]]), f"{name} on rank {wrong[0]}{also}"


def _said(samples: tuple[int, ...]) -> str:
    """Describe samples as 'samples 4 to 7', 'samples 0, 3, 6, …' or 'no samples'."""
    if len(samples) > 1 and samples == tuple(range(samples[0], samples[0] + len(samples))):
        return f"samples {samples[0]} to {samples[-1]}"
    return f"samples {', '.join(map(str, samples[:5]))}{', …' * (len(samples) > 5)}" if samples else "no samples"


def _on_rank(student, comm, *arguments):
    return student(*arguments, comm.rank)


def _what_happened(mp_size: int, n: int, answers: list) -> str:
    """Describe the parts of a data set that the answer should have refused."""
    try:
        lengths = [len(x) for x, _ in answers[::mp_size]]
    except TypeError:
        return ""
    counted = " + ".join(map(str, lengths))
    if sum(lengths) < n:
        return f"// rounds down, so the models get {counted} of {n} samples, and some are lost"
    if len(set(lengths)) > 1:
        return f"the parts have {counted} samples, but all copies of the model need the same number"
    return ""
