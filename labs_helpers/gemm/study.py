"""Time D = ReLU(A·B + C) with `fused_matmul` and with PyTorch's alternatives; lab 02's ladder adds its own steps.

    python -m labs_helpers.gemm.study                     # this machine
    python -m labs_helpers.gemm.study --sizes 1024 2048 --rounds 3 --out /tmp/gemm.jsonl
    python -m labs_helpers.gemm.study --random 200 --seed 7   # random shapes; resumes an interrupted run

Every candidate is compared with a float64 reference before it is timed. Without a GPU only PyTorch is timed,
because the interpreter's time says nothing about a kernel.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial

import torch

from labs_helpers.gemm.configs import default_config
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.tuning.operands import operands
from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.right import time_what_is_right
from labs_helpers.measure.study import Study
from labs_helpers.measure.timing import measure_rounds

STUDY = Study("gemm", "python -m labs_helpers.gemm.study")
load = STUDY.load

SIZES = (1024, 2048, 4096, 8192)
ORDER_SIZES = (8192, 16384)
EAGER, ALONE = "eager", "A·B alone"
ACCURATE = {torch.float16: 3e-3, torch.bfloat16: 1e-2, torch.float32: 3e-3}  # ‖error‖ / ‖reference‖
OURS, PORTABLE = "fused_matmul", "fused_matmul, portable kernel"
# The products of LLaMA models' linear layers on 4096 tokens.
LAYERS = tuple((4096, n, k) for n in (1024, 4096, 11008, 14336) for k in (1024, 4096, 11008, 14336))


def portable(a, b, c):
    """Run `fused_matmul` with the portable kernel, whichever kernel the plan would choose."""
    config = default_config(*c.shape, a.shape[1], a.dtype, this_machine().architecture)
    return fused_matmul(a, b, c, config=config)


def formula(a, b, c):
    """Compute D in plain PyTorch, which runs three kernels in eager mode."""
    return torch.matmul(a, b).add(c).relu_()


def candidates(compile_: bool, autotune: bool) -> dict:
    """Return name → function of (a, b, c), baselines first. `ALONE` computes only A·B."""
    on_gpu = this_machine().device == "cuda"
    ways = {
        ALONE: lambda a, b, c: torch.matmul(a, b),
        EAGER: formula,
        "addmm + relu": lambda a, b, c: torch.addmm(c, a, b).relu_(),
    }
    if on_gpu:
        ways["_addmm_activation"] = lambda a, b, c: torch._addmm_activation(c, a, b)
    if compile_:
        ways["torch.compile"] = torch.compile(formula, dynamic=False)
    if autotune:
        ways["torch.compile, max-autotune"] = torch.compile(formula, dynamic=False, mode="max-autotune-no-cudagraphs")
    if on_gpu:
        ways[PORTABLE] = portable
        ways[OURS] = fused_matmul
    return ways


def relative_error(got, reference) -> float:
    """Return ‖got − reference‖ / ‖reference‖ in float64, or NaN if an element is not finite."""
    return float((got.double() - reference).norm() / reference.norm())


def measure(
    shapes=SIZES,
    dtype=None,
    rounds: int = 5,
    repeat_ms: float = 200,
    compile_: bool = True,
    autotune: bool | None = None,
    extra: dict | None = None,
    graph: bool = False,
) -> list[dict]:
    """Return one record per shape and candidate, with times in ms and errors relative to float64.

    shapes: n for n×n×n, or (M, N, K). extra: more candidates. graph: also measure from CUDA graphs, which gives a
    second record with `cold_l2` false. Raises ValueError if a result is wrong; candidates are timed only after this
    check.
    """
    here = this_machine()
    dtype = dtype or here.dtype
    on_gpu = here.device == "cuda"
    autotune = on_gpu if autotune is None else autotune
    if compile_ and not on_gpu and shutil.which("c++") is None:
        print("torch.compile is not timed: it found no C++ compiler")
        compile_ = False
    records = []
    for shape in shapes:
        M, N, K = (shape,) * 3 if isinstance(shape, int) else shape
        torch._dynamo.reset()
        a, b, c = operands(M, N, K, dtype)
        product = a.double() @ b.double()
        full = torch.relu(product + c.double())

        def check(name, got, product=product, full=full):
            error = relative_error(got, product if name == ALONE else full)
            if not error < ACCURATE[dtype]:
                raise ValueError(f"relative error {error:.2g} against float64")
            return error

        def failed(name, error, shape=(M, N, K)):
            if not isinstance(error, torch._dynamo.exc.BackendCompilerFailed):
                raise ValueError(f"{name} at {'×'.join(map(str, shape))}: {error}") from error
            # For example in a folder with a space in its path.
            print(f"{name} is not timed, because its compiler failed: {str(error).splitlines()[0]}")

        ways = candidates(compile_, autotune) | (extra or {})
        records += time_what_is_right(
            {name: partial(function, a, b, c) for name, function in ways.items()},
            check,
            about(M, N, K, dtype),
            graphs=(False, True) if graph else (False,),
            failed=failed,
            rounds=rounds,
            repeat_ms=repeat_ms,
        )
    return records


def about(M: int, N: int, K: int, dtype) -> dict:
    """Return the fields that every record of a product contains."""
    return {"study": STUDY.name, "M": M, "N": N, "K": K, "dtype": str(dtype).removeprefix("torch.")}


def measure_order(n: int, groups=(1, 2, 4, 8, 16, 32), rounds: int = 5, repeat_ms: float = 200) -> list[dict]:
    """Return one record per GROUP_M: `fused_matmul` at n×n in float16, with its default configuration otherwise."""
    here = this_machine()
    dtype = torch.float16
    a, b, c = (torch.randn(n, n, dtype=dtype, device=here.device) for _ in range(3))
    default = default_config(n, n, n, dtype, here.architecture)
    ways = {group: partial(fused_matmul, a, b, c, config=replace(default, GROUP_M=group)) for group in groups}
    return [
        {**about(n, n, n, dtype), "name": f"{OURS}, GROUP_M = {group}", "GROUP_M": group}
        | {**timing.record(), "rounds": rounds, "cold_l2": True, "graph": False}
        for group, timing in measure_rounds(ways, rounds=rounds, repeat_ms=repeat_ms).items()
    ]


def table(rows):
    """Return one row per candidate: median, spread, rate, and speed relative to eager if eager was measured too."""
    import pandas

    square = (rows["M"] == rows["N"]) & (rows["N"] == rows["K"])
    shape = rows["M"].astype(str) + "×" + rows["N"].astype(str) + "×" + rows["K"].astype(str)
    measured = rows["M"], rows["N"], rows["K"], rows["dtype"], rows["graph"]
    eager = rows["median_ms"].where(rows["name"] == EAGER).groupby(list(measured)).transform("first")
    shown = {
        "shape": shape.mask(square, rows["M"].astype(str)),
        "dtype": rows["dtype"],
        "timed": rows["graph"].map({True: "graph", False: "call"}),
        "candidate": rows["name"],
        "ms": rows["median_ms"].map("{:.4f}".format),
        "spread": ((rows["p80_ms"] - rows["p20_ms"]) / rows["median_ms"]).map("{:.0%}".format),
        "TFLOP/s": (2 * rows["M"] * rows["N"] * rows["K"] / rows["median_ms"] / 1e9).map("{:.3g}".format),
        "× eager": (eager / rows["median_ms"]).map("{:.2f}".format),
    }
    return pandas.DataFrame(shown)


def everything(rounds: int, ladder: dict) -> list[dict]:
    """Run the whole study on a GPU: squares in both 16-bit dtypes, by calls and from graphs; layers; tile orders."""
    records = measure(SIZES, torch.float16, rounds, extra=ladder, graph=True)
    if this_machine().supports_bfloat16:
        records += measure(SIZES, torch.bfloat16, rounds, graph=True)
    records += measure(LAYERS, torch.float16, rounds, compile_=False, autotune=False)
    return records + [record for n in ORDER_SIZES for record in measure_order(n, rounds=rounds)]


def main(arguments=None, ladder: dict | None = None) -> None:
    """Run the study from the command line. ladder: more candidates on a GPU, name → function of (a, b, c)."""
    from labs_helpers.gemm.random_study import RANDOM  # it imports these candidates

    parser = STUDY.parser(__doc__, limit=12 * program.HOUR)
    parser.add_argument("--sizes", type=int, nargs="+", help="only these n×n×n; default on a GPU: the whole study")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), help="default: this machine's")
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds in which candidates take turns; default: %(default)s"
    )
    RANDOM.add_options(parser)
    parser.add_argument(
        "--autotuned", type=int, default=20, help="how many of these to repeat with max-autotune; default: %(default)s"
    )
    given = parser.parse_args(arguments)
    on_gpu = this_machine().device == "cuda"
    dtype = getattr(torch, given.dtype) if given.dtype else this_machine().dtype
    if given.random:
        how = {"autotuned": given.autotuned, "seconds": given.seconds}
        RANDOM.report(RANDOM.run(given.random, given.seed, dtype, given.out, **how))
        return
    if on_gpu and not given.sizes:
        records = everything(given.rounds, ladder or {})
    else:
        records = measure(given.sizes or (256, 512, 1024), dtype, given.rounds, extra=ladder if on_gpu else None)
    STUDY.keep(records, given.out, table=table)


if __name__ == "__main__":
    program.run(main)
