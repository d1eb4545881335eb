"""Check exercise 6 of lab 03: a key that changes with everything that the best configuration depends on, only."""

import itertools
import math
import re

from labs_helpers.compile.interpreter_process import call, call_interpreted
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.gemm.lab03 import exercises

SOURCE = "def kernel(a, b, c):\n    acc = dot(a, b)\n    return relu(acc + c)\n"
STRIDES = (2048, 1, 64, 1, 64, 1)
HERE = dict(
    kernel="fused_matmul", source=SOURCE, M=128, N=64, K=2048,
    strides=STRIDES, dtype="float16", gpu="NVIDIA H200", triton="3.6.0",
)  # fmt: skip
EDITED = "the kernel was edited, and the old configuration may even be wrong for it"
VERSION = "another compiler generates a different program"
SIXTEEN = "is not a multiple of 16, so Triton compiles a different kernel, which loads in smaller pieces"
EACH = "M, N and K each need their own place"
A_SIDE = "its other dimension is contiguous now"
H100 = {"gpu": "NVIDIA H100 80GB HBM3"}
STALE = (  # a change to HERE or to (another start, …), and why it must change the key
    ({"kernel": "silu_matmul"}, "another kernel has another best configuration"),
    ({"source": SOURCE.replace("relu", "silu")}, EDITED),
    ({"source": SOURCE.replace("acc + c", "acc - c")}, EDITED),
    ({"source": SOURCE + "# and more\n"}, EDITED),
    ({"dtype": "float32"}, "another dtype needs a different amount of shared memory"),
    ({"gpu": "NVIDIA A100-SXM4-80GB"}, "another GPU has other limits"),
    (H100, "the architecture alone does not distinguish an H100 from an H200"),
    ((H100, {"gpu": "NVIDIA H100 PCIe"}), "the two H100s differ in clocks and memory"),
    ({"triton": "3.6.1"}, VERSION),
    ({"triton": "3.7.0"}, VERSION),
    ({"N": 65}, "65 belongs to the bucket after that of 64"),
    ({"N": 80}, "80 belongs to the bucket after that of 64"),
    (({"N": 8}, {"N": 9}), "9 belongs to the bucket after that of 8"),
    ({"K": 1024}, "a power of two is the last size in its bucket"),
    ({"M": 64, "N": 128}, EACH),
    ({"M": 2048, "K": 128}, EACH),
    ({"N": 128, "K": 1024}, "the key needs three buckets, not the product of three sizes"),
    ({"K": 2040}, f"2040 {SIXTEEN}"),
    ({"N": 60}, f"60 {SIXTEEN}"),
    ({"M": 120}, f"120 {SIXTEEN}"),
    ({"strides": (2048, 1, 1, 2048, 64, 1)}, f"B is transposed: {A_SIDE}"),
    ({"strides": (1, 2048, 64, 1, 64, 1)}, f"A is transposed: {A_SIDE}"),
    ({"strides": (2048, 1, 64, 1, 1, 64)}, f"C is transposed: {A_SIDE}"),
    ({"strides": (2056, 1, 64, 1, 64, 1)}, f"A's stride of 2056 {SIXTEEN}"),
    ({"strides": (2048, 1, 68, 1, 64, 1)}, f"B's stride of 68 {SIXTEEN}"),
    ({"strides": (2048, 1, 64, 1, 72, 1)}, f"C's stride of 72 {SIXTEEN}"),
    ({"strides": (2048, 1, 64, 2, 64, 1)}, "B is every second column, and a stride of 2 is not a stride of 1"),
)
ONE_BUCKET = "is one bucket, and Triton distinguishes three kinds: 1, a multiple of 16, any other"
SAME = (
    ({"K": 1040}, "1025 … 2048 is one bucket, and 16 divides both"),
    ({"N": 48, "K": 1504}, "each size stays in its bucket, and 16 divides it"),
    (({"N": 60}, {"N": 58}), f"33 … 64 {ONE_BUCKET}"),
    (({"K": 2040}, {"K": 2041}), f"1025 … 2048 {ONE_BUCKET}"),
    (({"M": 9}, {"M": 15}), f"9 … 16 {ONE_BUCKET}"),
    ({"strides": (4096, 1, 128, 1, 64, 1)}, "A and B are slices of larger matrices, and 16 divides both strides"),
    ({"strides": (2064, 1, 80, 1, 48, 1)}, "16 divides the same strides as before"),
    (
        ({"strides": (2048, 2, 64, 1, 64, 1)}, {"strides": (2048, 3, 64, 1, 64, 1)}),
        "2 and 3 are of one kind: neither is 1 or a multiple of 16",
    ),
)
MANY = [f"{SOURCE}# edition {i}\n" for i in range(64)]


