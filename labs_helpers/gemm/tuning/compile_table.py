"""Compile every configuration for several chips, without a GPU, and record the resources."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from tqdm.auto import tqdm

from labs_helpers.compile.ahead_of_time import TRITON_3_2, CompileError, compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.machine import this_machine

TARGETS = ("sm_75", "sm_80", "sm_90")


def compile_table(targets=TARGETS, configs=None) -> list[dict]:
    """Return one record per configuration and target.

    It contains the shared memory in bytes, registers per thread, bytes spilled, tensor-core instructions, and the
    version of Triton. If the compiler fails, `error` holds its message. A progress bar is shown, and an interrupt keeps
    the records so far. Triton 3.2.0 compiles for sm_75; FileNotFoundError is raised if it is not installed.
    """
    if "sm_75" in targets and not TRITON_3_2.is_dir():
        raise FileNotFoundError(
            f"Triton 3.2.0 is not at {TRITON_3_2}, and newer ones do not use a T4's tensor cores; `make t4` installs it"
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
