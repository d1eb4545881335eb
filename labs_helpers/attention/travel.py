"""The portable attention kernels, compiled for GPUs that are not here: what each chip makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import torch

from labs_helpers.attention import general
from labs_helpers.attention.configs import DIRECTIONS, default_config
from labs_helpers.bench.aot import SHARED_LIMIT, TARGETS, CompileError, compile_all, job, triton_for
from labs_helpers.bench.launches import Launch, record_launches
from labs_helpers.bench.machine import this_machine

KERNELS = tuple(f"{name}_kernel" for name in ("attention_forward", *DIRECTIONS[1:]))

COLUMNS = ("kernel", "target", "chip", "head_dim", "tile", "instruction", "count", "shared", "shared_limit",
           "registers", "spills", "num_warps", "triton")


def compile_everywhere(targets: Iterable[str] = tuple(TARGETS), head_dims: Iterable[int] = (64, 128),
                       dtype=torch.float16, causal: bool = True):
    """What the compiler makes of each of KERNELS for each target and head dim: a pandas.DataFrame with COLUMNS.

    Each target has its default configuration; `tile` is BLOCK_M×BLOCK_N. instruction is the tensor-core instruction
    ('' for none) and count how often it stands in the assembly; shared, shared_limit and spills are bytes, registers
    are per thread. sm_75 is compiled by Triton 3.2.0 where that is installed beside.

    ValueError for an unknown target, CompileError, naming the target, where a kernel does not build.
    """
    import pandas

    head_dims = list(head_dims)
    orders = {target: [(D, job(launch, target)) for D in head_dims for launch in _launches(D, dtype, causal, target)]
              for target in targets}
    with ThreadPoolExecutor(this_machine().cores) as pool:
        answers = list(pool.map(_compile, orders, orders.values()))
    rows = [_row(D, order, compiled) for jobs, answer in zip(orders.values(), answers, strict=True)
            for (D, order), compiled in zip(jobs, answer, strict=True)]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def _launches(D: int, dtype, causal: bool, target: str) -> list[Launch]:
    """The launches of one forward and backward pass over 1024 tokens, recorded and not run."""
    q, k, v, o = (torch.empty(1, 2, 1024, D, dtype=dtype, device=this_machine().device) for _ in range(4))
    lse = torch.empty(1, 2, 1024, device=q.device)
    forward, keys, queries = (default_config(direction, D, dtype, target) for direction in DIRECTIONS)
    with record_launches(run=False) as launches:
        general.forward(q, k, v, causal, 0.125, forward)
        general.backward(q, k, v, o, lse, o, causal, 0.125, key_value_config=keys, query_config=queries)
    return [launch for launch in launches if launch.name in KERNELS]


def _compile(target: str, orders: list) -> list:
    try:
        return compile_all([order for _, order in orders], triton_path=triton_for(target))
    except CompileError as error:
        raise CompileError(f"the attention kernels do not build for {target}: {error}") from error


def _row(D: int, order: dict, compiled) -> dict:
    return {
        "kernel": order["kernel"], "target": compiled.target, "chip": TARGETS[compiled.target], "head_dim": D,
        "tile": "×".join(str(order["constexprs"][block]) for block in ("BLOCK_M", "BLOCK_N")),
        "instruction": ", ".join(compiled.tensor_core), "count": sum(compiled.tensor_core.values()),
        "shared": compiled.shared, "shared_limit": SHARED_LIMIT[compiled.target],
        "registers": compiled.registers, "spills": compiled.spills, "num_warps": compiled.num_warps,
        "triton": compiled.triton,
    }
