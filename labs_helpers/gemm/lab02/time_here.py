"""Time lab 02's candidates, and a student's kernel, on this machine in a few seconds."""

from __future__ import annotations

from labs_helpers.course.exercise import whose
from labs_helpers.gemm import study
from labs_helpers.gemm.lab02.ladder import LADDER, with_larger_tiles
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text


def time_here(matmul_add_relu) -> dict:
    """Return {this machine's label: records} for `draw_speedup`, with `matmul_add_relu` as 'yours'.

    Without a GPU only PyTorch is timed, at sizes that a CPU computes quickly.
    """
    here = this_machine()
    sizes, rounds, repeat_ms = ((1024, 2048, 4096), 3, 100) if here.device == "cuda" else ((256, 512, 1024), 2, 40)
    extra = {}
    if here.device == "cuda":
        who = whose(matmul_add_relu)
        extra = LADDER | {
            f"{who}, 64×64×32": matmul_add_relu,
            f"{who}, larger tiles": with_larger_tiles(matmul_add_relu),
        }
    records = study.measure(sizes, rounds=rounds, repeat_ms=repeat_ms, compile_=False, autotune=False, extra=extra)
    rows = frame(records)
    print(as_text(study.table(rows)))
    return {here.label if extra else f"{here.cores}-core CPU, PyTorch only": rows}
