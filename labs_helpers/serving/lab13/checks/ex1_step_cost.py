"""Check exercise 1 of lab 13: the FLOPs and bytes of a forward pass."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import numbers_of
from labs_helpers.course.verdict.pure_functions import Case, judge_parts, number_parts
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises
from labs_helpers.transformer.config import SIZES, TransformerConfig

GROUPED = TransformerConfig(512, layers=3, width=96, heads=6, hidden=256, kv_heads=2, context=1 << 20)
NAMES = "flops", "bytes"
CASES = (  # name, config, parameters, batch, new, past
    ("one decoding step of three sequences", GROUPED, 7_000, 3, 1, 100),
    ("a prefill of 37 positions, two sequences", GROUPED, 7_000, 2, 37, 0),
    ("a chunk of 16 positions behind 48", GROUPED, 7_000, 5, 16, 48),
    ("a first token", GROUPED, 7_000, 1, 1, 0),
    ("lab 01's 1B model decodes 64 sequences at 1,000 positions", SIZES["1b"], 887_619_584, 64, 1, 1_000),
)  # fmt: skip
WEIGHTS, PAIRS = "2 * parameters * batch * new", "new * past + new * (new + 1) // 2"
READ, CACHED = "flops, 2 * parameters", " + 2 * numbers * batch * (past + new)"
OWN = "a position attends to itself, too: count its own key"
MISTAKES = [
    ("a weight takes a multiplication and an addition, two FLOPs", (WEIGHTS, "parameters * batch * new")),
    ("the weights multiply every new position, not one per sequence", (WEIGHTS, "2 * parameters * batch")),
    ("the weights multiply the positions of every sequence: · batch", (WEIGHTS, "2 * parameters * new")),
    ("only the new positions pass through the weights; the past ones did so in earlier passes",
     (WEIGHTS, "2 * parameters * batch * (past + new)")),
    ("attention's FLOPs are missing", ("flops += ", "unused = ")),
    ("the weights' FLOPs are missing", (WEIGHTS, "0")),
    (OWN, ("(new + 1)", "(new - 1)")),
    (OWN, (PAIRS, "new * past")),
    ("a new position does not attend to later ones: new · (new + 1) / 2 pairs among the new positions",
     (PAIRS, "new * (past + new)")),
    ("past positions are not counted among the pairs", (PAIRS, "new * (new + 1) // 2")),
    ("each new position attends to the past ones: new · past pairs", (PAIRS, "past + new * (new + 1) // 2")),
    ("past positions do not attend again: their pairs belong to earlier passes",
     (PAIRS, "(past + new) * (past + new + 1) // 2")),
    ("scores and values take 2 · head_dim each, so 4 · head_dim per pair", ("4 * config", "2 * config")),
    ("the products with the values count as well, and two FLOPs per multiplication", ("4 * config", "config")),
    ("every query head computes its scores: heads, not key_value_heads", ("config.heads", "config.key_value_heads")),
    ("attention is computed in every layer", ("4 * config.layers", "4")),
    ("attention is computed for every sequence", ("batch * pairs", "pairs")),
    ("the weights are read once for all sequences, not once for each", (READ, f"{READ} * batch")),
    ("the weights are read once for all new positions, not once for each", (READ, f"{READ} * new")),
    ("the weights are read once for all rows of the pass", (READ, f"{READ} * batch * new")),
    ("a bfloat16 number takes 2 bytes", (READ, "flops, parameters"), ("2 * numbers", "numbers")),
    ("a bfloat16 number takes 2 bytes, not 4", (READ, "flops, 4 * parameters"), ("2 * numbers", "4 * numbers")),
    ("this is the number of bits; a bfloat16 number has 16, which are 2 bytes",
     (READ, "flops, 16 * parameters"), ("2 * numbers", "16 * numbers")),
    ("a weight takes 2 bytes", (READ, "flops, parameters")),
    ("keys and values are both cached, and each of their numbers takes 2 bytes", ("2 * numbers", "numbers")),
    ("keys and values are two sets of numbers, with 2 bytes per number",
     ("numbers = 2 * ", "numbers = "), ("2 * numbers", "numbers")),
    ("the query heads of a group share their keys and values: key_value_heads, not heads",
     ("config.key_value_heads", "config.heads")),
    ("every layer has its own keys and values", ("numbers = 2 * config.layers", "numbers = 2")),
    ("every sequence has its own keys and values", ("numbers * batch", "numbers")),
    ("the keys and values of the new positions are written", ("(past + new)", "past")),
    ("the keys and values of past positions are read", ("(past + new)", "new")),
    ("the cache's bytes are missing", (CACHED, "")),
    ("the weights' bytes are missing", (READ, "flops, 0")),
    ("past positions are read once per pass, not once per new position", ("(past + new)", "(new * past + new)")),
]  # fmt: skip
ADVICE = "compute the weights' part and the cache's part separately, for 1 sequence and new = 2, past = 0"


@exercise("13/1", "the cost of a forward pass", points=10, minutes=15, reference=exercises.step_cost)
def step_cost(student):
    parts = number_parts(NAMES, variants(exercises.step_cost, MISTAKES))
    yield from judge_parts(student, numbers_of(student, *NAMES), [_case(*case) for case in CASES], parts, advice=ADVICE)


def _case(name, *arguments):
    cost = variant(exercises.step_cost)(*arguments)
    return Case(name, arguments, cost, f"{name}: {cost[0] / cost[1]:.3g} FLOPs per byte")
