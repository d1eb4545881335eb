"""The compile report: what compilers generate from kernels for many GPUs, none of which has to be present."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labs_helpers.compile.ahead_of_time import (
    SHARED_LIMIT,
    TARGETS,
    Compiled,
    CompileError,
    Job,
    compile_all,
    job,
    triton_for,
)
from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.measure.machine import this_machine

if TYPE_CHECKING:
    import pandas
    import torch

BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
COLUMNS = (
    "kernel",
    "target",
    "chip",
    "tile",
    "instruction",
    "count",
    "shared",
    "shared_limit",
    "registers",
    "spills",
    "binary",
    "num_warps",
    "threads",
    "triton",
)
WITHOUT_TRITON_3_2 = (
    "sm_75 is compiled by this Triton, which may not use a T4's tensor cores: "
    "3.2.0 is not installed beside the environment (make t4 installs it)."
)
PRINTED = ("sm_75", "sm_80", "sm_90", "sm_100", "gfx942")


@dataclass(frozen=True)
class Build:
    """A recorded launch, to be compiled for a target. `columns`: further columns of its row."""

    kernel: str
    launch: Launch
    target: str
    columns: dict[str, Any] = field(default_factory=dict)


def compile_report(builds: Iterable[Build]) -> pandas.DataFrame:
    """Return a pandas.DataFrame with one row per build, in order: COLUMNS, followed by those of `Build.columns`.

    `tile` is BLOCK_M×BLOCK_N(×BLOCK_K). instruction is the tensor-core instruction ('' for none) and count its number
    of occurrences in the assembly. shared, shared_limit, spills and binary are bytes; registers are per thread; spills
    is None if no tool reports it. threads is num_warps × 32, on AMD × 64. Triton 3.2.0 compiles for sm_75 if it is
    installed.

    Raises ValueError for an unknown target, and CompileError, naming kernel and target, if a build fails.
    """
    import pandas

    orders = [(build, job(build.launch, build.target)) for build in builds]
    if any(build.target == "sm_75" for build, _ in orders) and triton_for("sm_75") is None:
        print(WITHOUT_TRITON_3_2)
    rows = [
        _row(build, order, compiled)
        for (build, order), compiled in zip(orders, _compile_in_parallel(orders), strict=True)
    ]
    return pandas.DataFrame(rows, columns=None if rows else list(COLUMNS))


def print_compile_report(
    function: Callable[..., Any], *tensors: torch.Tensor, targets: Iterable[str] = PRINTED
) -> None:
    """Print for each target whether the last kernel that `function(*tensors)` launches uses tensor cores, and its
    shared memory, registers and spills. The kernel does not run, so no GPU here has to support it. Raises
    CompileError if a target's compiler refuses it."""
    with record_launches(run=False) as launches:
        function(*tensors)
    for compiled in compile_all([job(launches[-1], target) for target in targets]):
        answer = "yes" if compiled.uses_tensor_cores else "no"
        found = ", ".join(f"{count} × {name}" for name, count in compiled.tensor_core.items()) or "plain arithmetic"
        spilled = f", {compiled.spills} B spilled" if compiled.spills else ""
        print(
            f"{compiled.target:7} {TARGETS[compiled.target]:10}  tensor cores? {answer:3}  {found}; "
            f"{compiled.shared:,} B shared, {compiled.registers} registers{spilled}"
        )


def warp_size(target: str) -> int:
    """Return the threads of a warp (NVIDIA, 32) or a wavefront (AMD's CDNA, 64)."""
    return 32 if target.startswith("sm_") else 64


def _compile_in_parallel(orders: list[tuple[Build, Job]]) -> list[Compiled]:
    """Return the result of each (build, job), in order, with one process per core and Triton version."""
    cores = this_machine().cores
    batches = []
    for path in {triton_for(build.target): None for build, _ in orders}:
        mine = [i for i, (build, _) in enumerate(orders) if triton_for(build.target) == path]
        batches += [(path, mine[start::cores]) for start in range(cores) if mine[start::cores]]
    done: dict[int, Compiled] = {}
    with ThreadPoolExecutor(cores) as pool:
        for (_, places), results in zip(
            batches, pool.map(lambda batch: _compile([orders[i] for i in batch[1]], batch[0]), batches), strict=True
        ):
            done.update(zip(places, results, strict=True))
    return [done[i] for i in range(len(orders))]


def _compile(orders: list[tuple[Build, Job]], path: str | None) -> list[Compiled]:
    try:
        return compile_all([order for _, order in orders], triton_path=path)
    except CompileError as error:
        if len(orders) > 1:  # one by one, to name the one that fails
            return [_compile([order], path)[0] for order in orders]
        ((build, _),) = orders
        raise CompileError(f"{build.kernel} does not build for {build.target}: {error}") from error


def _row(build: Build, order: Job, compiled: Compiled) -> dict[str, Any]:
    return {
        "kernel": build.kernel,
        "target": compiled.target,
        "chip": TARGETS[compiled.target],
        "tile": "×".join(str(order["constexprs"][block]) for block in BLOCKS if block in order["constexprs"]),
        "instruction": ", ".join(compiled.tensor_core),
        "count": sum(compiled.tensor_core.values()),
        "shared": compiled.shared,
        "shared_limit": SHARED_LIMIT[compiled.target],
        "registers": compiled.registers,
        "spills": compiled.spills,
        "binary": compiled.binary,
        "num_warps": compiled.num_warps,
        "threads": compiled.num_warps * warp_size(compiled.target),
        "triton": compiled.triton,
        **build.columns,
    }
