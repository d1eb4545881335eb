"""Planted bugs of exercise 5, and right answers written differently."""

import inspect

from labs_helpers.transformer.lab01 import exercises

SOURCE = inspect.getsource(exercises.peak_bytes)
BODY = SOURCE.split("    ### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
SCORES = "scores = batch * config.heads * length**2"
ABOVE = "above = norm + 3 * itemsize * tokens * W + length**2 + 4 * scores"
ROUNDED = "rounded = 0 if itemsize == 4 else itemsize * scores"
MLP = "norm + 4 * itemsize * tokens * F"
LOSS = "loss = config.layers * layer + norm + 3 * 4 * tokens * V"
SOFTMAX = "softmax = (config.layers - 1) * layer + above + 2 * 4 * scores"
MAX = "max(states + loss, states + softmax, 5 * itemsize * parameters)"
HEAD = "V * W * (2 - config.tied)"

# Every tensor by itself, in the order of the table.
BY_TENSOR = """
    V, W, F, H, N = config.vocabulary, config.width, config.hidden, config.heads, config.layers
    matrices = [(V, W)] + N * ([(W, W)] * 4 + [(W, F)] * 3 + [(1, W)] * 2) + [(1, W)]
    if not config.tied:
        matrices.append((V, W))
    count = sum(rows * columns for rows, columns in matrices)
    wide, low = 4, itemsize
    pairs = batch * H * length * length
    norm = [(tokens * W, wide), (tokens, wide), (tokens * W, low), (tokens * W, low)]
    first = norm + [(tokens * W, low)] * 3 + [(length * length, 1), (pairs, wide)]
    second = ([(pairs, low)] if low < 4 else []) + [(tokens * W, low)] + norm + [(tokens * F, low)] * 4
    size = lambda tensors: sum(elements * nbytes for elements, nbytes in tensors)
    ends = [(tokens, 8), (tokens, 8), (length * config.head_dim, 4)]
    at_loss = N * size(first + second) + size(norm + ends) + 3 * wide * tokens * V
    at_softmax = (N - 1) * size(first + second) + size(first + ends) + 2 * wide * pairs
    return float(max(low * 3 * count + max(at_loss, at_softmax), low * (4 + 1) * count))
"""
PER_TOKEN = """
    V, W, F, H = config.vocabulary, config.width, config.hidden, config.heads
    bf16 = itemsize == 2
    per_layer = 12 * W * W if False else 4 * W * W + 3 * W * F
    params = config.layers * per_layer + (V * W if config.tied else 2 * V * W)
    upper = (14 if bf16 else 24) * W + 4 * H * length + length / batch
    lower = (10 if bf16 else 16) * W + (8 if bf16 else 16) * F + (2 * H * length if bf16 else 0)
    loss = tokens * (config.layers * (upper + lower) + 12 * V + (8 if bf16 else 12) * W)
    softmax = tokens * (config.layers * (upper + lower) - lower + 8 * H * length)
    return itemsize * params * 3 + max(loss, softmax, itemsize * params * 2)
"""
LIBRARY = """
    from labs_helpers.transformer.counts import step_peak

    return step_peak(config, batch, length, itemsize)
"""
WITHOUT_SMALL = [  # neither norms' weights nor the mask of the last layer weigh anything
    ("(4 * W * W + 3 * W * F + 2 * W) + W", "(4 * W * W + 3 * W * F)"),
]


def _replaced(name, *changes):
    return ("peak_bytes", name, [*changes[:-1]], changes[-1])


BUGS = [
    # parameters, and how often they are there
    _replaced("gradients too", ("3 * itemsize * parameters", "4 * itemsize * parameters"), "begins without gradients"),
    _replaced(
        "no moments",
        ("3 * itemsize * parameters", "itemsize * parameters"),
        ("5 * itemsize", "3 * itemsize"),
        "moments are left out",
    ),
    _replaced(
        "no moments, but gradients",
        ("3 * itemsize * parameters", "2 * itemsize * parameters"),
        ("5 * itemsize", "3 * itemsize"),
        "moments are left out",
    ),
    _replaced(
        "one moment",
        ("3 * itemsize * parameters", "2 * itemsize * parameters"),
        ("5 * itemsize", "4 * itemsize"),
        "two moments per parameter",
    ),
    _replaced("no temporary", ("5 * itemsize", "4 * itemsize"), "the update also needs a temporary as large"),
    _replaced("no update", (", 5 * itemsize * parameters)", ")"), "the update, or its gradients, are left out"),
    _replaced("output tied", (HEAD, "V * W"), "an output that is not tied adds its own"),
    _replaced("output not tied", (HEAD, "2 * V * W"), "a tied output is the embedding and adds no"),
    _replaced("the other way round", (HEAD, "V * W * (1 + config.tied)"), "a tied output is the embedding|its own"),
    _replaced("no embedding", (f" + {HEAD}", ""), "embedding and output have parameters"),
    _replaced("MLP of two", ("3 * W * F", "2 * W * F"), "SwiGLU has three matrices"),
    _replaced("attention of three", ("4 * W * W", "3 * W * W"), "four matrices W × W"),
    _replaced("one layer's parameters", ("config.layers * (4 *", "(4 *"), "every layer has its own parameters"),
    _replaced(
        "states in float32",
        ("3 * itemsize * parameters", "12 * parameters"),
        ("5 * itemsize", "20"),
        "parameters, gradients and moments take",
    ),
    _replaced(
        "moments in float32",
        ("3 * itemsize * parameters", "(itemsize + 8) * parameters"),
        ("5 * itemsize", "(3 * itemsize + 8)"),
        "AdamW's moments take `itemsize` bytes per element here",
    ),
    _replaced(
        "moments in float32 beside the backward pass",
        ("3 * itemsize * parameters", "(itemsize + 8) * parameters"),
        "AdamW's moments take `itemsize` bytes per element here",
    ),
    # what is kept
    _replaced(
        "one layer's activations",
        ("loss = config.layers * layer", "loss = layer"),
        ("(config.layers - 1) * layer + above", "above"),
        "every layer keeps its own activations",
    ),
    _replaced("no batch", ("tokens = batch * length", "batch, tokens = 1, length"), "batch is left out"),
    _replaced(
        "no batch in the scores",
        (SCORES, "scores = config.heads * length**2"),
        "every sequence of the batch has its own",
    ),
    _replaced(
        "all of the batch", (SCORES, "scores = config.heads * tokens**2"), "only tokens of the same sequence form pairs"
    ),
    _replaced("L for L²", (SCORES, "scores = batch * config.heads * length"), "the square of the length"),
    _replaced("causal", (SCORES, SCORES + " // 2"), "those that the mask hides"),
    _replaced("no heads", (SCORES, "scores = batch * length**2"), "every head has its own probabilities"),
    _replaced("no mask", (" + length**2 + 4 * scores", " + 4 * scores"), "each layer keeps a mask"),
    _replaced("a mask of each", (" + length**2 + 4 * scores", " + scores + 4 * scores"), "serves all heads"),
    _replaced(
        "probabilities in itemsize",
        (" + 4 * scores", " + itemsize * scores"),
        ("2 * 4 * scores", "2 * itemsize * scores"),
        "probabilities are float32",
    ),
    _replaced("half of that", (" + 4 * scores", " + itemsize * scores"), (ROUNDED, "rounded = 0"), "probabilities are"),
    _replaced("nothing rounded", (ROUNDED, "rounded = 0"), "rounded probabilities are kept in addition"),
    _replaced("always rounded", (ROUNDED, "rounded = itemsize * scores"), "nothing is rounded"),
    _replaced("MLP keeps two", (MLP, "norm + 2 * itemsize * tokens * F"), "four tensors F wide"),
    _replaced("MLP keeps three", (MLP, "norm + 3 * itemsize * tokens * F"), "four tensors F wide"),
    _replaced("W for F", (MLP, "norm + 4 * itemsize * tokens * W"), "F wide, not W"),
    _replaced(
        "no norms", ("norm = tokens * W * (4 + 2 * itemsize)", "norm = 0"), "the tensors that norms keep are left out"
    ),
    _replaced("no q, k, v", ("3 * itemsize * tokens * W", "0"), "q, k and v are kept"),
    # the softmaxes
    _replaced("no gradients of the logits", ("3 * 4 * tokens * V", "4 * tokens * V"), "three tensors as wide as V"),
    _replaced("one of the logits", ("3 * 4 * tokens * V", "2 * 4 * tokens * V"), "three tensors as wide as V"),
    _replaced("logits in itemsize", ("3 * 4 * tokens * V", "3 * itemsize * tokens * V"), "log-softmax and its grad"),
    _replaced(
        "the log-softmax in each layer",
        (MLP, MLP + " + 4 * tokens * V"),
        (LOSS, LOSS.replace("3 * 4", "2 * 4")),
        "is kept once, not by each layer",
    ),
    _replaced("gradients of the scores", ("2 * 4 * scores", "2 * itemsize * scores"), "gradients of probabilities"),
    _replaced("one gradient of the scores", ("2 * 4 * scores", "4 * scores"), "three tensors as large as"),
    _replaced("no last softmax", ("states + softmax, ", ""), "last layer's softmax is left out"),
    _replaced("no loss", ("states + loss, ", ""), "loss's softmax is left out"),
    _replaced(
        "nothing gone",
        (SOFTMAX, "softmax = loss - 2 * 4 * tokens * V + 2 * 4 * scores"),
        "the log-softmax, the last norm's tensors and .* are gone",
    ),
    _replaced(
        "the log-softmax still there",
        (SOFTMAX, SOFTMAX + " + norm + 4 * tokens * V"),
        r"1 layer, V 1024(.|\n)*the log-softmax, the last norm's tensors and .* are gone",
    ),
    _replaced(
        "the last layer whole",
        (SOFTMAX, SOFTMAX.replace("(config.layers - 1) * layer + above", "config.layers * layer")),
        "the log-softmax, the last norm's tensors and .* are gone",
    ),
    _replaced(
        "three in the MLP, told at one of the three points",
        (MLP, "norm + 3 * itemsize * tokens * F"),
        "it is (as the backward pass begins|in the last layer's softmax|at the update)",
    ),
    _replaced("a name that is not there", ("config.vocabulary", "config.vocab"), "small, 8 × 1024 tokens .*: Attr"),
    _replaced(
        "no last norm at the loss", ("config.layers * layer + norm + 3", "config.layers * layer + 3"), "last norm keeps"
    ),
    _replaced(
        "gradients in the last softmax", ("states + softmax,", "states + itemsize * parameters + softmax,"), "few"
    ),
    _replaced("the rounded ones still there", (SOFTMAX, SOFTMAX + " + rounded"), "float32 probabilities are gone"),
    _replaced(
        "a layer at the update", ("5 * itemsize * parameters)", "5 * itemsize * parameters + layer)"), "no activ"
    ),
    _replaced("no layers below", ("(config.layers - 1) * layer + above", "above"), "layers below keep all"),
    _replaced("in every layer", ("2 * 4 * scores", "2 * 4 * scores * config.layers"), "one layer's softmax at a time"),
    # the three points, and units
    _replaced("added up", (MAX, "states + loss + states + softmax + 5 * itemsize * parameters"), "not the sum"),
    _replaced("two added up", (MAX, "states + loss + 2 * 4 * scores"), "not the sum"),
    _replaced("with the update", (MAX, "5 * itemsize * parameters + max(loss, softmax)"), "not the sum"),
    _replaced("the smallest", (MAX, MAX.replace("max(", "min(")), "the largest of the three"),
    _replaced(
        "itemsize ignored", ("tokens = batch * length", "tokens = batch * length\n    itemsize = 4"), "itemsize is left"
    ),
    _replaced("GB", (MAX, MAX + " / 1e9"), "return bytes"),
    _replaced("MiB", (MAX, MAX + " / 2**20"), "return bytes"),
    _replaced(
        "norms in itemsize", ("(4 + 2 * itemsize)", "3 * itemsize"), "a norm keeps three tensors, each W wide: x"
    ),
    _replaced("F of LLaMA's", ("config.hidden", "8 * config.width // 3"), "F is config.hidden"),
    _replaced(
        "both softmaxes in itemsize",
        ("norm + 3 * 4 * tokens * V", "norm + (4 + 2 * itemsize) * tokens * V"),
        ("above + 2 * 4 * scores", "above + 2 * itemsize * scores"),
        "gradients in both softmaxes are float32",
    ),
    _replaced("nothing", ("return max", "max"), "returned None; return a number of bytes"),
]

DIFFERENT = [
    ("peak_bytes", [(BODY, BY_TENSOR)]),
    ("peak_bytes", [(BODY, PER_TOKEN)]),
    ("peak_bytes", [(BODY, LIBRARY)]),
    ("peak_bytes", WITHOUT_SMALL),
    ("peak_bytes", [(MAX, f"numpy.float64({MAX}) * 1.04"), ("    V, W, F = ", "    import numpy\n    V, W, F = ")]),
]
