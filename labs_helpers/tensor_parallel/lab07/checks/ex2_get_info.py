"""Check exercise 2 of lab 07: the grid and its communicators, and the refusal of impossible arguments."""

from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, on_real_ranks
from labs_helpers.course.verdict.messages.python import WHOLE
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.grid_mistakes import INDICES, Grid, group_mistakes, part_mistakes
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import WORLD, expect_anew, of_world, on_ranks
from labs_helpers.tensor_parallel.lab07.checks.refusals import expect_refused

NAMES = ("mp_idx", "dp_idx", "mp_comm", "dp_comm", "part_in_dim", "part_out_dim")
FORM = f"({', '.join(NAMES)})"
DIMS = 36, 60  # their quotients by 2, 3 and 6 are six different numbers
ERRORS = (
    (r"Split: (color|key) is \d*\.\d*, not a whole number", WHOLE),
    (r"Split: (color|key) is None", "a variable is still None, or a function lacks its return"),
    (r"not 'split'", "mpi4py's method is Split, with a capital S"),
    (r"^AttributeError: these practice ranks know", "create the groups with comm.Split(color=…, key=…)"),
    (r"^KeyError: 'fc_", "a dict leaves out one of fc_q, fc_k, fc_v and fc_o"),
    (r"^ZeroDivisionError", "% or // divides by a number that is 0 on that rank; divide by mp_size, not by an index"),
)
STRICT = r"^ValueError.*\n.*\braise\b"
REFUSED = (  # case, ranks, grid, layer, in_dim, out_dim, the cause if the answer accepts it
    ("mp 3 × dp 3 on 6 ranks", 6, Grid(3, 3), "fc_q", 36, 36, "mp_size · dp_size differs from comm.Get_size()"),
    (
        "mp 3 × dp 1 on 6 ranks",
        6,
        Grid(3, 1),
        "fc_q",
        36,
        36,
        "the grid is smaller than comm, so some ranks are outside it",
    ),
    (
        "the layer fc_x",
        6,
        Grid(2, 3),
        "fc_x",
        36,
        36,
        "it is treated as one of the four layers; raise ValueError for any other name",
    ),
    (
        "fc_q with out_dim 9 on mp 2",
        4,
        Grid(2, 2),
        "fc_q",
        8,
        9,
        "fc_q is split on out_dim, so mp_size has to divide that",
    ),
    (
        "fc_v with out_dim 10 on mp 4",
        4,
        Grid(4, 1),
        "fc_v",
        8,
        10,
        "fc_v, too, is split on out_dim, so mp_size has to divide that",
    ),
    (
        "fc_o with in_dim 9 on mp 2",
        4,
        Grid(2, 2),
        "fc_o",
        9,
        8,
        "fc_o is split on in_dim, so mp_size has to divide that",
    ),
)
POSSIBLE = (  # grid, layer, dims, the cause of an error
    (Grid(2, 2), "fc_q", (7, 8), "fc_q is not split on in_dim, so mp_size need not divide it"),
    (Grid(2, 2), "fc_o", (8, 7), "fc_o is not split on out_dim, so mp_size need not divide it"),
    (Grid(2, 3), "fc_k", (3, 4), "the layer is split over mp_size ranks, so dp_size need not divide anything"),
)


