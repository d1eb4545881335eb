"""Compile a kernel ahead of time for a named GPU, on any machine, and report the result.

The compiler runs in its own process, because Triton's interpreter and its compiler cannot share one. This finds code
that the interpreter accepts and a GPU refuses, and turns 'uses tensor cores' into a fact.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.compile.launches import Launch
from labs_helpers.compile.source import portable_kernel
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure.datasheet import DATASHEET, KIB

if TYPE_CHECKING:
    import torch

WORKER = Path(__file__).with_name("ahead_of_time_worker.py")

# Compilation targets (compute capability or AMD architecture) and their chips.
TARGETS = {
    "sm_75": "T4",
    "sm_80": "A100",
    "sm_90": "H100, H200",
    "sm_100": "B200",
    "gfx90a": "MI250X",
    "gfx942": "MI300X",
}

# The shared memory (on AMD, LDS) that one program may use at most, in bytes.
SHARED_LIMIT = {  # for GPUs that the datasheet lacks; remove a line when its GPU is added there
    "sm_100": 227 * KIB,  # CUDA C++ Programming Guide, compute capability 10.0
    "gfx90a": 64 * KIB,  # AMD Instinct MI200 Instruction Set Architecture, LDS of a compute unit
} | {entry.architecture: entry.shared_bytes_per_block for entry in DATASHEET.values()}

# Triton 3.3 and newer compile tl.dot for Turing without its tensor cores; `make t4` puts 3.2.0 here.
TRITON_3_2 = Path(__file__).resolve().parents[2] / ".triton-3.2"


Job = dict[str, Any]  # one launch as plain data for the compiler


class CompileError(Exception):
    """The kernel does not compile for the target; the message is the compiler's own."""


@dataclass(frozen=True)
class Compiled:
    """The compiler's output for one kernel and one target. Sizes are in bytes; registers are per thread.

    `tensor_core` maps each tensor-core instruction to its number of occurrences in the assembly; `float16_accumulators`
    is True if one of them accumulates in float16. `registers` and `spills` are None without a disassembler. If a job
    stops early, `assembly` is the text of its last stage, and fields that need later stages are None or 0.
    """

    target: str
    tensor_core: dict[str, int]
    float16_accumulators: bool
    shared: int
    registers: int | None
    spills: int | None
    binary: int
    num_warps: int
    assembly: str
    triton: str = ""  # the version that compiled it

    @property
    def uses_tensor_cores(self) -> bool:
        return bool(self.tensor_core)

    def __str__(self) -> str:
        found = ", ".join(f"{n} × {name}" for name, n in self.tensor_core.items()) or "none"
        registers = "" if self.registers is None else f", {self.registers} registers a thread"
        spills = f", {self.spills} B spilled" if self.spills else ""
        return f"{self.target}: tensor-core instructions: {found}; {self.shared:,} B shared{registers}{spills}"


def triton_for(target: str) -> str | None:
    """Return the folder of the Triton that compiles for `target`, for `compile_all`; None for the environment's own."""
    return str(TRITON_3_2) if target == "sm_75" and (TRITON_3_2 / "triton").is_dir() else None


def compile_launch(launch: Launch, target: str = "sm_90", dtype: torch.dtype | None = None) -> Compiled:
    """Compile a launch (see `record_launches`) for `target`; `dtype` replaces the tensors'.

    Raises CompileError with the compiler's message, and ValueError for an unknown target.
    """
    return compile_all([job(launch, target, dtype)])[0]


def job(launch: Launch, target: str = "sm_90", dtype: torch.dtype | None = None, until: str = "") -> Job:
    """Describe one launch as plain data for the compiler. until: the last stage needed, by Triton's name, such as
    "ptx"; later stages, which take longest, do not run."""
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not one of {', '.join(TARGETS)}")
    signature = launch.signature(dtype)
    constants = {name: launch.arguments[name] for name, kind in signature.items() if kind == "constexpr"}
    return {
        "kernel": launch.name,
        "source": portable_kernel(launch.kernel),
        "signature": signature,
        "constexprs": {k: getattr(v, "value", v) for k, v in constants.items()},
        # As in a launch, tell the compiler which arguments are multiples of 16; otherwise loads are narrow.
        "aligned": [
            k
            for k, v in launch.arguments.items()
            if hasattr(v, "data_ptr") or (type(v) is int and v % 16 == 0 and k not in constants)
        ],
        "options": launch.options,
        "target": target,
        "until": until,
    }


def compile_all(
    jobs: list[Job], timeout: float = 120, python: str = sys.executable, triton_path: str | None = None
) -> list[Compiled]:
    """Compile several jobs in one process. `triton_path` puts another Triton first on the import path."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = triton_path or ""
    environment["TRITON_DEFAULT_FP_FUSION"] = "1"  # Triton 3.9 warns on stderr when it is unset
    with tempfile.TemporaryDirectory() as folder:
        order, answer = Path(folder, "order.json"), Path(folder, "answer.json")
        order.write_text(json.dumps(jobs))
        try:
            run([python, str(WORKER), str(order), str(answer)], timeout=timeout, env=environment)
        except ProcessFailed as error:
            raise CompileError(f"the compiler's process ended: {error}") from error
        results = json.loads(answer.read_text())
    for result in results:
        if "error" in result:
            raise CompileError(result["error"])
    return [Compiled(**result) for result in results]
