"""Record in which order an NVIDIA GPU starts programs, and the times and bytes of 64×64 tiles in several orders.

    python -m labs_helpers.gemm.lab02.order_study

Nsight Compute counts the bytes. Without `ncu`, or without permission to read the counters, the record has no bytes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed
from labs_helpers.measure import ncu
from labs_helpers.measure.study import Study

MODULE = "labs_helpers.gemm.lab02.order_study"
STUDY = Study("gemm-order", f"python -m {MODULE}")
load = STUDY.load
BLOCK = 64
SHAPES = ((2048,) * 3, (4096,) * 3, (8192,) * 3, (8192, 8192, 2048), (2048, 2048, 32768))
COUNTED = (2048, 8192)  # n of the products whose bytes are counted
METRICS = {
    "gpu__time_duration.sum": "ns",
    "dram__bytes_read.sum": "dram_bytes",
    "lts__t_bytes.sum": "l2_bytes",
    "lts__t_sector_hit_rate.pct": "l2_hit_percent",
    "sm__cycles_elapsed.max": "cycles",
}
ROWS_DOWN = "matmul_add_relu, 64×64×32"  # its grid has two axes, and a GPU starts the first of them fastest


def ways(M: int) -> dict:
    """Return name → (GROUP_M, function of (a, b, c)): exercise 5's kernel, and the portable one in several orders."""
    from labs_helpers.gemm.configs import Config
    from labs_helpers.gemm.kernels.portable import portable_matmul
    from labs_helpers.gemm.lab02.exercises import matmul_add_relu

    orders = {
        f"portable kernel, 64×64×32, GROUP_M = {group}": (
            group,
            partial(portable_matmul, config=Config(BLOCK, BLOCK, 32, GROUP_M=group)),
        )
        for group in sorted({1, 8, 32, M // BLOCK})
    }
    return {ROWS_DOWN: (None, matmul_add_relu), **orders}


def operands(M: int, N: int, K: int) -> list:
    import torch

    return [torch.randn(size, device="cuda", dtype=torch.float16) for size in ((M, K), (K, N), (M, N))]


def time_orders(rounds: int, repeat_ms: float) -> list[dict[str, Any]]:
    """Time every order at every shape, and return one record for each pair."""
    from labs_helpers.measure.timing import measure_rounds

    records = []
    for M, N, K in SHAPES:
        tensors, candidates = operands(M, N, K), ways(M)
        timings = measure_rounds(
            {name: partial(function, *tensors) for name, (_, function) in candidates.items()},
            rounds=rounds,
            repeat_ms=repeat_ms,
        )
        records += [
            {"study": STUDY.name, "kind": "time", "name": name, "GROUP_M": candidates[name][0], "M": M, "N": N}
            | {"K": K, **t.record()}
            for name, t in timings.items()
        ]
    return records


def run_kernels() -> None:
    """Run the kernels whose bytes ncu counts; see `ncu.look_at`."""

    def kernels() -> None:
        for n in COUNTED:
            tensors = operands(n, n, n)
            for _, function in ways(n).values():
                function(*tensors)

    ncu.look_at(kernels)


def count_bytes() -> list[dict[str, Any]]:
    """Return one record per size in COUNTED and order, or no records if ncu is missing or may not count."""
    try:
        text = ncu.count(MODULE, METRICS, timeout=120)
    except (FileNotFoundError, ProcessFailed) as error:
        print(f"ncu could not count bytes: {str(error)[-300:]}")
        return []
    rows = [row for row in ncu.read(text) if "matmul" in row["Kernel Name"]]
    wanted = [(n, name, group) for n in COUNTED for name, (group, _) in ways(n).items()]
    return [
        {"study": STUDY.name, "kind": "counters", "name": name, "GROUP_M": group, "M": n, "N": n, "K": n}
        | ncu.values(row, METRICS)
        for (n, name, group), row in zip(wanted, rows, strict=True)
    ]


def main(arguments=None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--kernels", action="store_true", help="only run the kernels; ncu starts this command")
    given = parser.parse_args(arguments)

    from labs_helpers.measure.machine import prepare_triton, this_machine

    prepare_triton()
    if this_machine().device != "cuda":
        raise SystemExit("This study needs a GPU: Triton's interpreter does not start programs in a GPU's order.")
    if given.kernels:
        run_kernels()
        return
    from labs_helpers.gemm.lab02.starts import watch_starts

    for part in (
        lambda: [watch_starts(n) for n in COUNTED],
        partial(time_orders, rounds=4, repeat_ms=80),
        count_bytes,
    ):
        STUDY.keep(part(), given.out)  # after each part, because a later one may fail


if __name__ == "__main__":
    program.run(main)
