"""Check exercise 6 of lab 13: one step of in-flight and of static batching."""

from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, first_wrong, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises

NAMES = "running", "waiting"
QUEUE = [("d", 30, 4), ("e", 20, 2), ("f", 10, 7), ("g", 10, 1)]
CASES = (  # title, running, waiting, slots, capacity, static
    ("nobody runs yet", [], QUEUE, 3, 100, False),
    ("one request has ended", [("a", 20, 3), ("b", 30, 0), ("c", 10, 1)], QUEUE, 3, 100, False),
    ("the oldest does not fit, younger ones would", [("a", 40, 3), ("b", 35, 2)], QUEUE, 4, 100, False),
    ("the capacity is reserved to the last position", [("a", 40, 3), ("b", 30, 0), ("c", 30, 5)], QUEUE, 4, 100, False),
    ("all slots are taken", [("a", 10, 3), ("b", 10, 2), ("c", 10, 2)], QUEUE, 3, 100, False),
    ("two places become free", [("a", 10, 0), ("b", 10, 2), ("c", 10, 0)], QUEUE, 3, 100, False),
    ("a slot is free from the start", [("a", 10, 98)], QUEUE, 3, 100, False),
    ("nobody waits", [("a", 10, 2), ("b", 10, 0)], [], 3, 100, False),
    ("a request that never fits holds up the others", [("a", 5, 0)], QUEUE, 3, 25, False),
    ("static, the batch still runs", [("a", 20, 3), ("b", 30, 0), ("c", 10, 1)], QUEUE, 3, 100, True),
    ("static, the last request has ended", [("a", 20, 0)], QUEUE, 2, 100, True),
    ("static, several have ended together", [("a", 60, 0), ("b", 30, 0)], QUEUE, 3, 55, True),
)  # fmt: skip
KEPT, CLOSED = "[request for request in running if request[2] > 0]", "static and running"
FREE, ROOM = "len(running) < slots", "used + waiting[0][1] <= capacity"
JOIN, MADE = "running.append(waiting.pop(0))", "[(name, positions, left - 1) for name, positions, left in running]"
BEFORE = "running, waiting = [", "before, asked = running, waiting\n    running, waiting = ["
OVERTAKING = f"""for one in list(waiting):
            if {FREE} and used + one[1] <= capacity:
                used += one[1]
                running.append(one)
                waiting.remove(one)"""
MISTAKES = [
    ("requests that have nothing left stay, and keep their slot", (KEPT, "list(running)")),
    ("a request with one token left leaves before it has generated it", ("request[2] > 0", "request[2] > 1")),
    ("a request leaves in the step of its last token; it stays in `running` with 0 left until the next step",
     (KEPT, "list(running)"), (MADE, MADE.replace("running]", "running if left > 1]"))),
    ("requests join before the ended ones have left, whose slots and positions are free for them",
     (KEPT, "list(running)"), (MADE, MADE.replace("running]", "running if left > 0]"))),
    ("a token is generated before others join: it stays in `running` with 0 left, and those who join get one, too",
     (KEPT, "[(name, positions, left - 1) for name, positions, left in running if left > 1]"), (MADE, "running")),
    ("static batching lets requests join while others run", (CLOSED, "False")),
    ("in-flight batching does not wait until nobody runs", (CLOSED, "running")),
    ("static: nobody is there any more once the last request has left, so the next batch joins in this step",
     BEFORE, (CLOSED, "static and before")),
    ("one request too many runs: at most `slots`", (FREE, "len(running) <= slots")),
    ("`slots` is not looked at", (f"{FREE} and ", "")),
    ("the slots are compared with the requests of the step before; compare them with those who stay and those who join",
     BEFORE, (FREE, "len(before) < slots")),
    ("the last slot stays empty: `slots` requests may run", (FREE, "len(running) < slots - 1")),
    ("`capacity` is not compared with the reserved positions", (f" and {ROOM}", "")),
    ("the tokens that are left are compared with the capacity; a request reserves its positions",
     ("sum(positions for _, positions, _ in running)", "sum(left for *_, left in running)"),
     ("waiting[0][1]", "waiting[0][2]")),
    ("the whole capacity may be reserved: ≤, not <", ("<= capacity", "< capacity")),
    ("only what the new request reserves is compared with the capacity: add those that run",
     (ROOM, "waiting[0][1] <= capacity")),
    ("a request that leaves still counts in the reserved positions",
     BEFORE, ("_, positions, _ in running", "_, positions, _ in before")),
    ("those who join in this step reserve positions, too: add them before the next one joins",
     ("            used += waiting[0][1]\n", "")),
    ("a request overtakes an older one that does not fit: with a steady flow of small requests, that one starves",
     (f"while waiting and {FREE} and {ROOM}:\n            used += waiting[0][1]\n            {JOIN}", OVERTAKING)),
    ("the youngest waiting request joins first: it is the oldest one's turn",
     ("waiting.pop(0)", "waiting.pop()"), ("waiting[0]", "waiting[-1]")),
    ("those who join come last in `running`, which is in order of age",
     ("        used = sum", "        joined = 0\n        used = sum"),
     (JOIN, "running.insert(joined, waiting.pop(0))\n            joined += 1")),
    ("only one request joins per step: as many as fit", ("while waiting", "if waiting")),
    ("a request that joins generates a token in this step, too",
     BEFORE, ("left - 1)", "left - ((name, positions, left) in before))")),
    ("every running request generates a token: left decreases by 1", ("left - 1)", "left)")),
    ("requests that joined are still in `waiting`", BEFORE, (f"{MADE}, waiting", f"{MADE}, asked")),
]  # fmt: skip
ADVICE = "go through the three steps with this case's lists, and write down how many positions are reserved after each"


@exercise("13/6", "one step of in-flight batching", points=10, minutes=20, reference=exercises.next_step)
def next_step(student):
    def lists(*arguments):
        answer = expect_tuple("", student(*arguments), *NAMES)
        return tuple(_requests(*pair) for pair in zip(NAMES, answer, strict=True))

    cases, mistakes = [_case(*case) for case in CASES], variants(exercises.next_step, MISTAKES)
    yield from judge(student, lists, cases, mistakes, told=first_wrong(*NAMES), advice=ADVICE)


def _requests(name, found):
    if not isinstance(found, list | tuple):
        raise Wrong("", f"{name} is {found!r:.60}; it is a list of requests")
    for one in found:
        if not (isinstance(one, list | tuple) and len(one) == 3 and isinstance(one[2], Integral)):
            raise Wrong("", f"{name} contains {one!r:.60}; a request is (name, positions, left)")
    return [tuple(one) for one in found]


def _case(title, *arguments):
    right = variant(exercises.next_step)(*arguments)
    names = ", ".join(name for name, *_ in right[0])
    return Case(title, arguments, right, f"{title}: tokens for {names or 'nobody'}")
