"""Planted bugs of exercise 9, and right answers written differently."""

from pathlib import Path

from labs_helpers.transformer.lab01.exercises import ex9_mfu

BODY = Path(ex9_mfu.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
KV, SCORES = "config.width // config.heads * config.kv_heads", "scores = 2 * W * (length + 1) / 2"
LOGITS = "config.vocabulary * W)"

_BUGS = [
    ("multiplications alone", [("forward = 2 *", "forward =")], "a multiplication and its addition are two FLOPs"),
    ("forward alone", [("3 * forward", "forward")], "this is only the forward pass; a training"),
    ("backward as dear as forward", [("3 * forward", "2 * forward")], "forward and backward are three times the"),
    ("computed again", [("3 * forward", "4 * forward")], "recomputation does not count: forward and"),
    ("no groups", [(KV, "config.width")], "their matrices are W ×"),
    ("q alone in groups", [("2 * W * W +", "W * W + W * kv_width +")], "each of their matrices is W × W"),
    ("a head is one wide", [(KV, "config.kv_heads")], "their matrices are W ×"),
    ("all in groups", [("2 * W * W + 2 * W * kv_width", "4 * W * kv_width")], "each of their matrices is W × W"),
    ("no output of attention", [("2 * W * W +", "W * W +")], "attention's output is a product too"),
    ("no scores", [(SCORES, "scores = 0")], "q·kᵀ and p·v are products too"),
    ("one of two products", [(SCORES, "scores = W * (length + 1) / 2")], "q·kᵀ and p·v are two products"),
    ("all L × L", [(SCORES, "scores = 2 * W * length")], r"\(length \+ 1\) / 2 tokens on average"),
    ("half of L", [(SCORES, "scores = W * length")], r"\(length \+ 1\) / 2 tokens on average"),
    ("scores of one head", [(SCORES, SCORES + " / config.heads")], "each of the `heads` query heads has its own"),
    (
        "scores of kv_heads",
        [(SCORES, "scores = kv_width * (length + 1)")],
        "each of the `heads` query heads has its own",
    ),
    ("scores of a sequence", [(SCORES, SCORES + " * length")], "return FLOPs per token, not per sequence"),
    ("an MLP of two", [("3 * W * config.hidden", "2 * W * config.hidden")], "the MLP has three matrices"),
    ("4 W", [("config.hidden", "4 * W")], "F is config.hidden"),
    ("no logits", [(f" + {LOGITS}", ")")], "the logits are a product too"),
    ("logits where not tied", [(LOGITS, LOGITS[:-1] + " * (not config.tied))")], "tied or not"),
    ("an embedding", [(LOGITS, "2 * config.vocabulary * W)")], "the embedding only looks up a row and"),
    ("one layer", [("config.layers * (", "(")], "every layer has these products"),
    ("percent", [("tokens_per_s / peak", "tokens_per_s / peak * 100")], "return a share from 0 to 1, not a percentage"),
    (
        "upside down",
        [("flops * tokens_per_s / peak", "peak / (flops * tokens_per_s)")],
        "the fraction is upside down: divide the",
    ),
    ("of one token", [("flops * tokens_per_s / peak", "flops / peak")], "these are FLOPs per token: multiply by"),
    ("forward in the share", [("flops * tokens_per_s", "forward * tokens_per_s")], "only the forward pass was counted"),
    ("rounded", [("flops * tokens_per_s / peak", "round(flops * tokens_per_s / peak, 2)")], "do not round the share"),
    ("one number", [("return flops, flops", "return flops")], "flops, share"),
]
BUGS = [("mfu", *bug) for bug in _BUGS]

BY_MATRICES = """
    W, D = config.width, config.width / config.heads
    matrices = [(W, W), (W, config.kv_heads * D), (W, config.kv_heads * D), (W, W)]
    matrices += [(W, config.hidden), (W, config.hidden), (config.hidden, W)]
    seen = sum(range(1, length + 1)) / length
    matrices += 2 * config.heads * [(D, seen)]
    multiplied = config.layers * sum(a * b for a, b in matrices) + W * config.vocabulary
    flops = 2 * multiplied + 2 * 2 * multiplied
    return flops, tokens_per_s / (peak / flops)
"""
BY_SEQUENCE = """
    W, N, L = config.width, config.layers, length
    grouped = config.kv_heads / config.heads
    tokens = 6 * L * (N * (W * W * (2 + 2 * grouped) + 3 * W * config.hidden) + W * config.vocabulary)
    pairs = L * (L + 1) // 2
    flops = (tokens + 12 * N * W * pairs) / L
    return [flops, flops / peak * tokens_per_s]
"""
BY_LIBRARY = """
    from labs_helpers.transformer import counts

    flops = counts.flops_per_token(config, length, causal=True)
    return flops.step, flops.step * tokens_per_s / peak
"""
DIFFERENT = [("mfu", [(BODY, answer)]) for answer in (BY_MATRICES, BY_SEQUENCE, BY_LIBRARY)]
