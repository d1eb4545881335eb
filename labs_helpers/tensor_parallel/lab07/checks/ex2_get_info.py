"""Exercise 2 of lab 07: the grid, by what its communicators do; and what is no grid."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import on_real_ranks
from labs_helpers.course.verdict.messages.python import WHOLE
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.grid_causes import Grid
from labs_helpers.tensor_parallel.lab07.checks.grid_places import (
    expect_places,
    expect_right,
    on_practice_rank,
    on_real_rank,
)
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import of_world, on_ranks
from labs_helpers.tensor_parallel.lab07.checks.refusals import expect_refused

DIMS = 36, 60  # divided by 2, 3 and 6 they give six other numbers
ERRORS = (
    (r"Split: (color|key) is \d*\.\d*, not a whole number", WHOLE),
    (r"Split: (color|key) is None", "a name that has no value yet, or a function without return"),
    (r"not 'split'", "mpi4py's method is Split, with a capital"),
    (r"^AttributeError: these practice ranks know", "groups are made with comm.Split(color=…, key=…) here"),
    (r"^KeyError: 'fc_", "a dict leaves out one of fc_q, fc_k, fc_v and fc_o"),
    (r"^ZeroDivisionError", "% or // by something that is 0 on that rank: by mp_size, not by an index"),
)
REFUSED = (  # what, ranks, grid, layer, in_dim, out_dim, the cause where it is not refused
    ("mp 3 × dp 3 on 6 ranks", 6, Grid(3, 3), "fc_q", 36, 36, "mp_size · dp_size is not comm.Get_size() here"),
    ("mp 3 × dp 1 on 6 ranks", 6, Grid(3, 1), "fc_q", 36, 36, "with fewer ranks than comm has, some are in no grid"),
    ("the layer fc_x", 6, Grid(2, 3), "fc_x", 36, 36, "no branch is for it: an else with raise, or a test before"),
    ("fc_q with out_dim 9 on mp 2", 4, Grid(2, 2), "fc_q", 8, 9, "of fc_q, out_dim is split"),
    ("fc_v with out_dim 10 on mp 4", 4, Grid(4, 1), "fc_v", 8, 10, "of fc_v, too, out_dim is split"),
    ("fc_o with in_dim 9 on mp 2", 4, Grid(2, 2), "fc_o", 9, 8, "of fc_o, in_dim is split: mp_size divides that"),
)
STRICT = r"^ValueError.*\n.*\braise\b"


@exercise("07/2", "the grid", points=15, minutes=20, reference=exercises.get_info)
def get_info(student):
    grids = [Grid(2, 3), Grid(3, 2), Grid(2, 2), Grid(4, 1), Grid(1, 4), Grid(1, 1)]
    for grid in grids:
        _expect_grid(f"{grid}", student, grid, "fc_q", DIMS)
        yield f"{grid}: models of ranks {_listed(grid, 'mp_comm')}; data-parallel groups {_listed(grid, 'dp_comm')}"
    for layer in ("fc_k", "fc_v", "fc_o"):
        for grid in grids[:2]:
            _expect_grid(f"{layer}, {grid}", student, grid, layer, DIMS)
    yield "fc_q, fc_k and fc_v 36 × 60 on mp 2: 36 × 30 on a rank; fc_o: 18 × 60"
    _expect_grid("two grids at once, each of every other rank, in reverse order", student, grids[0], "fc_q", DIMS, True)
    yield "two grids at once: the ranks of comm, in its order, and no others"
    for layer, dims, why in (
        ("fc_q", (7, 8), "of fc_q, in_dim is not split: mp_size need not divide it"),
        ("fc_o", (8, 7), "of fc_o, out_dim is not split: mp_size need not divide it"),
        ("fc_k", (3, 4), "the layer is split among mp_size ranks: dp_size need not divide anything"),
    ):
        grid = grids[2] if layer != "fc_k" else grids[0]
        _expect_grid(f"{layer} of {dims[0]} × {dims[1]}, {grid}", student, grid, layer, dims, strict=why)
    yield "what is not split need not be divisible"
    for what, ranks, grid, *layer, cause in REFUSED:
        expect_refused(student, _on_each, what, [(*grid, *layer)] * ranks, cause)
    yield f"{len(REFUSED)} refusals, each on every rank and before anything is sent"
    case = "the same function on 4 real ranks, in reverse order"
    found = on_real_ranks(case, student, on_real_rank, [(grids[2], "fc_o", *DIMS)] * 4, cause=of_world(student))
    expect_right(case, student, found[::-1], grids[2], "fc_o", DIMS)
    yield case


def _expect_grid(
    case: str, student, grid: Grid, layer: str, dims: tuple, halves: bool = False, strict: str = ""
) -> None:
    """halves: two such grids at once. strict: why an error that the answer raises is one too many."""
    ranks = len(grid.ranks) * (1 + halves)
    too_strict = strict or "this grid and this layer are possible: a test is too strict, or turned round"
    own = [(grid, layer, *dims, halves)] * ranks
    run = on_ranks(case, student, on_practice_rank, own, errors=(*ERRORS, (STRICT, too_strict)))
    expect_places(case, student, run.results, grid, layer, dims)


def _on_each(student, comm, *arguments):
    return student(comm, comm.rank, *arguments)


def _listed(grid: Grid, name: str) -> str:
    return ", ".join("{" + " ".join(map(str, ranks)) + "}" for ranks in dict.fromkeys(grid.groups(name)))
