"""Exercise 9 of lab 01: what people count wrongly in a token's FLOPs, and other ways that are right."""

from pathlib import Path

from labs_helpers.transformer.lab01.exercises import ex9_mfu

BODY = Path(ex9_mfu.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
KV, SCORES = "config.width // config.heads * config.kv_heads", "scores = 2 * W * (length + 1) / 2"
LOGITS = "config.vocabulary * W)"

_BUGS = [
    ("multiplications alone", [("forward = 2 *", "forward =")], "a multiplication and its addition are two FLOPs"),
    ("forward alone", [("3 * forward", "forward")], "that is the forward pass alone"),
    ("backward as dear as forward", [("3 * forward", "2 * forward")], "three times the forward pass: for each"),
    ("computed again", [("3 * forward", "4 * forward")], "what is computed again does not count"),
    ("no groups", [(KV, "config.width")], "their matrices are W ×"),
    ("q alone in groups", [("2 * W * W +", "W * W + W * kv_width +")], "each of their matrices is W × W"),
    ("a head is one wide", [(KV, "config.kv_heads")], "their matrices are W ×"),
    ("all in groups", [("2 * W * W + 2 * W * kv_width", "4 * W * kv_width")], "each of their matrices is W × W"),
    ("no output of attention", [("2 * W * W +", "W * W +")], "attention's output is a product too"),
    ("no scores", [(SCORES, "scores = 0")], "q·kᵀ and p·v are products too"),
    ("one of two products", [(SCORES, "scores = W * (length + 1) / 2")], "q·kᵀ and p·v are two products"),
    ("all L × L", [(SCORES, "scores = 2 * W * length")], r"\(length \+ 1\) / 2 tokens on average"),
    ("half of L", [(SCORES, "scores = W * length")], r"\(length \+ 1\) / 2 tokens on average"),
    ("scores of one head", [(SCORES, SCORES + " / config.heads")], "has scores of its own"),
    ("scores of kv_heads", [(SCORES, "scores = kv_width * (length + 1)")], "has scores of its own"),
    ("scores of a sequence", [(SCORES, SCORES + " * length")], "not those of a sequence"),
    ("an MLP of two", [("3 * W * config.hidden", "2 * W * config.hidden")], "the MLP has three matrices"),
    ("4 W", [("config.hidden", "4 * W")], "F is config.hidden"),
    ("no logits", [(f" + {LOGITS}", ")")], "the logits are a product too"),
    ("logits where not tied", [(LOGITS, LOGITS[:-1] + " * (not config.tied))")], "tied or not"),
    ("an embedding", [(LOGITS, "2 * config.vocabulary * W)")], "looks a row up"),
    ("one layer", [("config.layers * (", "(")], "each layer has its products"),
    ("percent", [("tokens_per_s / peak", "tokens_per_s / peak * 100")], "not percent"),
    ("upside down", [("flops * tokens_per_s / peak", "peak / (flops * tokens_per_s)")], "it is upside down"),
    ("of one token", [("flops * tokens_per_s / peak", "flops / peak")], "times tokens per second"),
    ("forward in the share", [("flops * tokens_per_s", "forward * tokens_per_s")], "the forward pass alone was taken"),
    ("rounded", [("flops * tokens_per_s / peak", "round(flops * tokens_per_s / peak, 2)")], "not rounded"),
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
