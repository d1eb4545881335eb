"""Exercise 6 of lab 03: a key that changes with all that the best configuration depends on, and with nothing else."""

import re

from labs_helpers.compile.interpreter_process import call, call_interpreted
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.lab03 import exercises

SOURCE = "def kernel(a, b, c):\n    acc = dot(a, b)\n    return relu(acc + c)\n"
STRIDES = (2048, 1, 64, 1, 64, 1)
HERE = dict(
    kernel="fused_matmul", source=SOURCE, M=128, N=64, K=2048,
    strides=STRIDES, dtype="float16", gpu="NVIDIA H200", triton="3.6.0",
)  # fmt: skip
EDITED = "the kernel was edited: the old code's configuration may even be wrong for it"
VERSION = "another compiler makes another program of the same configuration"
SIXTEEN = "is no multiple of 16, so that Triton compiles another kernel, which loads in smaller pieces"
STALE = (  # what changes, and why the old configuration must not be found
    ({"kernel": "silu_matmul"}, "another kernel has another best configuration"),
    ({"source": SOURCE.replace("relu", "silu")}, EDITED),
    ({"source": SOURCE.replace("acc + c", "acc - c")}, EDITED),
    ({"source": SOURCE + "# and more\n"}, EDITED),
    ({"dtype": "float32"}, "another dtype takes another amount of shared memory"),
    ({"gpu": "NVIDIA A100-SXM4-80GB"}, "another GPU has other limits"),
    ({"gpu": "NVIDIA H100 80GB HBM3"}, "the architecture alone does not tell an H100 from an H200"),
    ({"triton": "3.6.1"}, VERSION),
    ({"triton": "3.7.0"}, VERSION),
    ({"N": 65}, "65 lies in the bucket after that of 64"),
    ({"N": 80}, "80 lies in the bucket after that of 64"),
    ({"K": 1024}, "a power of two belongs to its own bucket, the one that it ends"),
    ({"M": 64, "N": 128}, "M, N and K each have a place of their own"),
    ({"M": 2048, "K": 128}, "M, N and K each have a place of their own"),
    ({"N": 128, "K": 1024}, "three buckets, not the product of three sizes"),
    ({"K": 2040}, f"2040 {SIXTEEN}"),
    ({"N": 60}, f"60 {SIXTEEN}"),
    ({"strides": (2048, 1, 1, 2048, 64, 1)}, "B is transposed: along which of its sides neighbours lie has changed"),
    ({"strides": (1, 2048, 64, 1, 64, 1)}, "A is transposed: along which of its sides neighbours lie has changed"),
    ({"strides": (2048, 1, 64, 1, 1, 64)}, "C is transposed: along which of its sides neighbours lie has changed"),
    ({"strides": (2056, 1, 64, 1, 64, 1)}, f"A's stride of 2056 {SIXTEEN}"),
    ({"strides": (2048, 1, 68, 1, 64, 1)}, f"B's stride of 68 {SIXTEEN}"),
    ({"strides": (2048, 1, 64, 1, 72, 1)}, f"C's stride of 72 {SIXTEEN}"),
    ({"strides": (2048, 1, 64, 2, 64, 1)}, "B is every second column: a stride of 2 is not one of 1"),
)
SAME = (
    ({"K": 1040}, "1025 … 2048 is one bucket, and 16 divides both"),
    ({"N": 48, "K": 1504}, "each lies in the same bucket, and 16 divides them"),
    ({"strides": (4096, 1, 128, 1, 64, 1)}, "A and B are slices of larger matrices, and 16 divides both strides"),
)
MANY = [f"{SOURCE}# edition {i}\n" for i in range(64)]


@exercise("03/6", "cache key", points=5, minutes=15, reference=exercises.cache_key)
def cache_key(student):
    key = student(**HERE)
    if not isinstance(key, str) or not key:
        raise Wrong("", f"returned {key!r}; a line of text is asked for")
    if "\n" in key:
        whole = "the source itself is in it; its digest is one short line." if SOURCE in key else ""
        raise Wrong("", f"returned {key!r:.80}, which is more than one line", cause=whole)
    if re.search(r" object (at|@) 0x", key):
        cause = ".hexdigest() is missing: a hash object is no text." if "HASH object" in key else ""
        raise Wrong("", f"returned {key!r:.120}, which says where an object lies in memory", cause=cause)
    if student(**HERE) != key:
        raise Wrong("called again with the same", f"{student(**HERE)!r:.90} is not {key!r:.90}")
    for change, why in STALE:
        if student(**HERE | change) == key:
            found = f"the same key as for {_text({name: HERE[name] for name in change})}, a stale hit: {why}."
            raise Wrong(_text(change), found, cause=_why_stale(student, key, change))
    kept = len({student(**HERE | {"source": source}) for source in MANY})
    if kept < len(MANY):
        found = f"{len(MANY)} editions of the source have {kept} keys: two of them share a configuration."
        raise Wrong("another source", found, cause="the digest is too short, or not of the whole source.")
    yield f"{len(STALE) + len(MANY)} stale hits avoided"
    for change, why in SAME:
        if student(**HERE | change) != key:
            found = f"another key than for {_text({name: HERE[name] for name in change})}; {why}."
            raise Wrong(_text(change), found, cause=_why_missed(student, key, change))
    yield "shapes of one bucket and one kind share an entry"
    elsewhere = _in_other_processes(student)
    if set(elsewhere) != {key}:
        found = f"the key is {elsewhere[0]!r}, here it is {key!r}."
        salted = elsewhere[0] != elsewhere[1]  # the two processes salt their hashes differently
        cause = "hash() of a text differs from process to process; hashlib does not." if salted else ""
        raise Wrong("in another process", found, cause=cause)
    yield "the same in another process"


def _why_stale(student, key: str, change: dict) -> str:
    name = next(iter(change))
    if name in ("M", "N", "K"):
        return _why_one_bucket(student, name) if len(change) == 1 else ""
    if name == "strides":
        ignored = student(**HERE | {"strides": (7, 7, 7, 7, 7, 7)}) == key
        return "the strides are not in the key." if ignored else ""
    other = {"source": "x = 1\n", "kernel": "another", "dtype": "int8", "gpu": "AMD MI300X", "triton": "2.1.0"}[name]
    ignored = student(**HERE | {name: other}) == key
    return f"`{name}` is not in the key." if ignored else f"only a part of `{name}` is in the key."


def _why_one_bucket(student, name: str) -> str:
    """What the keys of sizes on both sides of 64 have in common; 16 divides all of them, so that their kind is one."""
    below, at, above, top, beyond = (student(**HERE | {name: size}) for size in (48, 64, 80, 112, 128))
    if below == at == above == beyond:
        return f"the bucket of `{name}` is not in the key."
    if below != at == above == top != beyond:
        return "a power of two belongs to its own bucket, the one that it ends, 33 … 64; here 64 begins the next one."
    return ""


def _why_missed(student, key: str, change: dict) -> str:
    if "strides" in change:
        return "the strides themselves are in the key; their kind is enough."
    # The exact size is in the key where it changes with every size of one bucket and one kind.
    keys = [student(**HERE | {"K": K}) for K in range(1040, 2049, 16)]
    return "the exact size is in the key, so that nearly nothing is ever found again." * (len(set(keys)) == len(keys))


def _text(change: dict) -> str:
    return ", ".join(f"{name} {value!r:.100}" for name, value in change.items())


def _in_other_processes(student) -> list:
    """The key of HERE in two processes whose hashes are salted differently."""
    return [call_interpreted(call, student, timeout=60, env={"PYTHONHASHSEED": seed}, **HERE) for seed in ("1", "2")]
