"""Exercise 12 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "tokens_to_hide"
FORWARD = "share * parameter_bytes / busbw / (2 / achieved)"
BACKWARD = "share * (parameter_bytes + gradient_bytes) / busbw / (4 / achieved)"

BUGS: list = [
    (NAME, "no share", [("(ranks - 1) / ranks", "1.0")], r"the share is \(N − 1\) / N, because a rank keeps"),
    (NAME, "rounded down", [("(ranks - 1) / ranks", "(ranks - 1) // ranks")], "expected"),
    (
        NAME,
        "no gradients",
        [("(parameter_bytes + gradient_bytes)", "parameter_bytes")],
        "the backward pass also sends the gradients",
    ),
    (NAME, "backward as forward", [("(4 / achieved)", "(2 / achieved)")], "backward computes 4"),
    (
        NAME,
        "exchanged",
        [("return forward, backward", "return backward, forward")],
        "the order is",
    ),
    (
        NAME,
        "one number",
        [("return forward, backward", "return forward")],
        r"; expected \(forward, backward\), two numbers",
    ),
    (NAME, "no return", [("return forward, backward", "pass")], "a return is missing"),
]

DIFFERENT: list = [
    (NAME, [(FORWARD, "parameter_bytes * achieved * share / (2 * busbw)")]),
    (NAME, [(BACKWARD, "achieved / busbw * (ranks - 1) / ranks * (parameter_bytes + gradient_bytes) / 4")]),
    (NAME, [("return forward, backward", "return [forward, backward]")]),
]
