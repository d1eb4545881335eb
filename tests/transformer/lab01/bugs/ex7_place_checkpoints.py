"""Planted bugs of exercise 7, and right answers written differently."""

import inspect

from labs_helpers.transformer.lab01 import exercises

SOURCE = inspect.getsource(exercises.place_checkpoints)
BODY = SOURCE.split("    ### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
PEAK = "segments * kept + -(-layers // segments) * inside"
BEST = "min(range(1, layers + 1), key=peak)"
SIZES = "[size + 1] * larger + [size] * (segments - larger)"


def whole(body: str) -> list[tuple[str, str]]:
    """The change that puts another body into the reference."""
    return [(BODY, body)]


ROOT = "max(1, min(layers, round((layers * inside / kept) ** 0.5)))"
BY_SIZE = """
    best = None
    for size in range(layers, 0, -1):
        segments = -(-layers // size)
        peak = segments * kept + size * inside
        if best is None or (peak, segments) < best[:2]:
            best = peak, segments, size
    _, segments, size = best
    sizes = [size] * (layers // size)
    if layers % size:
        sizes.append(layers % size)
    return sizes
"""
ARRAYS = """
    import numpy

    segments = numpy.arange(1, layers + 1)
    peaks = segments * kept + numpy.ceil(layers / segments).astype(int) * inside
    parts = numpy.array_split(numpy.arange(layers), segments[peaks.argmin()])
    return numpy.array([len(part) for part in parts])
"""
LOOP = """
    lowest, answer = None, None
    for segments in range(1, layers + 1):
        sizes = [layers // segments] * segments
        for i in range(layers % segments):
            sizes[-1 - i] += 1
        peak = segments * kept + max(sizes) * inside
        if lowest is None or peak < lowest:
            lowest, answer = peak, tuple(sizes)
    return answer
"""

_BUGS = [
    ("root of layers", [(BEST, "round(layers**0.5)")], "√layers segments"),
    ("root of layers, down", [(BEST, "int(layers**0.5)")], "√layers segments"),
    ("root of the ratio", [(BEST, ROOT)], "the root is the best real number; another"),
    ("one segment", [(BEST, "1")], "you use one segment, as if `inside` did not"),
    ("no activations", [(PEAK, "segments * kept")], "as if `inside` did not count"),
    ("least computing", [(PEAK, "segments * kept + layers * inside")], "as if `inside` did not count"),
    ("each layer", whole("    return [1] * layers\n"), "you use one segment per layer, as if `kept`"),
    ("kept left out", [(PEAK, "-(-layers // segments) * inside")], "as if `kept` did not count"),
    ("rounded down", [("-(-layers // segments) *", "layers // segments *")], "the largest segment counts"),
    ("not rounded", [("-(-layers // segments) *", "layers / segments *")], "the largest segment counts"),
    ("kept and inside", [(PEAK, "segments * inside + -(-layers // segments) * kept")], "kept and inside are swapped"),
    (
        "inputs in every layer",
        [(PEAK, "segments * kept + -(-layers // segments) * (inside + kept)")],
        "a segment's input is kept once",
    ),
    (
        "larger of the two",
        [(PEAK, "max(segments * kept, -(-layers // segments) * inside)")],
        "inputs and activations exist at the same",
    ),
    (
        "most segments",
        [("range(1, layers + 1)", "range(layers, 0, -1)")],
        "of several numbers with the lowest peak, use",
    ),
    ("highest peak", [("min(range", "max(range")], "the highest peak"),
    ("divisors", [("range(1, layers + 1)", "[n for n in range(1, layers + 1) if layers % n == 0]")], "need not divide"),
    ("never one each", [(BEST, "min(range(1, layers), key=peak, default=1)")], "up to `layers` are possible"),
    (
        "never one each, not even of one",
        [(BEST, "min(range(1, layers), key=peak)")],
        r"1 layer, kept 1, inside 4: (.|\n)*range\(1, layers \+ 1\)",
    ),
    (
        "an error",
        [(BEST, "min(range(1, layers + 1), key=peaks)")],
        r"1 layer, kept 1, inside 4: NameError(?!(.|\n)*Likely)",
    ),
    (
        "at least two",
        [("range(1, layers + 1)", "range(min(2, layers), layers + 1)")],
        r"one layer allows one segment|one segment is possible",
    ),
    ("the rest lost", [(SIZES, "[size] * segments")], "the remainder, layers % segments, is lost"),
    ("all rounded up", [(SIZES, "[-(-layers // segments)] * segments")], "every segment is rounded up"),
    ("the rest in the last", [(SIZES, "[size] * (segments - 1) + [size + larger]")], "one each, not all to one"),
    ("number and size", [(SIZES, "[segments] * -(-layers // segments)")], "are swapped"),
    (
        "where they end",
        [("return " + SIZES, "from itertools import accumulate\n    return list(accumulate(" + SIZES + "))")],
        "where segments begin or end",
    ),
    ("a pair", [("return " + SIZES, "return segments, -(-layers // segments)")], "not a list of all sizes"),
    ("the number alone", [("return " + SIZES, "return segments")], "; return a list of sizes"),
    ("fractions", [(SIZES, "[layers / segments] * segments")], "/ returns a float, // an int"),
]

_RIGHT = [
    whole(BY_SIZE),
    whole(ARRAYS),
    whole(LOOP),
    [(SIZES, "[size] * (segments - larger) + larger * [size + 1]")],
    [(PEAK, "(segments - 1) * kept + (layers + segments - 1) // segments * inside")],
    [
        (
            "return " + SIZES,
            "import numpy\n    return numpy.diff(numpy.linspace(0, layers, segments + 1).round().astype(int))",
        )
    ],
]

BUGS = [("place_checkpoints", *bug) for bug in _BUGS]
DIFFERENT = [("place_checkpoints", changes) for changes in _RIGHT]
