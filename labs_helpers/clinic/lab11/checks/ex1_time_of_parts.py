"""Check exercise 1 of lab 11: each moment of a step belongs to one part."""

import random
from copy import deepcopy
from math import isclose
from operator import itemgetter

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks import part_mistakes
from labs_helpers.clinic.lab11.checks.part_mistakes import COMPUTING, PARTS, right, total, union
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts

STEPS = (  # name, spans, length
    ("one part after another", {"data": [(0, 2)], "forward": [(2, 5)], "backward": [(5, 11.5)],
     "communication": [(11.5, 14)], "optimizer": [(14, 15)]}, 16),
    ("two micro-batches, backward first in the lists", {"backward": [(11, 16), (4, 9)], "forward": [(9.5, 11), (2, 4)],
     "optimizer": [(19, 20)], "communication": [(16, 19)], "data": [(8.5, 9.5), (0, 2)]}, 20),
    ("buckets under the backward pass", {"forward": [(1, 4)], "backward": [(4, 12)], "optimizer": [(15, 16.5)],
     "communication": [(6, 8), (9, 11), (11, 14.5)]}, 17),
    ("a loader beside the computation", {"data": [(0, 3), (5, 9)], "forward": [(2, 4)], "backward": [(4, 8)],
     "optimizer": [(10, 11)], "communication": [(8, 10)]}, 11),
    ("two streams, and two workers", {"forward": [(3, 5), (2, 6), (5.5, 7)], "backward": [(9, 12), (7, 10), (10.5, 11)],
     "data": [(1, 2), (0, 1.5), (0.25, 0.5), (13, 14)], "communication": [(12, 14), (11, 13), (14, 15)],
     "optimizer": [(15, 15.5), (15.5, 16)]}, 18),
    ("parts that go on after the step", {"forward": [(0, 2)], "backward": [(2, 5), (10.5, 12)],
     "optimizer": [(9, 10.5)], "communication": [(4, 7), (9.5, 13)], "data": [(7.5, 8), (10, 11), (12, 14)]}, 10),
    ("all three kinds at a time", {"forward": [(2, 6)], "backward": [(6, 9)], "data": [(1, 4), (8, 11)],
     "communication": [(3, 7), (8.5, 12.5)], "optimizer": [(12, 13)]}, 14),
    ("communication and data alone", {"communication": [(1, 4)], "data": [(3, 3.5), (6, 6)]}, 8),
    ("nothing at all", {}, 5),
    ("empty lists, and a full step", {"forward": [], "data": [], "backward": [(0, 4)]}, 4),
)  # fmt: skip
ERRORS = (
    (r"KeyError: '\w+'(.|\n)*spans\[", "a part may be missing in `spans`: spans.get(part, []) is then an empty list"),
    (r"^ValueError: (min|max)\(\)", "a part may have no spans, or none inside the step"),
)
ADVICE = "draw one line per part for this case, and write below each piece of time which part it belongs to"


@exercise("11/1", "the time of a step's parts", points=15, minutes=20, reference=exercises.time_of_parts)
def time_of_parts(student):
    def numbers(spans, length):
        before = deepcopy(spans)
        answer = student(spans, length)
        if spans != before:
            advice = "sorted(…) returns a new list, and spans.get(part, []) adds no part; give your own lists names"
            raise Wrong("", "the function must not change `spans`", advice=advice)
        if not isinstance(answer, dict):
            cause = "a return is missing" if answer is None else ""
            raise Wrong("", f"returned {answer!r:.60} instead of a dict of six numbers", cause=cause)
        if set(answer) != {*PARTS, "idle"}:
            keys = ", ".join(map(str, answer))
            raise Wrong("", f"returned a dict with the keys {keys:.90}, not {', '.join((*PARTS, 'idle'))}")
        for part, ms in answer.items():
            expect_is_number("", part, ms)
        return answer

    mistakes = {part: part_mistakes.computing(part) for part in COMPUTING}
    mistakes |= {name: getattr(part_mistakes, name) for name in ("data", "communication", "idle")}
    parts = [Part(itemgetter(name), causes, _told(name), _close) for name, causes in mistakes.items()]
    yield from judge_parts(student, numbers, list(_cases()), parts, errors=ERRORS, advice=ADVICE)


def _cases():
    for name, spans, length in STEPS:
        ms, all_of_it = right(spans, length), total(union(spans.get("communication", []), length))
        line = f"{name}: {ms['communication']:g} of {all_of_it:g} ms of communication exposed, {ms['idle']:g} idle"
        yield Case(name, (spans, length), ms, line)
    draw = random.Random(0)
    for number in range(12):
        spans, length = drawn(draw), draw.uniform(20, 30)
        line = "12 drawn at random: right" * (number == 11)
        yield Case(f"drawn at random, {number + 1} of 12", (spans, length), right(spans, length), line)


def drawn(draw):
    """Return spans of all parts in which only the computing parts do not overlap each other."""
    ends = sorted(draw.uniform(0, 32) for _ in range(8))
    spans = {part: [] for part in draw.sample(PARTS, 5)}
    for start, stop in zip(ends, ends[1:], strict=False):
        spans[draw.choice(COMPUTING)].append((start, draw.uniform(start, stop)))
    for part in ("data", "communication"):
        starts = [draw.uniform(0, 28) for _ in range(4)]
        spans[part] = [(start, start + draw.uniform(0, 6)) for start in starts]
    return spans


def _close(found, right) -> bool:
    return isclose(found, right, rel_tol=1e-6, abs_tol=1e-6)


def _told(name):
    def told(case, found):
        spans, length = case.arguments
        shown = ", ".join(f"{part} {spans[part]}" for part in PARTS if spans.get(part)) or "no spans"
        return f"{found:.6g} ms", f"{case.right[name]:.6g} ms\n  {shown}; the step takes {length:.6g} ms", name

    return told
