"""What PyTorch and Python say of common mistakes with parts of tensors, each with its likely cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from labs_helpers.course.verdict import Wrong, cause_of

METHODS = "group's methods are all_reduce(t), all_gather(t, dim) and reduce_scatter(t, dim), which return new tensors"
STATE = (
    "what forward keeps in a global variable or an attribute, the next call overwrites (ranks here share them); a "
    "variable of the function belongs to one call"
)
CAUSES = (
    (
        r"cannot access local variable|referenced before assignment",
        "a name is used before this function gives it a value; in an inner function an assignment makes a name its own "
        "from the first line on: take another name",
    ),
    (
        r"has to be contiguous",
        "the sum is written into the tensor's own memory, which has to be one run: take .contiguous() first",
    ),
    (
        r"view size is not compatible",
        "a tensor may be a transposed or sliced view; reshape and flatten take one, view does not",
    ),
    (r"'Group' object|'PracticeCommunication' object|all_reduce\(\)|all_gather\(\)|reduce_scatter\(\)", METHODS),
    (
        r"name '(comm|mp_comm|mp_size|mp_idx|rank|size|p)' is not defined",
        "the ranks are group.size, this is group.rank",
    ),
    (r"name 'torch' is not defined", "`import torch` is missing in your cell"),
    (
        r"cannot be cut into",
        "reduce_scatter and part give each rank a part of a dimension (reduce_scatter of the first, unless you say); "
        "nothing has to be cut here",
    ),
    (r"another rank's group", STATE),
    (
        r"Mismatch: \w+: elements",
        "the ranks are at different collectives, or bring tensors of different sizes: does each rank call the same "
        "ones, in the same order, outside of any if?",
    ),
    (r"all_reduce\(t, op\)", 'all_reduce adds up, all_reduce(t, "max") takes the largest; it knows nothing else'),
    (r"second time", "autograd frees what it needs after one backward pass, and there may be more: retain_graph=True"),
    (
        r"not have been used in the graph|does not require grad",
        "autograd does not see what group's methods do; the three gradients are matrix products and sums",
    ),
    (r"return_types", "t.max(-1) returns (values, indices); t.amax(-1) is the values alone"),
    (r"has no attribute '(detach|is_contiguous)'", "group's methods take tensors, and nothing else"),
    (
        r"must be a matrix|must be a 3D tensor|1D tensors expected",
        "dot takes vectors, mm and addmm matrices, bmm three dimensions each; @ takes (batch, length, in) @ (in, out)",
    ),
    (
        r"(backward|<lambda>)\(\) (takes|missing)",
        "backward is called with grad_out, and nothing else",
    ),
    (r"init_process_group", "torch.distributed has no part in this; the other ranks are reached through group"),
    (r"`x\.T` on tensors", "on three dimensions .T turns all of them round; flatten(0, 1) first, or use .mT"),
)


@contextmanager
def explained(sizes: Mapping[str, int], errors: Sequence[tuple[str, str]] = ()) -> Iterator[None]:
    """Gives a Wrong of a rank's error its cause. sizes: name → size of a dimension; two of one size have no name.
    errors: (pattern, cause), which come before those that are known here."""
    try:
        yield
    except Wrong as wrong:
        said = wrong.found.partition("\n")[0]  # without the student's own line
        cause = cause_of(said, (*errors, *CAUSES)) or _shapes(said, sizes)
        raise Wrong(wrong.case, wrong.found, cause=cause or wrong.causes, advice=wrong.advice) from None


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
