"""Run as a script without the interpreter: build the Hopper kernels for sm_90 and print a JSON report on each."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from labs_helpers.attention.kernels.hopper_backward import hopper_backward_kernel
from labs_helpers.attention.kernels.hopper_forward import hopper_forward_kernel
from labs_helpers.attention.kernels.hopper_launch import forward_options


def descriptor(*block, kind="fp16", swizzle=None):
    dtype = {"fp16": gl.float16, "bf16": gl.bfloat16, "fp32": gl.float32}[kind]
    layout = gl.NVMMASharedLayout.get_default_for(list(block), dtype)
    if swizzle is not None:
        layout = gl.NVMMASharedLayout(
            swizzle_byte_width=swizzle, element_bitwidth=dtype.primitive_bitwidth, rank=len(block)
        )
    return f"tensordesc<{kind}{list(block)},{layout!r}>"


def build(kernel, signature, constants, options):
    signature = signature | dict.fromkeys(constants, "constexpr")
    built = triton.compile(
        GluonASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32), options=options
    )
    ptx = built.asm["ptx"]
    return {
        "wgmma": ptx.count("wgmma.mma_async"),
        "loads": ptx.count("cp.async.bulk.tensor"),
        "adds": ptx.count("cp.reduce.async.bulk.tensor"),
        "shared": built.metadata.shared,
        **resources(built.asm["cubin"]),
    }


def resources(cubin):
    """Return the registers per thread and the bytes spilled to the stack."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        command = [tool, "--dump-resource-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    return {"registers": int(re.search(r"REG:(\d+)", told)[1]), "spills": int(re.search(r"STACK:(\d+)", told)[1])}


def forward(block_d, kind, causal, CONSUMERS, BLOCK_N, STAGES, BY_TURNS, Q_BUFFERS=1, DRAWN=True, PER_SM=1):
    rows, keys = (descriptor(1, 1, n, block_d, kind=kind) for n in (64, BLOCK_N))
    sizes = ("heads", "group_size", "Lq", "Lk", "tiles_m", "all_heads", "head_group")
    signature = {
        "q_desc": rows,
        "k_desc": keys,
        "v_desc": keys,
        "o_desc": rows,
        "lse_ptr": "*fp32",
        "counter_ptr": "*i32",
        **dict.fromkeys(sizes, "i32"),
        "c": "fp32",
    }
    return build(
        hopper_forward_kernel,
        signature,
        {"CONSUMERS": CONSUMERS, "STAGES": STAGES, "CAUSAL": causal, "BY_TURNS": BY_TURNS}
        | {"Q_BUFFERS": Q_BUFFERS, "DRAWN": DRAWN, "PER_SM": PER_SM},
        forward_options(PER_SM),
    )


def backward(block_d, kind, causal, BLOCK_M=64, STAGES=2, RAGGED=False):
    rows, queries = (descriptor(1, 1, n, block_d, kind=kind) for n in (64, BLOCK_M))
    sizes = ("kv_heads", "group_size", "Lq", "Lk", "q_blocks", "tiles_n", "all_kv_heads", "head_group")
    sizes += ("parts", "first_delta")
    signature = {
        "q_desc": queries,
        "do_desc": queries,
        "stats_desc": descriptor(1, BLOCK_M, kind="fp32", swizzle=0),
        "k_desc": descriptor(1, 1, 64, block_d, kind=kind, swizzle=min(128, block_d)),
        "v_desc": rows,
        "dk_desc": rows,
        "dv_desc": rows,
        "dq_desc": descriptor(BLOCK_M, block_d // 2, kind="fp32"),
        **dict.fromkeys(sizes, "i32"),
        "c": "fp32",
        "scale": "fp32",
    }
    constants = {"STAGES": STAGES, "CAUSAL": causal, "RAGGED": RAGGED}
    return build(hopper_backward_kernel, signature, constants, {"num_warps": 4})


if __name__ == "__main__":
    jobs = {"forward": forward, "backward": backward}
    print(json.dumps([jobs[job.pop("pass")](**job) for job in json.loads(sys.argv[1])]))
