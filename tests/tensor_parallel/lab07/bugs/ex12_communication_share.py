"""Exercise 12 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "communication_share"
COMPUTE = "compute = 6 * 12 * width**2 / tp / flops_per_s"
COMMUNICATION = "communication = 4 * 2 * (tp - 1) / tp * 2 * width / busbw"
RETURN = "return communication / compute"

BUGS = [
    (NAME, *bug)
    for bug in (
        ("turned round", [(RETURN, "return compute / communication if tp > 1 else 0.0")], "it is communication over"),
        ("not shared", [("/ tp / flops", "/ flops")], "compute is not divided by tp"),
        ("two all-reduces", [("= 4 * 2", "= 2 * 2")], "take half of what they should"),
        ("float32", [("tp * 2 * width", "tp * 4 * width")], "take twice what they should"),
        ("forward compute", [("6 * 12", "2 * 12")], "compute is a third"),
        ("forward alone", [("6 * 12", "2 * 12"), ("= 4 * 2", "= 2 * 2")], "the forward pass alone on both sides"),
        ("no 12", [("6 * 12", "6")], "the 12 is missing"),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [(RETURN, "return 2 * (tp - 1) * flops_per_s / (9 * width * busbw)")],
        [(COMPUTE, "compute = 3 * 2 * (4 * width * width + 8 * width * width) / (tp * flops_per_s)")],
    )
]
