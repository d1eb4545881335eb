"""Compare the arguments of ordinary and prepared launches; a script for test_prepared_launches.py.

It needs neither the interpreter nor a GPU: it compiles the kernels for sm_90, 'loads' them with a fake driver, and
records what reaches the launcher. It prints a JSON object; with `--time`, also the host time of a call in µs.
"""

import dataclasses
import gc
import json
import sys
import time
import types
import weakref

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime import driver as runtime

from tests.compile.unfinished_kernels import leave_unfinished

launched: list = []
streams = [77]


class Map(tuple):
    """A fake tensor map that keeps its arguments."""


utils = types.SimpleNamespace(
    launch=lambda *arguments: launched.append(arguments),
    fill_tma_descriptor=lambda *given: Map(tuple(x) if isinstance(x, list) else x for x in given),
    build_signature_metadata=lambda signature: bytes(len(signature)),
    load_binary=lambda name, binary, shared, device: (f"module {name}", f"function {name}", 200, 0, 1024),
    get_device_properties=lambda device: {"max_shared_mem": 232_448, "multiprocessor_count": 132},
)
utils.fill_tma_descriptor_tiled = utils.fill_tma_descriptor
runtime.set_active(
    types.SimpleNamespace(
        utils=utils,
        launcher_cls=nvidia.CudaLauncher,
        get_current_device=lambda: 0,
        get_current_stream=lambda device: streams[0],
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    )
)
leave_unfinished()
nvidia.compile_module_from_src = lambda **_: utils  # Triton 3.6 builds one launcher per signature
nvidia.library_dirs = lambda: []
nvidia.PyKernelArg = lambda nested_tuple, type: (nested_tuple, type)  # 3.7 gets it from its C module

from labs_helpers.attention import flash, operands, plan  # noqa: E402
from labs_helpers.attention.kernels import decode, hopper_launch, portable  # noqa: E402
from labs_helpers.measure.machine import this_machine  # noqa: E402

gpu = dataclasses.replace(this_machine(), interpreted=False, architecture="sm_90", capability=(9, 0), device="cuda")
for module in (plan, operands, decode, portable):
    module.this_machine = lambda: gpu
operands._check_for_kernels = lambda q: None
decode.multiprocessors = hopper_launch.multiprocessors = lambda device: 132


def comparable(x):
    """Replace lists by tuples, tensors by addresses, and hooks and their arguments by None."""
    if isinstance(x, triton.knobs.HookChain) or "LazyDict" in str(type(x)):
        return None
    if isinstance(x, torch.Tensor):
        return x.data_ptr()
    return tuple(comparable(y) for y in x) if isinstance(x, (tuple, list)) and not isinstance(x, Map) else x


def fixed_memory():
    """Let new tensors reuse the memory of earlier ones with the same size, dtype and position."""
    made, real, real_new, real_like = {}, torch.empty, torch.Tensor.new_empty, torch.empty_like
    turns: dict = {}

    def place(make, size, dtype):
        turn = turns[size, dtype] = turns.get((size, dtype), -1) + 1
        return made.setdefault((size, dtype, turn), make())

    def empty(size, **given):
        size = (size,) if isinstance(size, int) else tuple(size)
        return place(lambda: real(size, **given), size, given["dtype"])

    torch.empty = empty
    torch.empty_strided = lambda size, stride, **given: empty(size, **given)
    torch.zeros = empty
    torch.empty_like = lambda x: place(lambda: real_like(x), tuple(x.shape), x.dtype)
    torch.Tensor.new_empty_strided = lambda x, size, stride: empty(size, dtype=x.dtype)
    torch.Tensor.new_empty = lambda x, size: place(lambda: real_new(x, size), tuple(size), x.dtype)
    return turns


def tensors(B, H, Hkv, Lq, Lk, D, dtype=torch.float16, inside=False):
    q, k, v, do = (torch.randn(B, h, n, D).to(dtype) for h, n in ((H, Lq), (Hkv, Lk), (Hkv, Lk), (H, Lq)))
    if inside:  # as a projection leaves them
        q, k, v, do = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v, do))
    return q, k, v, do


CASES = {
    "self, d 64": (tensors(2, 4, 2, 256, 256, 64), True),
    "self, d 80, heads inside": (tensors(1, 3, 1, 100, 130, 80, torch.bfloat16, True), False),
    "long, d 64": (tensors(1, 1, 1, 1100, 1100, 64), False),
    "grouped, d 64": (tensors(1, 8, 1, 900, 900, 64), False),
    "more tiles than programs": (tensors(1, 140, 140, 64, 64, 64), True),
    "decode": (tensors(2, 8, 2, 1, 1500, 64), True),
    "decode of 5, one part": (tensors(2, 4, 4, 5, 60, 128), True),
}
same: list = []
different: list = []


