"""Count what three kernels read, write and compute, with Nsight Compute on an NVIDIA GPU of the Hopper generation.

    python -m labs_helpers.transformer.lab01.counters

`ncu` must be on the PATH, and reading the GPU's counters must be allowed (https://developer.nvidia.com/ERR_NVGPUCTRPERM).
It empties the L2 cache before each kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labs_helpers.launch import program
from labs_helpers.measure import ncu
from labs_helpers.transformer.study import STUDY

if TYPE_CHECKING:
    import pandas

MODULE = "labs_helpers.transformer.lab01.counters"
METRICS = {
    "gpu__time_duration.sum": "ns",
    "dram__bytes_read.sum": "bytes_read",
    "dram__bytes_write.sum": "bytes_written",
    "lts__t_bytes.sum": "l2_bytes",
    "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32.sum": "tensor_flops",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps_active_percent",
    "launch__registers_per_thread": "registers",
}
ROWS, COLUMNS = 16_384, 4096  # of the softmax
N = 4096  # of the product
B, H, L, D = 4, 16, 4096, 128  # of attention, causal
PREDICTED = {  # with every operand moved once: bytes read, bytes written, and the products' FLOPs
    "softmax, eager": (2 * ROWS * COLUMNS, 2 * ROWS * COLUMNS, 0),
    "fused_matmul": (3 * 2 * N * N, 2 * N * N, 2 * N**3),
    "flash_attention, causal": (3 * 2 * B * H * L * D, (2 * D + 4) * B * H * L, 2 * B * H * L * (L + 1) * D),
}


def run_kernels() -> None:
    """Run the kernels that ncu counts; see `ncu.look_at`."""
    import torch

    from labs_helpers.attention import flash_attention
    from labs_helpers.gemm import fused_matmul
    from labs_helpers.measure.machine import prepare_triton

    prepare_triton()

    def bf16(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

    scores, matrices, heads = bf16(ROWS, COLUMNS), bf16(3, N, N), bf16(3, B, H, L, D)

    def kernels() -> None:
        torch.softmax(scores, dim=-1)
        fused_matmul(*matrices)
        flash_attention(*heads, causal=True)

    ncu.look_at(kernels)


def parse(text: str) -> list[dict[str, Any]]:
    """Return one record per kernel of ncu's --csv --page raw, in the order of PREDICTED; helper kernels are left out.

    ValueError if their number differs.
    """
    kernels = [row for row in ncu.read(text) if "FillFunctor" not in row["Kernel Name"]]
    if len(kernels) != len(PREDICTED):
        raise ValueError(f"ncu saw {len(kernels)} kernels, not {len(PREDICTED)}:\n{text[-2000:]}")
    records = []
    for (name, (read, written, flops)), row in zip(PREDICTED.items(), kernels, strict=True):
        counted = ncu.values(row, METRICS)
        record = {"study": "transformer", "kind": "counters", "name": name, "kernel": row["Kernel Name"]}
        predicted = {"predicted_read": read, "predicted_written": written, "predicted_flops": flops}
        records.append(record | predicted | {"block": row["Block Size"], "grid": row["Grid Size"]} | counted)
    return records


def table(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return predicted and counted values side by side, in MB and GFLOP."""
    import pandas

    shown = pandas.DataFrame({"kernel": frame["name"], "µs": frame["ns"] / 1e3})
    for title, predicted, counted in (
        ("MB read", "predicted_read", "bytes_read"),
        ("MB written", "predicted_written", "bytes_written"),
    ):
        shown[f"{title}, predicted"], shown[title] = frame[predicted] / 1e6, frame[counted] / 1e6
    shown["MB through L2"] = frame["l2_bytes"] / 1e6
    shown["GFLOP, predicted"], shown["GFLOP"] = frame["predicted_flops"] / 1e9, frame["tensor_flops"] / 1e9
    shown["warps active"], shown["registers"] = frame["warps_active_percent"], frame["registers"]
    return shown.round(1)


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--kernels", action="store_true", help="only run the kernels (for ncu)")
    given = parser.parse_args(arguments)
    if given.kernels:
        run_kernels()
        return
    try:
        said = ncu.count(MODULE, METRICS, timeout=300)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    STUDY.keep(parse(said), given.out, table=table)


if __name__ == "__main__":
    program.run(main)
