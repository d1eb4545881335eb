"""The course's matrix kernels, compiled for GPUs that are not here: what each chip makes of them.

A portable kernel says nothing of the chip it runs on, so one source serves all of them; the compiler chooses the
instruction, and the configuration has to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import torch

from labs_helpers import gemm
from labs_helpers.bench.aot import SHARED_LIMIT, TARGETS, Compiled, CompileError, compile_all, job, triton_for
from labs_helpers.bench.launches import Launch, record_launches
from labs_helpers.bench.machine import this_machine
from labs_helpers.gemm.configs import Config, default_config

BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


def _blocks(config: Config) -> dict:
    return {name: getattr(config, name) for name in BLOCKS}


# Name → function of (a, b, c, config) that starts the kernel. Lab 02's first two leave C out.
KERNELS: dict[str, Callable] = {
    "tile_matmul": lambda a, b, c, config: gemm.tile_matmul(a, b, **_blocks(config)),
    "masked_matmul": lambda a, b, c, config: gemm.masked_matmul(a, b, **_blocks(config)),
    "matmul_add_relu": lambda a, b, c, config: gemm.matmul_add_relu(a, b, c, **_blocks(config)),
    "fused_matmul": lambda a, b, c, config: gemm.fused_matmul(a, b, c, config=config),
}

COLUMNS = ("kernel", "target", "chip", "tile", "instruction", "count", "shared", "shared_limit", "registers", "spills",
           "binary", "num_warps", "threads", "triton")


def compile_everywhere(kernels: Iterable[str] | Mapping[str, Callable] | None = None,
                       targets: Iterable[str] = tuple(TARGETS)):
    """What the compiler makes of each kernel for each target, in float16: a pandas.DataFrame with COLUMNS.

    kernels: names in KERNELS, or a mapping such as KERNELS with functions of your own; None: fused_matmul.
    targets: keys of `aot.TARGETS`. Each target gets `config_for` it; `tile` is BLOCK_M×BLOCK_N×BLOCK_K.
    instruction is the tensor-core instruction ('' for none) and count how often it stands in the assembly; shared,
    shared_limit, spills and binary are bytes, registers are per thread, spills None where nothing says it; threads
    is num_warps × 32, on AMD × 64. sm_75 is compiled by Triton 3.2.0 where that is installed beside.

    ValueError for a kernel or target that is not known, or a function that starts no kernel; CompileError, naming
    kernel and target, where one does not build.
    """
    import pandas

    functions = _functions(kernels)
    targets = list(targets)
    orders = [(name, target, job(_launch(name, function, config_for(target)), target))
              for name, function in functions.items() for target in targets]
    if "sm_75" in targets and triton_for("sm_75") is None:
        print("sm_75 is compiled by this Triton, which may not use a T4's tensor cores: "
              "3.2.0 is not installed beside the environment (make setup does it).")
    rows = [_row(name, order, compiled)
            for (name, _, order), compiled in zip(orders, _compile_in_parallel(orders), strict=True)]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def config_for(target: str) -> Config:
    """The configuration that `fused_matmul` takes on `target` for large matrices in float16."""
    return default_config(4096, 4096, 4096, torch.float16, target)


def _functions(kernels) -> Mapping[str, Callable]:
    if isinstance(kernels, Mapping):
        return kernels
    names = ["fused_matmul"] if kernels is None else list(kernels)
    if unknown := [name for name in names if name not in KERNELS]:
        raise ValueError(f"no kernel is called {unknown[0]!r}; there are {', '.join(KERNELS)}")
    return {name: KERNELS[name] for name in names}


def _launch(name: str, function: Callable, config: Config) -> Launch:
    """The launch `function` makes with `config`, which is recorded and not run."""
    x = [torch.empty(512, 512, dtype=torch.float16, device=this_machine().device) for _ in range(3)]
    with record_launches(run=False) as launches:
        function(*x, config)
    if not launches:
        raise ValueError(f"{name} started no kernel")
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return replace(launches[-1], options=options | launches[-1].options)


def _compile_in_parallel(orders: list[tuple]) -> list[Compiled]:
    """What became of each (kernel, target, job), in the same order: a process for each core and Triton."""
    cores = this_machine().cores
    batches = []
    for path in {triton_for(target): None for _, target, _ in orders}:
        mine = [i for i, (_, target, _) in enumerate(orders) if triton_for(target) == path]
        batches += [(path, mine[start::cores]) for start in range(cores) if mine[start::cores]]
    done: dict[int, Compiled] = {}
    with ThreadPoolExecutor(cores) as pool:
        for (_, places), results in zip(batches, pool.map(
                lambda batch: _compile([orders[i] for i in batch[1]], batch[0]), batches), strict=True):
            done.update(zip(places, results, strict=True))
    return [done[i] for i in range(len(orders))]


def _compile(orders: list[tuple], path: str | None) -> list[Compiled]:
    try:
        return compile_all([order for _, _, order in orders], triton_path=path)
    except CompileError as error:
        if len(orders) > 1:  # one by one, to name the one that does not build
            return [_compile([order], path)[0] for order in orders]
        name, target, _ = orders[0]
        raise CompileError(f"{name} does not build for {target}: {error}") from error


def _row(name: str, order: dict, compiled: Compiled) -> dict:
    return {
        "kernel": name, "target": compiled.target, "chip": TARGETS[compiled.target],
        "tile": "×".join(str(order["constexprs"][block]) for block in BLOCKS if block in order["constexprs"]),
        "instruction": ", ".join(compiled.tensor_core), "count": sum(compiled.tensor_core.values()),
        "shared": compiled.shared, "shared_limit": SHARED_LIMIT[compiled.target],
        "registers": compiled.registers, "spills": compiled.spills, "binary": compiled.binary,
        "num_warps": compiled.num_warps, "threads": compiled.num_warps * warp_size(compiled.target),
        "triton": compiled.triton,
    }


def warp_size(target: str) -> int:
    """Threads in a warp (NVIDIA, 32) or a wavefront (AMD's CDNA, 64)."""
    return 32 if target.startswith("sm_") else 64
