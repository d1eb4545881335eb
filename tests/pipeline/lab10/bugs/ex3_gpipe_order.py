"""Exercise 3 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "gpipe_order"
ORDER = '[(kind, i) for kind in "FB" for i in range(micro_batches)]'

BUGS: list = [
    (NAME, "naive", [(ORDER, '[(kind, i) for i in range(micro_batches) for kind in "FB"]')], "naive order"),
    (NAME, "no backward", [('"FB"', '"F"')], "the backward passes are missing"),
    (NAME, "from 1", [("(kind, i)", "(kind, i + 1)")], "counted from 1"),
    (NAME, "ranks", [("range(micro_batches)", "range(ranks)")], "counted with `ranks`"),
    (NAME, "pairs reversed", [("(kind, i)", "(i, kind)")], "an entry looks like"),
    (NAME, "other letters", [('"FB"', '"fb"')], "with F or B"),
    (NAME, "no return", [(f"return {ORDER}", ORDER)], "return the list"),
    (NAME, "one forward pass twice", [(ORDER, f'[("F", 0), *{ORDER}]')], "F0 of stage 0 is there 2 times"),
]

DIFFERENT = [
    (NAME, [(ORDER, '[("F", i) for i in range(micro_batches)] + [("B", i) for i in range(micro_batches)]')]),
    (NAME, [(ORDER, '[["FB"[k // micro_batches], k % micro_batches] for k in range(2 * micro_batches)]')]),
]
