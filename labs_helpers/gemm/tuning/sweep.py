"""Measure every configuration of a kernel on some shapes, and record what the compiler says of each.

python -m labs_helpers.gemm.tuning.sweep compile      # resources for T4, A100 and H100: no GPU needed
python -m labs_helpers.gemm.tuning.sweep measure      # times on this machine's GPU
python -m labs_helpers.gemm.tuning.sweep waves        # one configuration, row of tiles by row of tiles
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from tqdm.auto import tqdm

from labs_helpers.compile.ahead_of_time import TRITON_3_2, CompileError, compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.fused_matmul import fused_matmul
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.study import keep, make_parser
from labs_helpers.measure.timing import MeasurementError
from labs_helpers.measure.timing import measure as time_it

# Square ones, and the layers of a LLaMA-7B: attention's and the feed-forward's two, on 4096 tokens.
SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4096, 4096, 1024),
    (4096, 11008, 4096),
    (4096, 4096, 11008),
)
TARGETS = ("sm_75", "sm_80", "sm_90")
WAVE_CONFIG = Config(128, 256, 64, num_warps=8, num_stages=3)  # of its programs one fits an SM of an H200
TOLERANCE = 1e-3  # ‖D − reference‖ / ‖reference‖ of float16 with float32 accumulation stays well below


def compile_table(targets=TARGETS, configs=None) -> list[dict]:
    """A record for each configuration and target: shared memory in bytes, registers a thread, bytes spilled,
    tensor-core instructions, and the Triton that compiled it; `error` holds the compiler's message where it refuses.
    A progress bar; an interrupt keeps what was compiled.

    sm_75 is compiled by Triton 3.2.0. Raises FileNotFoundError where that is not installed.
    """
    if "sm_75" in targets and not TRITON_3_2.is_dir():
        raise FileNotFoundError(
            f"Triton 3.2.0 is not at {TRITON_3_2}, and newer ones do not use a T4's tensor cores; "
            f"pip install --target {TRITON_3_2.name} --no-deps triton==3.2.0"
        )
    jobs = []
    x = [torch.zeros(512, 512, dtype=torch.float16, device=this_machine().device) for _ in range(3)]
    for config in configs or grid():
        with record_launches(run=False) as launches:
            fused_matmul(*x, config=config)
        jobs += [(config, target, job(launches[-1], target)) for target in targets]
    records = []
    with ThreadPoolExecutor(this_machine().cores) as pool:
        try:
            records += tqdm(pool.map(_compile_one, jobs), total=len(jobs), desc="configurations compiled")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print(f"interrupted: {len(records)} records are kept")
    return records


def _compile_one(order) -> dict:
    config, target, compilation = order
    record = {"study": "gemm-tuning", "kind": "compiled", "target": target, **config.keywords()}
    try:
        (compiled,) = compile_all([compilation], triton_path=str(TRITON_3_2) if target == "sm_75" else None)
    except CompileError as error:
        return record | {"error": str(error)[-300:]}
    return record | {
        "shared": compiled.shared,
        "registers": compiled.registers,
        "spills": compiled.spills,
        "tensor_core": sum(compiled.tensor_core.values()),
        "triton": compiled.triton,
    }


def measure_sweep(
    shapes=SHAPES,
    configs=None,
    dtype=torch.float16,
    repeat_ms: float = 25,
    kernel=fused_matmul,
    name: str = "fused_matmul",
    formula=None,
    kind: str = "measured",
) -> list[dict]:
    """A record for each shape and configuration: median in ms, or why there is none (`error`).

    kernel: called as kernel(a, b, c, config=…), with C of M×N. formula: the same in plain PyTorch, given float64; by
    default ReLU(A·B + C). Nothing is timed before its result is right against float64. A progress bar; an interrupt
    keeps what was measured.
    """
    records = []
    configs = configs or grid()
    try:
        for M, N, K in shapes:
            a, b, c = _operands(M, N, K, dtype)
            reference = (formula or _relu_formula)(a.double(), b.double(), c.double())
            for config in tqdm(configs, desc=f"{M}×{N}×{K}", mininterval=2):
                record = {
                    "study": "gemm-tuning",
                    "kind": kind,
                    "kernel": name,
                    "M": M,
                    "N": N,
                    "K": K,
                    "dtype": str(dtype).removeprefix("torch."),
                    **config.keywords(),
                }
                records.append(record | _measure_one(partial(kernel, a, b, c, config=config), reference, repeat_ms))
    except KeyboardInterrupt:
        print(f"interrupted: {len(records)} measurements are kept")
    return records


def _measure_one(function, reference, repeat_ms: float) -> dict:
    try:
        error = float((function().double() - reference).norm() / reference.norm())
        if not error < TOLERANCE:
            return {"error": f"wrong: relative error {error:.2g}"}
        timing = time_it(function, warmup_ms=5, repeat_ms=repeat_ms)
    except MeasurementError as error:
        return {"error": str(error.__cause__)[:200]}
    except Exception as error:  # a configuration that cannot run is a result of the sweep
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {
        "median_ms": timing.median_ms,
        "p20_ms": timing.p20_ms,
        "p80_ms": timing.p80_ms,
        "runs": timing.runs,
        "relative_error": error,
    }


def _operands(M, N, K, dtype):
    generator = torch.Generator(this_machine().device).manual_seed(M + N + K)
    return [
        torch.randn(*shape, dtype=dtype, device=this_machine().device, generator=generator)
        for shape in ((M, K), (K, N), (M, N))
    ]


def _relu_formula(a, b, c):
    return torch.relu(a @ b + c)


def measure_waves(rows: int = 66, N: int = 4096, K: int = 4096, repeat_ms: float = 60) -> list[dict]:
    """Records of kind 'waves': one configuration, of which one program fits an SM, for M of 1, 2, … `rows` tiles."""
    shapes = [(WAVE_CONFIG.BLOCK_M * row, N, K) for row in range(1, rows + 1)]
    return measure_sweep(shapes, [WAVE_CONFIG], repeat_ms=repeat_ms, kind="waves")


def main(arguments=None) -> None:
    parser = make_parser(__doc__, "gemm-tuning")
    parser.add_argument("what", choices=("compile", "measure", "waves"))
    given = parser.parse_args(arguments)
    if given.what != "compile" and this_machine().device != "cuda":
        parser.error("there is no GPU here, and the interpreter's time says nothing about a kernel")
    records = {"compile": compile_table, "measure": measure_sweep, "waves": measure_waves}[given.what]()
    keep("gemm-tuning", records, given.out, machine="compiled" if given.what == "compile" else None)


if __name__ == "__main__":
    main()
