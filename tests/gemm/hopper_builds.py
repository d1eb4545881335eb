"""Compile the Hopper GEMM ahead of time, without a GPU, in a process without the interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from labs_helpers.gemm.kernels import hopper

BUILD = """
import importlib.util, json, subprocess, sys, tempfile, triton
from pathlib import Path
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
spec = importlib.util.spec_from_file_location("hopper_kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
codes = sys.argv[3] or "fp16"  # of A and B
for c in json.loads(sys.argv[2]):
    rows = c["BLOCK_M"] // c["CONSUMERS"]
    scaled = codes != "fp16"
    panel = [64, c["BLOCK_K"]] if scaled else [c["BLOCK_K"], 64]
    blocks = {"a_desc": [rows, c["BLOCK_K"]], "b_desc": panel, "c_desc": [rows, 64], "d_desc": [rows, 64]}
    dtypes = {"a_desc": codes, "b_desc": codes, "c_desc": "fp16", "d_desc": "fp16"}
    of = {"fp16": gl.float16, "i8": gl.int8, "fp8e4nv": gl.float8e4nv}
    signature = {n: f"tensordesc<{dtypes[n]}{s},{gl.NVMMASharedLayout.get_default_for(s, of[dtypes[n]])!r}>"
                 for n, s in blocks.items()}
    parts = "*i32" if codes == "i8" else "*fp32"
    signature |= {"parts_ptr": parts if c["SPLITS"] > 1 else "*fp16"}
    signature |= {"counters_ptr": "*i32" if c["SPLITS"] > 1 else "*fp16"}
    signature |= dict.fromkeys(("a_scale_ptr", "b_scale_ptr"), "*fp32" if scaled else "*fp16")
    signature |= dict.fromkeys(("M", "N", "K", "splits", "group_m", "c_after"), "i32")
    constants = {n: c[n] for n in ("BLOCK_N", "STAGES", "CONSUMERS")} | {"SPLIT": c["SPLITS"] > 1}
    signature |= dict.fromkeys(constants, "constexpr")
    aligned = {(list(signature).index(n),): [["tt.divisibility", 16]] 
               for n in ("parts_ptr", "counters_ptr", "a_scale_ptr", "b_scale_ptr")}
    built = triton.compile(GluonASTSource(module.hopper_matmul_kernel, signature, constants, aligned),
                           target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        used = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    ptx = built.asm["ptx"]
    print(ptx.count("wgmma.mma_async"), ptx.count("cp.async.bulk.tensor"), built.metadata.shared,
          int(used.split("STACK:")[1].split()[0]))
"""


class Built(NamedTuple):
    """Instructions in the PTX, bytes of shared memory per program, and bytes of stack per thread."""

    wgmma: int
    tma: int
    shared: int
    stack: int


def build(configs, codes=""):
    """Return one Built per HopperConfig. codes: Triton's name of A's and B's 8-bit type; '' for float16."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    kernel = str(Path(hopper.__file__).with_name("hopper_kernel.py"))
    command = [sys.executable, "-c", BUILD, kernel, json.dumps([config.keywords() for config in configs]), codes]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment)
    assert answer.returncode == 0, answer.stderr[-2000:]
    found = [Built(*map(int, line.split())) for line in answer.stdout.splitlines()]
    assert len(found) == len(configs)
    return found