def compare(name, run):
    """Run ordinary and prepared launches and compare their arguments."""
    turns = fixed_memory.turns
    seen = []
    for _ in range(4):  # the third call stores its descriptors, and the fourth reuses them
        turns.clear()
        launched.clear()
        run()
        seen.append([comparable(call) for call in launched])
    (same if all(each == seen[0] for each in seen) and seen[0] else different).append(
        [name, len(seen[0]), str(seen[:2])[:4000]]
    )


def what_is_bound() -> dict:
    """Call with another scale and in another stream, and return what outlives the operands."""
    *qkv, do = tensors(1, 2, 2, 256, 256, 64)
    given = [*qkv, *flash.attention_forward(*qkv, True), do, True]
    passes = {
        "forward": lambda scale: flash.attention_forward(*given[:3], True, scale),
        "backward": lambda scale: flash.attention_backward(*given, scale),
    }
    found = {}
    for name, run in passes.items():
        seen = {}
        for scale, stream in ((0.5, 77), (0.5, 77), (0.25, 77), (0.5, 78), (0.5, 77)):
            streams[0] = stream
            fixed_memory.turns.clear()
            launched.clear()
            run(scale)
            seen.setdefault((scale, stream), []).append([comparable(call) for call in launched])
        same_again = all(call == calls[0] for calls in seen.values() for call in calls)
        found[f"{name}, differ"] = same_again and len({str(calls[0]) for calls in seen.values()})
    launches = [plan.plan(*qkv, True).launch, plan.plan_backward(*given).launch]
    for scale in range(1, 1300):
        for run in passes.values():
            run(float(scale))
    gone = [weakref.ref(x.untyped_storage()) for x in (*qkv, do)]
    del qkv[:], given[:], do
    gc.collect()
    found["bound"] = [len(launch._calls) for launch in launches]
    found["kept alive"] = sum(storage() is not None for storage in gone)
    return found


def main() -> None:
    fixed_memory.turns = fixed_memory()
    for name, ((q, k, v, do), causal) in CASES.items():
        compare(f"{name}, forward", lambda q=q, k=k, v=v, c=causal: flash.flash_attention(q, k, v, c))
        if not name.startswith("decode"):
            o, lse = flash.attention_forward(q, k, v, causal)
            o = o.clone()
            given = (q, k, v, o, lse, do, causal)
            compare(f"{name}, backward", lambda given=given: flash.attention_backward(*given))
    bound = what_is_bound()
    # A key cache that grows by one token needs no more prepared kernels, and the launcher gets the new length.
    cache, q = torch.randn(1, 2, 3000, 64).half(), torch.randn(1, 8, 1, 64).half()
    prepared = set()
    for length in range(1030, 1080):
        flash.flash_attention(q, cache[:, :, :length], cache[:, :, :length])
        prepared.add(len(decode._prepared))
    print(json.dumps({"same": [s[:2] for s in same], "different": different, "prepared": len(prepared)} | bound))


def host_times() -> None:
    def best(run, calls=200, tries=25):
        times = []
        for _ in range(tries):
            began = time.process_time()
            for _ in range(calls):
                run()
            times.append((time.process_time() - began) / calls * 1e6)
            launched.clear()
        return min(times)

    torch.set_num_threads(1)
    q, k, v, do = tensors(1, 2, 2, 64, 64, 64)
    wanted = [t.clone().requires_grad_() for t in (q, k, v)]
    o = flash.flash_attention(*wanted, True)
    token, keys = torch.randn(1, 8, 1, 64).half(), torch.randn(1, 2, 1024, 64).half()
    cache, length = torch.randn(1, 2, 9000, 64).half(), [1024]

    def growing():
        length[0] += 1
        flash.flash_attention(token, cache[:, :, : length[0]], cache[:, :, : length[0]], True)

    for name, run in {
        "forward, no gradient": lambda: flash.flash_attention(q, k, v, True),
        "forward, kept for a backward": lambda: flash.flash_attention(*wanted, True),
        "backward by autograd": lambda: torch.autograd.grad(o, wanted, do, retain_graph=True),
        "decode": lambda: flash.flash_attention(token, keys, keys, True),
    }.items():
        run()
        print(f"{name:30s} {best(run):6.1f} µs")
    growing()
    print(f"{'decode, one key more each call':30s} {best(growing, 200, 25):6.1f} µs")


if __name__ == "__main__":
    host_times() if "--time" in sys.argv else main()
