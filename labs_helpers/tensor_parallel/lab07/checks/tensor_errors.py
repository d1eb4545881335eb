"""Error messages of layers split over a group of ranks, each with its likely cause in lab 07."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from labs_helpers.course.verdict import Wrong

METHODS = "group's methods are all_reduce(t), all_gather(t, dim) and reduce_scatter(t, dim), which return new tensors"
STATE = (
    "forward keeps something in a global variable or an attribute, and the next call overwrites it; a local variable "
    "belongs to one call"
)
ERRORS = (
    (r"'Group' object|'PracticeCommunication' object|all_reduce\(\)|all_gather\(\)|reduce_scatter\(\)", METHODS),
    (
        r"name '(comm|mp_comm|mp_size|mp_idx|rank|size|p)' is not defined",
        "the number of ranks is group.size, and this rank is group.rank",
    ),
    (
        r"cannot be cut into",
        "reduce_scatter and part give each rank a part of a dimension (reduce_scatter of the first, unless you pass "
        "dim); nothing has to be split here",
    ),
    (r"another rank's group", STATE),
    (
        r"second time",
        "autograd frees its graph after one backward pass, and backward may be called again: retain_graph=True",
    ),
    (
        r"not have been used in the graph|does not require grad",
        "autograd cannot differentiate group's methods; compute the three gradients as matrix products and sums",
    ),
    (r"has no attribute '(detach|is_contiguous)'", "group's methods take only tensors"),
    (
        r"(backward|<lambda>)\(\) (takes|missing)",
        "backward is called with one argument, grad_out",
    ),
    (r"init_process_group", "the exercise does not use torch.distributed; reach the other ranks through group"),
)


@contextmanager
def explained(sizes: Mapping[str, int]) -> Iterator[None]:
    """Add the names of mismatched dimensions to a Wrong without a cause.

    sizes maps a dimension's name to its size; a size that two dimensions share gets no name.
    """
    try:
        yield
    except Wrong as wrong:
        said = wrong.found.partition("\n")[0]  # without the student's own line
        raise Wrong(wrong.case, wrong.found, cause=wrong.causes or _shapes(said, sizes), advice=wrong.advice) from None


def _shapes(text: str, sizes: Mapping[str, int]) -> str:
    """Name the mismatched dimensions of two tensors, or return '' if the message does not tell them."""
    if found := re.search(r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", text):
        a, b, c, d = map(int, found.groups())
        one, other, *rest = (_named(size, sizes) for size in (a, b, c, d))
        product = f"({one} × {other}) @ ({rest[0]} × {rest[1]})"
        turn = {(True, False): "the first one transposed (.T)", (False, True): "the second one transposed (.T)"}
        fitting = turn.get((a == c, b == d), "")
        return f"{product}: the inner sizes differ" + (f"; with {fitting} they would fit" if fitting else "")
    if found := re.search(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", text):
        a, b = map(int, found.groups())
        together = "+ and * combine tensors element by element, and @ combines three-dimensional ones batch by batch"
        return f"a dimension of {_named(a, sizes)} meets one of {_named(b, sizes)}: {together}"
    if "batch2 tensor" in text:
        return (
            "both factors have three dimensions, so @ multiplies them batch by batch; flatten(0, 1) makes them matrices"
        )
    return ""


def _named(size: int, sizes: Mapping[str, int]) -> str:
    """Return 'out / p = 6', or just '6' if no dimension or several have that size."""
    names = [name for name, value in sizes.items() if value == size]
    return f"{names[0]} = {size}" if len(names) == 1 else str(size)
