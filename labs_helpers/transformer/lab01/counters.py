"""Count what three kernels read, write and compute, with Nsight Compute on an NVIDIA GPU of the Hopper generation.

    python -m labs_helpers.transformer.lab01.counters

`ncu` has to be on the PATH, and reading the GPU's counters allowed (https://developer.nvidia.com/ERR_NVGPUCTRPERM).
It empties the L2 cache before each kernel.
"""

from __future__ import annotations

import csv
import io
import shutil
import sys
from typing import Any

from labs_helpers.launch import program
from labs_helpers.launch.process import run
from labs_helpers.measure.study import keep, make_parser

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
PREDICTED = {  # every operand once: bytes read, bytes written; and the products' FLOPs
    "softmax, eager": (2 * ROWS * COLUMNS, 2 * ROWS * COLUMNS, 0),
    "fused_matmul": (3 * 2 * N * N, 2 * N * N, 2 * N**3),
    "flash_attention, causal": (3 * 2 * B * H * L * D, (2 * D + 4) * B * H * L, 2 * B * H * L * (L + 1) * D),
}


def run_kernels() -> None:
    """Each kernel twice: once to compile it, once where ncu is told to look."""
    import torch

    from labs_helpers.attention import flash_attention
    from labs_helpers.gemm import fused_matmul
    from labs_helpers.measure.machine import prepare_triton

    prepare_triton()

    def bf16(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

    scores, matrices, heads = bf16(ROWS, COLUMNS), bf16(3, N, N), bf16(3, B, H, L, D)
    for look in (False, True):
        if look:
            torch.cuda.cudart().cudaProfilerStart()
        torch.softmax(scores, dim=-1)
        fused_matmul(*matrices)
        flash_attention(*heads, causal=True)
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def parse(text: str) -> list[dict[str, Any]]:
    """A record for each kernel of ncu's --csv --page raw, in the order of PREDICTED; helper kernels are left out.

    ValueError where there are not as many."""
    quoted = [line for line in text.splitlines() if line.startswith('"')]  # the others are ncu's and the program's
    rows = list(csv.DictReader(io.StringIO("\n".join(quoted))))[1:]  # the first row has the units
    kernels = [row for row in rows if "FillFunctor" not in row["Kernel Name"]]
    if len(kernels) != len(PREDICTED):
        raise ValueError(f"ncu saw {len(kernels)} kernels, not {len(PREDICTED)}:\n{text[-2000:]}")
    records = []
    for (name, (read, written, flops)), row in zip(PREDICTED.items(), kernels, strict=True):
        counted = {key: float(row[metric].replace(",", "")) for metric, key in METRICS.items()}
        record = {"study": "transformer", "kind": "counters", "name": name, "kernel": row["Kernel Name"]}
        predicted = {"predicted_read": read, "predicted_written": written, "predicted_flops": flops}
        records.append(record | predicted | {"block": row["Block Size"], "grid": row["Grid Size"]} | counted)
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Predicted beside counted, in MB and GFLOP."""
    import pandas

    frame = pandas.DataFrame(records)
    shown = pandas.DataFrame({"kernel": frame["name"], "µs": frame["ns"] / 1e3})
    for title, predicted, counted in (
        ("MB read", "predicted_read", "bytes_read"),
        ("MB written", "predicted_written", "bytes_written"),
    ):
        shown[f"{title}, predicted"], shown[title] = frame[predicted] / 1e6, frame[counted] / 1e6
    shown["MB through L2"] = frame["l2_bytes"] / 1e6
    shown["GFLOP, predicted"], shown["GFLOP"] = frame["predicted_flops"] / 1e9, frame["tensor_flops"] / 1e9
    shown["warps active"], shown["registers"] = frame["warps_active_percent"], frame["registers"]
    return shown.to_string(index=False, float_format="{:.1f}".format)


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__ or "", "transformer")
    parser.add_argument("--kernels", action="store_true", help="only run the kernels: what ncu is started on")
    given = parser.parse_args(arguments)
    if given.kernels:
        run_kernels()
        return
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("Nsight Compute's `ncu` is not on the PATH; it comes with the CUDA toolkit")
    flags = ["--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"]
    command = [ncu, *flags, "--metrics", ",".join(METRICS), sys.executable, "-m", MODULE, "--kernels"]
    keep("transformer", parse(run(command, timeout=300)), given.out, show=table)


if __name__ == "__main__":
    program.run(main)
