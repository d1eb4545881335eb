"""A shard's tensors and their groups, and the results of common mistakes.

Each mistake is a function of (elements of the shard, its pieces, the groups of numbers). It returns the wrong part of
{"tensors": (begin in the shard, elements) of each, "groups": the groups, with positions in tensors as params}.
"""

from itertools import count


def described(size, pieces, groups):
    """Return the right answer."""
    return {"tensors": tensors(size, pieces), "groups": grouped(pieces, groups)}


def tensors(size, pieces, cut=lambda at, b, e: (at, at + e - b, at + e - b)):
    at, found = 0, []
    for _, begin, end in pieces:
        first, last, at = cut(at, begin, end)
        found.append((min(first, size), len(range(size)[first:last])))
    return found


def _padded(size, pieces):
    """Return tensors of which the last reaches to the shard's end."""
    *first, (at, _) = tensors(size, pieces) or [(0, 0)]
    return [*first, (at, size - at)][: len(pieces)]


def grouped(
    pieces, groups, members=lambda numbers, params: map(numbers.index, set(params) & set(numbers)), then=lambda own: own
):
    """Return the groups. members: selects a group's tensors. then: transforms the list of groups."""
    numbers = [number for number, _, _ in pieces]
    own = then([{**group, "params": list(members(numbers, group["params"]))} for group in groups])
    return [{**group, "params": sorted(group["params"])} for group in own]


def _options_from(others):
    """Give every group the options of another one."""
    return lambda own: [{**other, "params": one["params"]} for one, other in zip(own, others(own), strict=True)]


def _alike_together(own):
    found: dict[str, dict] = {}
    for one in own:
        found.setdefault(f"{one | {'params': 0}}", {**one, "params": []})["params"] += one["params"]
    return list(found.values())


def _dealt_out(own):
    at = count()
    return [{**one, "params": [next(at) for _ in one["params"]]} for one in own]


PLACE = "a parameter number is not an index into tensors"
OTHER = "these are the options of another group"
SLICES = (  # (at, begin, end) → where a piece's slice of the shard begins and ends, and where the next one begins
    (
        "begin counts from the start of the parameter, but in the shard pieces follow one another",
        lambda at, b, e: (b, e, at),
    ),
    ("all pieces begin at 0: the offset in the shard is never advanced", lambda at, b, e: (at, at + e - b, at)),
    ("advance the offset by end − begin, not by end", lambda at, b, e: (at, at + e - b, at + e)),
    ("advance the offset by end − begin, not by begin", lambda at, b, e: (at, at + e - b, at + b)),
    ("advance the offset by end − begin, not to end", lambda at, b, e: (at, at + e - b, e)),
    ("end is exclusive: the piece has end − begin elements", lambda at, b, e: (at, at + e - b - 1, at + e - b)),
    ("end is not a length: the piece has end − begin elements", lambda at, b, e: (at, at + e, at + e - b)),
    ("a slice ends at its begin plus its length, at + end − begin", lambda at, b, e: (at, e - b, at + e - b)),
    (
        "end counts from the start of the parameter, not of the shard: use at + end − begin",
        lambda at, b, e: (at, e, at + e - b),
    ),
    ("the offset is advanced before the slice is taken", lambda at, b, e: (at + e - b, at + 2 * (e - b), at + e - b)),
)
WHOLE_LISTS = (  # transforms the right groups
    (
        "keep empty groups, because learning-rate schedules look up groups by position",
        lambda own: [g for g in own if g["params"]],
    ),
    (
        "keep groups with the same options separate, because learning-rate schedules look up groups by position",
        _alike_together,
    ),
    ("only the first group is returned: a return or break inside the loop ends it", lambda own: own[:1]),
    ("keep the options of a group: {**group, 'params': …}", lambda own: [{"params": g["params"]} for g in own]),
    (OTHER, _options_from(lambda own: own[::-1])),
    (OTHER, _options_from(lambda own: own[:1] * len(own))),
    (
        "the groups are swapped: each set of options belongs to the parameters it came with",
        lambda own: _options_from(lambda own: own[::-1])(own)[::-1],
    ),
    ("tensors are dealt out in order, but the parameter's number determines the group", _dealt_out),
)
MEMBERS = (  # (numbers that have a piece, the group's own numbers) → the group's tensors
    (PLACE, lambda numbers, params: [n - 1 for n in params if 1 <= n <= len(numbers)]),
    (PLACE, lambda numbers, params: [n for n in params if n < len(numbers)]),
    (
        "a position in a group's list is not an index into tensors",
        lambda numbers, params: [i for i, n in enumerate(params) if n in numbers and i < len(numbers)],
    ),
    ("every group has all tensors", lambda numbers, params: range(len(numbers))),
)
MISTAKES = [
    ("the padding after the last piece belongs to no tensor", lambda n, pieces, _: {"tensors": _padded(n, pieces)}),
    *((said, lambda n, pieces, _, cut=cut: {"tensors": tensors(n, pieces, cut)}) for said, cut in SLICES),
    *((said, lambda _, *given, then=then: {"groups": grouped(*given, then=then)}) for said, then in WHOLE_LISTS),
    *((said, lambda _, *given, of=of: {"groups": grouped(*given, members=of)}) for said, of in MEMBERS),
]
