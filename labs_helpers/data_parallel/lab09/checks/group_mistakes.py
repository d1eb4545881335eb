"""A shard's tensors and their groups, and what common mistakes make of them.

Each is a function of (elements of the shard, its pieces, the groups of numbers), which returns what it makes wrong out
of {"tensors": (begin in the shard, elements) of each, "groups": the groups, with the tensors' places as params}.
"""

from itertools import count


def described(size, pieces, groups):
    """The right answer."""
    return {"tensors": tensors(size, pieces), "groups": grouped(pieces, groups)}


def tensors(size, pieces, cut=lambda at, b, e: (at, at + e - b, at + e - b)):
    at, found = 0, []
    for _, begin, end in pieces:
        first, last, at = cut(at, begin, end)
        found.append((min(first, size), len(range(size)[first:last])))
    return found


def _padded(size, pieces):
    """The last tensor reaches to the shard's end."""
    *first, (at, _) = tensors(size, pieces) or [(0, 0)]
    return [*first, (at, size - at)][: len(pieces)]


def grouped(
    pieces, groups, members=lambda numbers, params: map(numbers.index, set(params) & set(numbers)), then=lambda own: own
):
    """members: of a group, by the numbers that have a piece and the group's own. then: what becomes of the groups."""
    numbers = [number for number, _, _ in pieces]
    own = then([{**group, "params": list(members(numbers, group["params"]))} for group in groups])
    return [{**group, "params": sorted(group["params"])} for group in own]


def _options_from(others):
    """Every group has the options of another one."""
    return lambda own: [{**other, "params": one["params"]} for one, other in zip(own, others(own), strict=True)]


def _alike_together(own):
    found: dict[str, dict] = {}
    for one in own:
        found.setdefault(f"{one | {'params': 0}}", {**one, "params": []})["params"] += one["params"]
    return list(found.values())


def _dealt_out(own):
    at = count()
    return [{**one, "params": [next(at) for _ in one["params"]]} for one in own]


PLACE = "a parameter's number is no index of tensors"
OTHER = "these are the options of another group"
SLICES = (  # (at, begin, end) → where a piece's slice of the shard begins and ends, and where the next one begins
    ("begin is a place in the parameter; in the shard pieces follow one another", lambda at, b, e: (b, e, at)),
    ("all pieces begin at 0: the place in the shard is not moved on", lambda at, b, e: (at, at + e - b, at)),
    ("the place is moved on by end − begin, not by end", lambda at, b, e: (at, at + e - b, at + e)),
    ("the place is moved on by end − begin, not by begin", lambda at, b, e: (at, at + e - b, at + b)),
    ("the place is moved on by end − begin, not to end", lambda at, b, e: (at, at + e - b, e)),
    ("begin and end are exact: the piece has end − begin elements", lambda at, b, e: (at, at + e - b - 1, at + e - b)),
    ("end is no number of elements: the piece has end − begin", lambda at, b, e: (at, at + e, at + e - b)),
    ("a slice ends at its begin plus its length: at + end − begin", lambda at, b, e: (at, e - b, at + e - b)),
    ("end is an element of the parameter, not of the shard: at + end − begin", lambda at, b, e: (at, e, at + e - b)),
    ("the place is moved on before the slice is taken", lambda at, b, e: (at + e - b, at + 2 * (e - b), at + e - b)),
)
WHOLE_LISTS = (  # what becomes of the right groups
    ("an empty group stays: schedules of learning rates go by position", lambda own: [g for g in own if g["params"]]),
    ("groups with the same options stay two: schedules of learning rates go by position", _alike_together),
    ("the first group alone: a return or a break inside the loop ends it", lambda own: own[:1]),
    ("the options of a group are kept: {**group, 'params': …}", lambda own: [{"params": g["params"]} for g in own]),
    (OTHER, _options_from(lambda own: own[::-1])),
    (OTHER, _options_from(lambda own: own[:1] * len(own))),
    (
        "the groups are exchanged: options go with the parameters they came with",
        lambda own: _options_from(lambda own: own[::-1])(own)[::-1],
    ),
    ("tensors are dealt out in order; which group one is in goes by its parameter's number", _dealt_out),
)
MEMBERS = (  # the tensors of a group, by the numbers that have a piece and the group's own
    (PLACE, lambda numbers, params: [n - 1 for n in params if 1 <= n <= len(numbers)]),
    (PLACE, lambda numbers, params: [n for n in params if n < len(numbers)]),
    (
        "a place in a group's list is no index of tensors",
        lambda numbers, params: [i for i, n in enumerate(params) if n in numbers and i < len(numbers)],
    ),
    ("every group has all tensors", lambda numbers, params: range(len(numbers))),
)
MISTAKES = [
    ("the padding behind the last piece belongs to no tensor", lambda n, pieces, _: {"tensors": _padded(n, pieces)}),
    *((said, lambda n, pieces, _, cut=cut: {"tensors": tensors(n, pieces, cut)}) for said, cut in SLICES),
    *((said, lambda _, *given, then=then: {"groups": grouped(*given, then=then)}) for said, then in WHOLE_LISTS),
    *((said, lambda _, *given, of=of: {"groups": grouped(*given, members=of)}) for said, of in MEMBERS),
]
