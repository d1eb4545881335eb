"""Check exercise 3 of lab 13: bytes of a cache, and users that fit."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import numbers_of
from labs_helpers.course.verdict.pure_functions import Case, judge_parts, number_parts
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises
from labs_helpers.transformer.config import SIZES, TransformerConfig

SMALL = TransformerConfig(512, layers=3, width=80, heads=10, hidden=256, kv_heads=2, context=100)
GROUPED = TransformerConfig(128_000, layers=32, width=4096, heads=32, hidden=14_336, kv_heads=8, context=8192)
NAMES = "bytes_per_position", "reserved", "paged"
CASES = (  # name, config, parameters, memory, length, size
    ("a small model, 37 positions in blocks of 8", SMALL, 9_000, 1_000_000, 37, 8),
    ("a whole number of blocks per user", SMALL, 9_000, 1_000_000, 32, 16),
    ("users shorter than a block", SMALL, 30_011, 777_777, 5, 16),
    ("blocks of 1 position", SMALL, 100, 222_222, 19, 1),
    ("lab 01's 1B model, 40 GB, 640 positions", SIZES["1b"], 953_223_168, 40 * 10**9, 640, 16),
    ("8B with grouped queries, 80 GB, 1,000 positions", GROUPED, 8_030_000_000, 80 * 10**9, 1_000, 16),
)  # fmt: skip
WEIGHTS, RESERVED = "memory - 2 * parameters", "left // (per_position * config.context)"
OF_USER, PAGED = "-(-length // size)", "blocks // -(-length // size)"
UP, DOWN = "a block belongs to one user: round the blocks per user up", "part of a user cannot be served: round down"
BYTES = "`memory` is a number of bytes; it needs no factor between GB and GiB"
MISTAKES = [
    ("keys and values are both cached, and each of their numbers takes 2 bytes", ("2 * 2 * config", "2 * config")),
    ("a bfloat16 number takes 2 bytes, not 4", ("2 * 2 * config", "2 * 4 * config")),
    ("this is the number of bits; a bfloat16 number has 16, which are 2 bytes", ("2 * 2 * config", "2 * 16 * config")),
    ("every layer has its own keys and values", ("config.layers * ", "")),
    ("the query heads of a group share their keys and values: key_value_heads, not heads",
     ("config.key_value_heads", "config.heads")),
    ("every key and value head has its own numbers: · key_value_heads", ("config.key_value_heads * ", "")),
    ("a key of one head has head_dim numbers", (" * config.head_dim", "")),
    ("keys and values are both cached, and a number takes 2 bytes", ("2 * 2 * config", "config")),
    ("the weights take memory, too", (WEIGHTS, "memory")),
    ("a weight takes 2 bytes", (WEIGHTS, "memory - parameters")),
    ("a weight takes 2 bytes, not 4", (WEIGHTS, "memory - 4 * parameters")),
    ("a weight takes 2 bytes; this subtracts 16, its bits", (WEIGHTS, "memory - 16 * parameters")),
    (BYTES, (WEIGHTS, "memory * 2**30 // 10**9 - 2 * parameters")),
    (BYTES, (WEIGHTS, "memory * 10**9 // 2**30 - 2 * parameters")),
    (DOWN, (RESERVED, "left / (per_position * config.context)")),
    (DOWN, (RESERVED, "-(-left // (per_position * config.context))")),
    (DOWN, (PAGED, "blocks / -(-length // size)")),
    (DOWN, (PAGED, "-(-blocks // -(-length // size))")),
    ("reserving means `context` positions per user, whatever its length",
     (RESERVED, "left // (per_position * length)")),
    ("this is the number of positions that fit; a user reserves `context` of them", (RESERVED, "left // per_position")),
    (UP, (OF_USER, "max(1, length // size)")),
    (UP, (PAGED, "left // (per_position * length)")),
    (UP, (PAGED, "blocks * size // length")),
    ("a whole number of blocks needs no further one: round up, do not add 1", (OF_USER, "(length // size + 1)")),
    ("a user holds blocks for `length` positions, not for `context`", (OF_USER, "-(-config.context // size)")),
    ("this is the number of blocks; divide it by the blocks of one user", (PAGED, "blocks")),
]  # fmt: skip
ADVICE = "multiply the bytes of one position out by hand: keys and values, layers, heads, numbers per head, 2 bytes"


@exercise("13/3", "how many users fit", points=10, minutes=15, reference=exercises.users_that_fit)
def users_that_fit(student):
    parts = number_parts(NAMES, variants(exercises.users_that_fit, MISTAKES))
    yield from judge_parts(student, numbers_of(student, *NAMES), [_case(*case) for case in CASES], parts, advice=ADVICE)


def _case(name, *arguments):
    users = variant(exercises.users_that_fit)(*arguments)
    return Case(name, arguments, users, f"{name}: {users[1]:,} users reserve, {users[2]:,} fit with blocks")
