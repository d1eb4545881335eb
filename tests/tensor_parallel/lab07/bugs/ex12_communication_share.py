"""Exercise 12 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "communication_share"
COMPUTE = "compute = 6 * 12 * width**2 / tp / flops_per_s"
COMMUNICATION = "communication = 4 * 2 * (tp - 1) / tp * 2 * width / busbw"
RETURN = "return communication / compute"

BUGS = [
    (NAME, *bug)
    for bug in (
        (
            "grad_weight is transposed; it has the shape",
            [(RETURN, "return compute / communication if tp > 1 else 0.0")],
            "the ratio is inverted; divide communication",
        ),
        ("not shared", [("/ tp / flops", "/ flops")], "compute is not divided by tp"),
        ("two all-reduces", [("= 4 * 2", "= 2 * 2")], "the all-reduces take half the right time;"),
        ("float32", [("tp * 2 * width", "tp * 4 * width")], "the all-reduces take twice the right time; a"),
        ("forward compute", [("6 * 12", "2 * 12")], "compute takes a third of the right time: the"),
        (
            "forward alone",
            [("6 * 12", "2 * 12"), ("= 4 * 2", "= 2 * 2")],
            r"the ratio is 1\.5 times too large: it counts",
        ),
        ("no 12", [("6 * 12", "6")], "the factor 12 is missing; a block has 12 ·"),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [(RETURN, "return 2 * (tp - 1) * flops_per_s / (9 * width * busbw)")],
        [(COMPUTE, "compute = 3 * 2 * (4 * width * width + 8 * width * width) / (tp * flops_per_s)")],
    )
]
