"""Lab 05 on this machine's GPU: two kernels beside one, in time and from run to run."""

from __future__ import annotations

from functools import partial

from labs_helpers.attention.lab05.inputs import backward_inputs
from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients
from labs_helpers.course.exercise import whose
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import measure_rounds


def two_kernels_or_one(query_gradient, key_value_gradients, L: int = 4096) -> None:
    """Prints what both ways take, causal, and in how many elements of dQ two runs of the one kernel differ.

    Without a GPU it says that there is nothing to time.
    """
    here = this_machine()
    if here.interpreted:
        print("no GPU here: what the interpreter takes says nothing about a kernel")
        return
    given = backward_inputs(L, L, H=8, D=64, dtype=here.dtype, device=here.device)
    one = partial(one_kernel_gradients, **given, causal=True)

    def two():
        return query_gradient(**given, causal=True), key_value_gradients(**given, causal=True)

    for name, timing in measure_rounds({f"two kernels ({whose(query_gradient)})": two, "one kernel": one}).items():
        print(f"{name:<24} {timing}")
    changed = int((one()[0] != one()[0]).sum())
    print(f"elements of dQ that differ between two runs of the one kernel: {changed:,} of {given['q'].numel():,}")