class Words(str):
    """A rank's answer as shown and compared; its repr has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


@exercise("07/2", "the grid", points=15, minutes=20, reference=exercises.get_info)
def get_info(student):
    grids = [Grid(2, 3), Grid(3, 2), Grid(2, 2), Grid(4, 1), Grid(1, 4), Grid(1, 1)]
    for grid in grids:
        _expect_grid(f"{grid}", student, grid)
        yield f"{grid}: models of ranks {_listed(grid, 'mp_comm')}; data-parallel groups {_listed(grid, 'dp_comm')}"
    for layer in ("fc_k", "fc_v", "fc_o"):
        for grid in grids[:2]:
            _expect_grid(f"{layer}, {grid}", student, grid, layer)
    yield "36 × 60 layers on mp 2: 36 × 30 per rank for fc_q, fc_k and fc_v; 18 × 60 for fc_o"
    _expect_grid("two grids at once, each of every other rank, in reverse order", student, grids[0], halves=True)
    yield "two grids at once: each uses only the ranks of its comm, in their order"
    for grid, layer, dims, why in POSSIBLE:
        _expect_grid(f"{layer} of {dims[0]} × {dims[1]}, {grid}", student, grid, layer, dims, strict=why)
    yield "a dimension that is not split need not be divisible"
    first, then = ([(grid, "fc_q", *DIMS, False)] * 6 for grid in grids[:2])
    yield expect_anew("mp 2 × dp 3, then mp 3 × dp 2", student, _place_of, first, then)
    for what, ranks, *arguments, cause in REFUSED:
        expect_refused(student, _refused, what, [tuple(arguments)] * ranks, cause)
    yield f"{len(REFUSED)} refusals, each on every rank and before any communication"
    case = "the same function on 4 real ranks, in reverse order"
    found = on_real_ranks(case, student, _on_real_rank, [(grids[2], "fc_o", *DIMS)] * 4, cause=of_world(student))
    _expect_right(case, student, found[::-1], grids[2], "fc_o", DIMS)
    yield case


def _expect_grid(case, student, grid, layer="fc_q", dims=DIMS, halves=False, strict="") -> None:
    """Raise Wrong unless the answer builds this grid. halves: test two grids at once. strict: why it must not raise."""
    too_strict = strict or "this grid and this layer are possible; a condition is too strict, or negated"
    own = [(grid, layer, *dims, halves)] * (len(grid.ranks) * (1 + halves))
    run = on_ranks(case, student, _on_rank, own, errors=(*ERRORS, (STRICT, too_strict)))
    for ranks in dict.fromkeys(ranks for ranks, *_ in run.results):
        found = [_place(case, student, rank, *run.results[one]) for rank, one in enumerate(ranks)]
        _expect_right(case, student, found, grid, layer, dims)


def _on_rank(student, world, grid, layer, in_dim, out_dim, halves):
    """Return (comm's ranks, the answer, the ranks of each of its communicators), all as world ranks.

    halves: comm has every other rank, in reverse order, and the remaining ranks form a second grid.
    """
    comm = world.Split(color=world.rank % 2, key=-world.rank) if halves else world
    answer = student(comm, comm.rank, *grid, layer, in_dim, out_dim)
    parts = answer if isinstance(answer, (tuple, list)) else ()
    return comm.ranks, answer, [getattr(part, "ranks", None) for part in parts]


def _place_of(student, world, *arguments):
    """Return the answer with its communicators replaced by their ranks."""
    _, answer, members = _on_rank(student, world, *arguments)
    return [*answer[:2], *answer[4:], *members[2:4]]


def _on_real_rank(student, world, grid, layer, in_dim, out_dim):
    """Return the same on a real rank; comm has all ranks in reverse order."""
    comm = world.Split(color=0, key=-world.rank)
    answer = student(comm, comm.rank, *grid, layer, in_dim, out_dim)
    return *answer[:2], *(tuple(group.allgather(comm.rank)) for group in answer[2:4]), *answer[4:]


def _refused(student, comm, grid, *layer):
    return student(comm, comm.rank, *grid, *layer)


def _place(case: str, student, rank: int, ranks: tuple, answer, members: list) -> tuple:
    """Return a rank's answer with its communicators' ranks, −1 for one outside comm; raise Wrong on a bad form."""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(NAMES):
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"rank {rank} returned {answer!r:.90}; expected {FORM}", cause=cause)
    for name, part, group in zip(NAMES, answer, members, strict=True):
        if name.endswith("comm"):
            kind, fits, cause = "one of comm's communicators", group is not None, of_world(student)
        else:
            kind, fits = "an integer", isinstance(part, Integral) and not isinstance(part, bool)
            cause = WHOLE if isinstance(part, float) else ""
        if not fits:
            elsewhere = any(one is not None for one in (*members[:2], *members[4:]))
            cause = f"the order is {FORM}" if elsewhere else cause
            raise Wrong(case, f"rank {rank}: {name} is {part!r:.60}, not {kind}", cause=cause)
    named = [None if group is None else tuple(ranks.index(r) if r in ranks else -1 for r in group) for group in members]
    return tuple(part if group is None else group for part, group in zip(answer, named, strict=True))


def _expect_right(case: str, student, found: list[tuple], grid: Grid, layer: str, dims: tuple[int, int]) -> None:
    """Raise Wrong at the first wrong part of the answers. found: one answer per rank of comm."""
    rank_advice = "draw the grid with one row per model, and write the ranks into it"

    def expect(name, mine, right, candidates, seen="", advice=rank_advice):
        pairs = ((sentence, _words(name, one)) for sentence, one in candidates)
        comparison = Comparison("rank {0}", otherwise=(lambda _: seen,), advice=advice)
        comparison.expect(f"{case}, {name}", _words(name, mine), _words(name, right), lambda: pairs)

    indices = ((sentence, grid.of_all(one)) for sentence, one in INDICES)
    right = grid.of_all(lambda r, p, d: (r % p, r // p))
    expect("(mp_idx, dp_idx)", [tuple(place[:2]) for place in found], right, indices, of_world(student))
    for i, name in ((2, "mp_comm"), (3, "dp_comm")):
        mine, right, seen = [place[i] for place in found], grid.groups(name), ""
        if any(-1 in ranks for ranks in mine):
            seen = of_world(student) and WORLD or "it contains ranks outside comm; another communicator was split"
        elif [sorted(ranks) for ranks in mine] == [sorted(ranks) for ranks in right]:
            seen = "the ranks are right, but their order is not; key orders them, lowest first"
        expect(name, mine, right, ((sentence, grid.split(one)) for sentence, one in group_mistakes(name)), seen)
    parts = ((sentence, [one(*grid, *dims)] * len(found)) for sentence, one in part_mistakes(layer))
    right, advice = (
        [grid.part(layer, *dims)] * len(found),
        "which dimension of this layer is split, into how many parts?",
    )
    expect("(part_in_dim, part_out_dim)", [tuple(place[4:]) for place in found], right, parts, advice=advice)


def _words(name: str, values: list[tuple]) -> list[Words]:
    if not name.endswith("comm"):
        return [Words(tuple(map(int, value))) for value in values]
    others = " and others that are not in comm"
    return [Words(f"ranks {', '.join(str(r) for r in ranks if r >= 0)}" + others * (-1 in ranks)) for ranks in values]


def _listed(grid: Grid, name: str) -> str:
    return ", ".join("{" + " ".join(map(str, ranks)) + "}" for ranks in dict.fromkeys(grid.groups(name)))
