"""Run every attention kernel on uneven lengths, optionally under compute-sanitizer, which finds stray accesses.

python -m labs_helpers.attention.lab05.every_kernel              # run them
python -m labs_helpers.attention.lab05.every_kernel --memcheck   # run them under memcheck and record its report
"""

from __future__ import annotations

import os
import re
import shutil
import sys

import torch

from labs_helpers.launch import program
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.study import Study

STUDY = Study("attention-memcheck")
LENGTHS = ((130, 203), (203, 130))  # queries, keys: not multiples of a tile, and some rows see no key


def run_every_kernel() -> list[str]:
    """Run all kernels and return their names. Raises a kernel's error, and RuntimeError if a result contains NaN."""
    prepare_triton()  # before the import of the kernels, because it chooses compiler or interpreter
    from labs_helpers.attention.flash import attention_forward
    from labs_helpers.attention.lab04.exercises import causal_attention, row_softmax, tile_attention
    from labs_helpers.attention.lab05.exercises import key_value_gradients, query_gradient
    from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients

    ran = []

    def done(name: str, *tensors) -> None:
        if any(bool(t.isnan().any()) for t in tensors):
            raise RuntimeError(f"{name}: NaN in the result")
        ran.append(name)

    device = this_machine().device
    done("lab 04, row softmax", row_softmax(torch.randn(3, 1000, device=device)))
    q, k, v, do = (torch.randn(2, 2, 128, 64, device=device).half() for _ in range(4))
    done("lab 04, forward", *tile_attention(q, k, v, 0.125))
    for Lq, Lk in LENGTHS:
        for causal in (False, True):
            what = f"{Lq} queries, {Lk} keys, {'causal' if causal else 'full'}"
            q, do = (torch.randn(2, 2, Lq, 64, device=device).half() for _ in range(2))
            k, v = (torch.randn(2, 2, Lk, 64, device=device).half() for _ in range(2))
            o, lse = attention_forward(q, k, v, causal)
            if causal:
                done(f"lab 04, causal: {what}", *causal_attention(q, k, v, 0.125))
            given = (q, k, v, do, lse, (o.float() * do.float()).sum(-1), 0.125, causal)
            done(f"lab 05, dQ: {what}", query_gradient(*given))
            done(f"lab 05, dK and dV: {what}", *key_value_gradients(*given))
            done(f"lab 05, one kernel: {what}", *one_kernel_gradients(*given))
            for D in (24, 64, 128):
                _run_both_passes(done, Lq, Lk, D, causal, what)
    for causal in (False, True):  # at this length the Hopper kernel has three consumers
        _run_both_passes(done, 203, 1100, 64, causal, f"203 queries, 1100 keys, {'causal' if causal else 'full'}")
    if device == "cuda":
        torch.cuda.synchronize()
    return ran


def _run_both_passes(done, Lq: int, Lk: int, D: int, causal: bool, what: str) -> None:
    from labs_helpers.attention.kernels import hopper, portable

    machine = this_machine()
    q, do = (torch.randn(2, 4, Lq, D, device=machine.device).half() for _ in range(2))
    k, v = (torch.randn(2, 2, Lk, D, device=machine.device).half() for _ in range(2))
    paths = {"portable": portable}
    if hopper.why_not(q, k, v, machine.architecture) is None:
        paths["Hopper"] = hopper
    for name, path in paths.items():
        o, lse = path.forward(q, k, v, causal, 0.125)
        done(f"{name} forward, D = {D}: {what}", o)
        done(f"{name} backward, D = {D}: {what}", *path.backward(q, k, v, o, lse, do, causal, 0.125))


def memcheck(timeout: float = 540) -> dict:
    """Run this command under compute-sanitizer's memcheck and return a record of its errors and of what ran."""
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if tool is None or this_machine().device != "cuda":
        raise SystemExit("memcheck needs an NVIDIA GPU and compute-sanitizer, which comes with the CUDA toolkit")
    # Without PyTorch's cache, each tensor is a separate allocation, so memcheck knows where it ends.
    said = run(
        [tool, "--tool", "memcheck", sys.executable, "-m", "labs_helpers.attention.lab05.every_kernel"],
        timeout=timeout,
        env=os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    )
    summary = re.search(r"ERROR SUMMARY: (\d+) error", said)
    if summary is None:
        raise RuntimeError(f"memcheck printed no summary:\n{said[-2000:]}")
    ran = re.findall(r"^ran (.+)$", said, re.MULTILINE)
    return {"study": "attention", "kind": "memcheck", "errors": int(summary[1]), "ran": ran}


def main(arguments=None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--memcheck", action="store_true", help="run under compute-sanitizer and keep a record")
    given = parser.parse_args(arguments)
    if not given.memcheck:
        print("\n".join(f"ran {name}" for name in run_every_kernel()))
        return
    record = memcheck()
    print(f"memcheck: {record['errors']} errors in {len(record['ran'])} runs")
    STUDY.keep([record], given.out)


if __name__ == "__main__":
    program.run(main)
