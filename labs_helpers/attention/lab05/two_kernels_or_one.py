"""Compare lab 05's two kernels with the one kernel on a GPU: their times, and their results from run to run.

python -m labs_helpers.attention.lab05.two_kernels_or_one    # this GPU
"""

from __future__ import annotations

from functools import partial

from labs_helpers.attention.baselines import about
from labs_helpers.attention.lab05.inputs import backward_inputs
from labs_helpers.attention.study import STUDY
from labs_helpers.course.exercise import whose
from labs_helpers.launch import program
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.timing import measure_rounds

LENGTH, HEADS, HEAD_DIM = 4096, 8, 64


def two_kernels_or_one(query_gradient, key_value_gradients, L: int = LENGTH) -> None:
    """Print the causal times of both versions, and how many elements of dQ differ between two runs of each.

    Without a GPU, print the records of an H200, for which the two kernels are the reference's.
    """
    here = this_machine()
    if here.interpreted:
        print("recorded on an NVIDIA H200:")
        rows = STUDY.load()
        show(rows[rows["kind"] == "two or one"].drop_duplicates("name", keep="last").to_dict("records"))
    else:
        show(measure(query_gradient, key_value_gradients, L))


def show(records: list[dict]) -> None:
    for r in records:
        spread = (r["p80_ms"] - r["p20_ms"]) / r["median_ms"]
        print(f"{r['name']:<27} {r['median_ms']:.3f} ms (spread {spread:.0%}); two runs differ in", end=" ")
        print(f"{int(r['differing']):,} of {int(r['elements']):,} elements of dQ")


def measure(query_gradient, key_value_gradients, L: int = LENGTH, rounds: int = 5) -> list[dict]:
    """Return one record per version: ms, and how many elements of dQ differ between two runs.

    The operands are those of one causal sequence in this machine's dtype.
    """
    from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients

    here = this_machine()
    given = backward_inputs(L, L, H=HEADS, D=HEAD_DIM, dtype=here.dtype, device=here.device)
    one = partial(one_kernel_gradients, **given, causal=True)

    def two():
        return query_gradient(**given, causal=True), *key_value_gradients(**given, causal=True)

    ways = {f"two kernels ({whose(query_gradient)})": two, "one kernel": one}
    return [
        about("two or one", name, given["q"], True, direction="backward")
        | {**timing.record(), "rounds": rounds}
        | {
            "differing": int((ways[name]()[0] != ways[name]()[0]).sum()),
            "elements": given["q"].numel(),
        }
        for name, timing in measure_rounds(ways, rounds=rounds).items()
    ]


def main(arguments=None) -> None:
    given = STUDY.parser(__doc__).parse_args(arguments)
    if prepare_triton():  # before the import of the kernels
        raise SystemExit("this command needs a GPU, and there is none here")
    from labs_helpers.attention.lab05 import checks, exercises  # noqa: F401  the checks know whose a function is

    records = measure(exercises.query_gradient, exercises.key_value_gradients)
    show(records)
    STUDY.keep(records, given.out)


if __name__ == "__main__":
    program.run(main)