@exercise("03/6", "cache key", points=5, minutes=15, reference=exercises.cache_key)
def cache_key(student):
    key = student(**HERE)
    if not isinstance(key, str) or not key:
        raise Wrong("", f"returned {key!r}; return a line of text")
    if "\n" in key:
        whole = "it contains the source itself; use its digest, one short line." if SOURCE in key else ""
        raise Wrong("", f"returned {key!r:.80}, which is more than one line", cause=whole)
    if re.search(r" object (at|@) 0x", key):
        cause = ".hexdigest() is missing; a hash object is not text." if "HASH object" in key else ""
        raise Wrong("", f"returned {key!r:.120}, which contains the address of an object in memory", cause=cause)
    if student(**HERE) != key:
        raise Wrong("called again with the same arguments", f"{student(**HERE)!r:.90} is not {key!r:.90}")
    for change, why in STALE:
        start, change = change if isinstance(change, tuple) else ({}, change)
        if student(**HERE | start | change) == student(**HERE | start):
            found = f"the same key as for {_before(start, change)}, a stale hit: {why}."
            raise Wrong(_text(change), found, cause=_why_stale(student, key, change))
    kept = len({student(**HERE | {"source": source}) for source in MANY})
    if kept < len(MANY):
        found = f"{len(MANY)} editions of the source have only {kept} keys, so some share a configuration."
        raise Wrong("another source", found, cause="the digest is too short, or not of the whole source.")
    yield f"{len(STALE) + len(MANY)} stale hits avoided"
    for change, why in SAME:
        start, change = change if isinstance(change, tuple) else ({}, change)
        if student(**HERE | start | change) != student(**HERE | start):
            found = f"a different key than for {_before(start, change)}; {why}."
            raise Wrong(_text(change), found, cause=_why_missed(student, change))
    yield "shapes of one bucket and one kind share an entry"
    elsewhere = _in_other_processes(student)
    if set(elsewhere) != {key}:
        found = f"the key is {elsewhere[0]!r} there and {key!r} here."
        salted = elsewhere[0] != elsewhere[1]  # the two processes salt their hashes differently
        cause = "hash() of a text differs from process to process; hashlib does not." if salted else ""
        raise Wrong("in another process", found, cause=cause)
    yield "the same in another process"


def _why_stale(student, key: str, change: dict) -> str | tuple[str, ...]:
    name = next(iter(change))
    if name in ("strides", "M", "N", "K") and (
        causes := likely(((said, _keys_like(student, kinds)) for said, kinds in KINDS), bool)
    ):
        return causes
    if len(change) > 1:
        return likely(((said, _keys_alike(student, way)) for said, way in WAYS), bool)
    if name in ("M", "N", "K"):
        return _why_one_bucket(student, name)
    other = {"source": "x = 1\n", "kernel": "another", "dtype": "int8", "gpu": "AMD MI300X", "triton": "2.1.0"}[name]
    ignored = student(**HERE | {name: other}) == key
    return f"`{name}` is not in the key." if ignored else f"only a part of `{name}` is in the key."


def _kinds(numbers, by: int = 16) -> list[str]:
    return ["1" if n == 1 else "d" if n % by == 0 else "n" for n in numbers]


KINDS = (  # a cause, and the part of the nine numbers that the key then contains
    ("the kinds are not in the key, neither of M, N, K nor of the strides.", lambda sizes, strides: ()),
    ("the kinds of M, N and K are not in the key.", lambda sizes, strides: _kinds(strides)),
    ("the kinds of M, N and K are not in the key.", lambda sizes, strides: strides),
    ("the strides are not in the key.", lambda sizes, strides: _kinds(sizes)),
    ("only A's strides are in the key.", lambda sizes, strides: _kinds((*sizes, *strides[:2]))),
    (
        "a stride of 1 needs its own kind, besides multiples of 16 and all others.",
        lambda sizes, strides: [n % 16 == 0 for n in (*sizes, *strides)],
    ),
    ("a multiple of 8 counts as a multiple of 16.", lambda sizes, strides: _kinds((*sizes, *strides), by=8)),
    (
        "the kinds are counted or sorted; each of the nine numbers needs its own place.",
        lambda sizes, strides: sorted(_kinds((*sizes, *strides))),
    ),
    (
        "the kinds are counted or sorted; each of the nine numbers needs its own place.",
        lambda sizes, strides: _kinds((*sizes, *strides)).count("d"),
    ),
)
WAYS = (
    ("the buckets are sorted; M, N and K each need their own place.", sorted),
    ("the three buckets are multiplied; put each into the key.", math.prod),
    ("the three buckets are added; put each into the key.", sum),
)


