"""Error messages of layers that are split over a group of ranks, each with its likely cause in lab 07."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from labs_helpers.course.verdict import Wrong

METHODS = "group's methods are all_reduce(t), all_gather(t, dim) and reduce_scatter(t, dim), which return new tensors"
STATE = (
    "what forward keeps in a global variable or an attribute, the next call overwrites; a variable of the function "
    "belongs to one call"
)
ERRORS = (
    (r"'Group' object|'PracticeCommunication' object|all_reduce\(\)|all_gather\(\)|reduce_scatter\(\)", METHODS),
    (
        r"name '(comm|mp_comm|mp_size|mp_idx|rank|size|p)' is not defined",
        "the ranks are group.size, this is group.rank",
    ),
    (
        r"cannot be cut into",
        "reduce_scatter and part give each rank a part of a dimension (reduce_scatter of the first, unless you say); "
        "nothing has to be cut here",
    ),
    (r"another rank's group", STATE),
    (r"second time", "autograd frees what it needs after one backward pass, and there may be more: retain_graph=True"),
    (
        r"not have been used in the graph|does not require grad",
        "autograd does not see what group's methods do; the three gradients are matrix products and sums",
    ),
    (r"has no attribute '(detach|is_contiguous)'", "group's methods take tensors, and nothing else"),
    (
        r"(backward|<lambda>)\(\) (takes|missing)",
        "backward is called with grad_out, and nothing else",
    ),
    (r"init_process_group", "torch.distributed has no part in this; the other ranks are reached through group"),
)


@contextmanager
def explained(sizes: Mapping[str, int]) -> Iterator[None]:
    """Name the dimensions that meet where shapes do not fit, in a Wrong that has no cause yet. sizes: name → size of a
    dimension; two of one size have no name."""
    try:
        yield
    except Wrong as wrong:
        said = wrong.found.partition("\n")[0]  # without the student's own line
        raise Wrong(wrong.case, wrong.found, cause=wrong.causes or _shapes(said, sizes), advice=wrong.advice) from None


def _shapes(text: str, sizes: Mapping[str, int]) -> str:
    """Which dimensions meet where two tensors do not fit, by their names; '' where that is not known."""
    if found := re.search(r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", text):
        a, b, c, d = map(int, found.groups())
        one, other, *rest = (_named(size, sizes) for size in (a, b, c, d))
        product = f"({one} × {other}) @ ({rest[0]} × {rest[1]})"
        turn = {(True, False): "the first one turned round (.T)", (False, True): "the second one turned round (.T)"}
        fitting = turn.get((a == c, b == d), "")
        return f"{product}: the inner sizes differ" + (f"; with {fitting} they would fit" if fitting else "")
    if found := re.search(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", text):
        a, b = map(int, found.groups())
        together = "+ and * take them element by element, and @ batch by batch where there are three dimensions"
        return f"a dimension of {_named(a, sizes)} meets one of {_named(b, sizes)}: {together}"
    if "batch2 tensor" in text:
        return "both factors have three dimensions, so they are multiplied batch by batch: flatten(0, 1) makes matrices"
    return ""


def _named(size: int, sizes: Mapping[str, int]) -> str:
    """'out / p = 6'; '6' where no dimension or several have that size."""
    names = [name for name, value in sizes.items() if value == size]
    return f"{names[0]} = {size}" if len(names) == 1 else str(size)
