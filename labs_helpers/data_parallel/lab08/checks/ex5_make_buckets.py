"""Check exercise 5 of lab 08: the parameters of each bucket, and the order of the buckets."""

import random

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.bucket_mistakes import ERRORS, MISTAKES, fill

TABLE = (  # name, parameters' bytes and dtype (h: 2 bytes per element, d: 8, else 4), bucket_bytes, first_bytes
    ("every bucket holds one parameter", "40 48 56", 60, 60),
    ("two parameters per bucket", "40 40 40 40", 80, 80),
    ("a bucket filled to the last byte", "20 24 36 44 16", 60, 60),
    ("a smaller first bucket", "40 40 40 40 20 20", 100, 40),
    ("a parameter larger than a bucket", "20 20 400 20 20", 60, 40),
    ("the last parameter is larger than the first bucket", "20 40 20 100", 80, 40),
    ("two dtypes in blocks", "40 40 40h 40h 40h", 80, 80),
    ("two dtypes in turns", "40 8h 40 8h 40 8h 40 8h", 80, 80),
    ("the bucket opened first is complete last", "40 8h 40 8h 40h 8", 80, 40),
    ("three dtypes", "16d 4h 40 40d 80 4h 8 24d 12h", 64, 24),
    ("everything fits", "4 8 12", 10**9, 10**9),
    ("no parameters", "", 64, 32),
)
SIZES = {"": (torch.float32, 4), "h": (torch.bfloat16, 2), "d": (torch.float64, 8)}


@exercise("08/5", "buckets", points=15, minutes=20, reference=exercises.make_buckets)
def make_buckets(student):
    before = []  # per call: the answer, the parameters' numbers, and the answer as lists of numbers

    def numbered(parameters, bucket_bytes, first_bytes):
        """Return the student's buckets as lists of the parameters' numbers."""
        number = {id(p): i for i, p in enumerate(parameters)}
        answer = student(parameters, bucket_bytes, first_bytes)
        if not isinstance(answer, list | tuple) or not all(isinstance(some, list | tuple) for some in answer):
            kind = "None" if answer is None else f"a {type(answer).__name__}"
            kind += " with elements other than lists" * isinstance(answer, list | tuple)
            raise Wrong("", f"returned {kind} instead of a list of lists of parameters")
        try:
            before.append((answer, number, [[number[id(p)] for p in some] for some in answer]))
        except KeyError:
            raise Wrong("", "a bucket contains an object that is not one of the parameters") from None
        for old, numbers, listed in before[-2:-1]:
            if [[numbers.get(id(p)) for p in some] for some in old] != listed:
                raise Wrong(
                    "", "has changed the buckets that an earlier call returned", cause="make new lists in every call"
                )
        return before[-1][2]

    advice = "go through the parameters from last to first, and write down the bytes left in each bucket"
    yield from judge(student, numbered, list(_cases()), MISTAKES, told=_told, errors=ERRORS, advice=advice)


def _cases():
    for name, sizes, bucket_bytes, first_bytes in TABLE:
        yield _case(name, sizes.split(), bucket_bytes, first_bytes)
    generator = random.Random(0)
    for number in range(12):
        count = generator.randint(1, 12)
        sizes = [f"{8 * generator.randint(1, 12)}{generator.choice(['', '', 'h', 'd'])}" for _ in range(count)]
        limits = 8 * generator.randint(6, 20), 8 * generator.randint(2, 10)
        case = _case(f"drawn at random, {number + 1} of 12", sizes, *limits)
        yield case._replace(line="12 drawn at random: right" * (number == 11))


def _case(name, sizes, bucket_bytes, first_bytes):
    parameters = Parameters(_parameter(size) for size in sizes)
    right = fill(parameters, bucket_bytes, first_bytes)
    line = f"{name}: {len(sizes)} parameters in {len(right)} bucket{'s' * (len(right) != 1)}"
    return Case(name, (parameters, bucket_bytes, first_bytes), right, line)


class Parameters(list):
    """A list that compares its tensors by identity, and whose copies share them."""

    def __eq__(self, other):
        return len(self) == len(other) and all(a is b for a, b in zip(self, other, strict=True))

    __hash__ = None

    def __deepcopy__(self, _):
        return Parameters(self)


def _parameter(size: str):
    dtype, width = SIZES[size.lstrip("0123456789")]
    return torch.nn.Parameter(torch.empty(int(size.rstrip("hd")) // width, dtype=dtype))


def _told(case, answer):
    parameters, bucket_bytes, first_bytes = case.arguments
    short = {dtype: letter for letter, (dtype, _) in SIZES.items()}
    listed = ", ".join(f"{i}: {p.nbytes}{short[p.dtype]}" for i, p in enumerate(parameters))
    limits = f"bucket_bytes {bucket_bytes}, first_bytes {first_bytes}"
    return str(answer), f"{case.right}\n  parameters with their bytes (h bfloat16, d float64): {listed}; {limits}"