def _keys_like(student, kinds) -> bool:
    """Return whether keys in one bucket are equal exactly if `kinds` of their sizes and strides are."""
    sizes, strides = [HERE[name] for name in "MNK"], STRIDES
    tried = [
        (sizes, strides), *(((m, n, k), strides) for m, n, k in ((120, 64, 2048), (128, 60, 2048), (128, 64, 2040))),
        *((sizes, (*strides[:place], other, *strides[place + 1 :])) for place in range(6) for other in (1, 2, 8, 48)),
    ]  # fmt: skip
    keys = [student(**HERE | dict(zip("MNK", some, strict=True)) | {"strides": those}) for some, those in tried]
    return _partition(keys) == _partition([str(kinds(*each)) for each in tried])


def _keys_alike(student, way) -> bool:
    shapes = [
        *itertools.permutations((128, 64, 2048)),
        (128, 128, 1024),
        (64, 64, 4096),
        (64, 64, 256),
        (128, 128, 128),
    ]
    keys = [student(**HERE | dict(zip("MNK", shape, strict=True))) for shape in shapes]
    return _partition(keys) == _partition([str(way([_bucket(n) for n in shape])) for shape in shapes])


def _bucket(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _partition(values: list) -> list[int]:
    """Return, for each value, the index of the first equal value."""
    return [values.index(value) for value in values]


def _why_one_bucket(student, name: str) -> str:
    """Name the mistake in the bucket of one size, from the keys of multiples of 16, which are all of one kind."""
    sizes = (16, 32, 48, 64, 80, 96, 112, 128, 144, 256, 272)
    keys = _partition([student(**HERE | {name: size}) for size in sizes])
    said = (
        (f"the bucket of `{name}` is not in the key.", lambda n: 0),
        ("a power of two belongs to its own bucket, 33 … 64, but here 64 begins the next one.",
         int.bit_length),
        ("the buckets are not powers of two: 33 … 64, 65 … 128, and so on.", lambda n: -(-n // 128)),
        ("round up to a power of two, not to the nearest one.", lambda n: round(math.log2(n))),
    )  # fmt: skip
    if student(**HERE | {name: 8}) == student(**HERE | {name: 9}) and keys == _partition(list(map(_bucket, sizes))):
        return "small sizes share a bucket, but each power of two ends its own bucket, including 8, 4 and 2."
    return next((sentence for sentence, of in said if keys == _partition([of(size) for size in sizes])), "")


def _why_missed(student, change: dict) -> str:
    if "strides" in change and len({student(**HERE | {"strides": (n, 1, 64, 1, 64, 1)}) for n in (32, 64, 96)}) == 3:
        return "the strides themselves are in the key; their kind is enough."
    # The key contains the exact size if it changes with every size of one bucket and one kind.
    keys = [student(**HERE | {"K": K}) for K in range(1040, 2049, 16)]
    if len(set(keys)) == len(keys):
        return "the exact size is in the key, so the cache almost never hits."
    if len({student(**HERE | {"M": M}) for M in range(9, 16)}) == 7:
        return "small sizes themselves are in the key; their bucket is enough."
    return "the kinds are finer than Triton's three: 1, a multiple of 16, any other."


def _before(start: dict, change: dict) -> str:
    return _text({name: (HERE | start)[name] for name in change})


def _text(change: dict) -> str:
    return ", ".join(f"{name} {value!r:.100}" for name, value in change.items())


def _in_other_processes(student) -> list:
    """Return the key of HERE in two processes whose hashes are salted differently."""
    return [call_interpreted(call, student, timeout=60, env={"PYTHONHASHSEED": seed}, **HERE) for seed in ("1", "2")]
