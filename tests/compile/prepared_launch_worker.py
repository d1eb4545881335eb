"""Compare the arguments of ordinary and prepared launches; a script for test_prepared_launch.py.

It needs neither the interpreter nor a GPU: it compiles the Hopper kernel for sm_90, 'loads' it with a fake driver, and
records what reaches the launcher. It prints a JSON object.
"""

import json
import sys
import threading
import types

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime import driver as runtime

from tests.compile.unfinished_kernels import leave_unfinished

launched, encoded = [], []


class Map(tuple):
    """A tensor map: what it was made of."""


def launch(*arguments):
    launched.append(arguments)


def encode(*arguments):
    encoded.append(arguments)
    return Map(tuple(x) if isinstance(x, list) else x for x in arguments)


utils = types.SimpleNamespace(
    launch=launch,
    fill_tma_descriptor=encode,
    fill_tma_descriptor_tiled=encode,
    build_signature_metadata=lambda signature: bytes(len(signature)),
    load_binary=lambda name, binary, shared, device: (f"module {name}", f"function {name}", 200, 0, 1024),
    get_device_properties=lambda device: {"max_shared_mem": 232_448, "multiprocessor_count": 132},
)
active = types.SimpleNamespace(
    utils=utils,
    launcher_cls=nvidia.CudaLauncher,
    device=0,
    get_current_device=lambda: active.device,
    get_current_stream=lambda device: 77 + device,
    get_current_target=lambda: GPUTarget("cuda", 90, 32),
)
leave_unfinished()
nvidia.compile_module_from_src = lambda **_: utils  # Triton 3.6 builds a launcher a signature
nvidia.library_dirs = lambda: []
nvidia.PyKernelArg = lambda nested_tuple, type: (nested_tuple, type)  # 3.7 gets it from its C module
runtime.set_active(active)

from labs_helpers.compile import prepared_launch  # noqa: E402
from labs_helpers.gemm.kernels import hopper  # noqa: E402

hopper._multiprocessors = lambda device: 132
same = {}
torch_empty = torch.empty
torch.empty = lambda size, **keywords: same.setdefault(str(size), torch_empty(size, **keywords))
torch.empty_like = lambda x: torch.empty(tuple(x.shape), dtype=x.dtype)
answer: dict = {"triton": triton.__version__, "cases": 0, "different": []}


def comparable(arguments):
    """Tuples for lists, and tensor maps as they are: equal where they were made of the same."""
    return tuple(comparable(x) if isinstance(x, (tuple, list)) else x for x in arguments)


def flatten(arguments):
    for x in arguments:
        yield from flatten(x) if isinstance(x, tuple) else (x,)


def addresses(arguments):
    """The same with tensors' addresses for tensors, which the usual launch gets for pointers."""
    if isinstance(arguments, tuple):
        return tuple(map(addresses, arguments))
    return arguments.data_ptr() if isinstance(arguments, torch.Tensor) else arguments


def without_hooks(arguments):
    """None for what the usual launch passes of hooks: what they would be told, and the two chains, which are empty."""
    hooks = [isinstance(x, triton.knobs.HookChain) or "LazyDict" in str(type(x)) for x in arguments]
    assert sum(hooks) == 3
    return comparable(None if hook else x for hook, x in zip(hooks, arguments, strict=True))


def slices(M, N, K, pad, dtype):
    return [torch_empty(m, n + pad, dtype=dtype)[:, :n] for m, n in ((M, K), (K, N), (M, N))]


CASES = [
    (256, 256, 512, 0, torch.float16, hopper.HopperConfig(128, 128, 64)),
    (300, 264, 520, 8, torch.float16, hopper.HopperConfig(128, 128, 64, GROUP_M=1)),
    (1, 8, 136, 64, torch.bfloat16, hopper.HopperConfig(64, 128, 64, STAGES=8, CONSUMERS=1)),
    (4096, 512, 192, 0, torch.bfloat16, hopper.HopperConfig(128, 256, 64)),
]
for *shape, config in CASES:
    a, b, c = slices(*shape)
    hopper.hopper_matmul(a, b, c, config)
    usual, made = launched.pop(), len(encoded)
    for _ in range(2):
        hopper.hopper_matmul(a, b, c, config)
        again = launched.pop()
        answer["cases"] += 1
        if addresses(without_hooks(usual)) != comparable(again):
            answer["different"].append([str(shape), str(without_hooks(usual)), str(comparable(again))])
    answer.setdefault("encoded", []).append([made, len(encoded) - made])
    encoded.clear()

# A kernel of pointers: the usual launch passes tensors, the prepared one their addresses.
from labs_helpers.gemm import Config  # noqa: E402
from labs_helpers.gemm.kernels import padded, portable, split_k  # noqa: E402

answer["pointers"] = []


def compare_pointers(usual, again):
    told = list(flatten(without_hooks(usual)))
    same_ones = list(map(addresses, told)) == list(flatten(comparable(again)))
    answer["pointers"].append([same_ones, any(isinstance(x, torch.Tensor) for x in told)])


for M, K, N, pad in ((16, 512, 256, 0), (1, 130, 40, 0), (33, 257, 129, 3)):
    a, b, c = slices(M, N, K, pad, torch.float16)
    a_copy, b_copy = (torch_empty(x.shape[0], 1024, dtype=x.dtype)[:, : x.shape[1]] for x in (a, b))
    zeros, config = torch.zeros(64, dtype=torch.int32), split_k.SplitConfig(16, 64, 64, 3)
    split_k.counters = lambda tiles, device, zeros=zeros: zeros
    torch.empty = lambda size, **keywords: same.setdefault((size, str(keywords)), torch_empty(size, **keywords))
    for _ in range(2):
        split_k.split_k_matmul(a, b, c, config)
        portable.portable_matmul(a, b, c, Config(32, 64, 64))
        padded.copy_rows((a, a_copy), (b, b_copy))
    cases, launched[:] = [launched[i::3] for i in range(3)], []
    for usual, again in cases:
        compare_pointers(usual, again)
torch.empty = lambda size, **keywords: same.setdefault(str(size), torch_empty(size, **keywords))

# Another tensor of the same look: only its own map is made, and no reference to the old one is kept.
import gc  # noqa: E402
import weakref  # noqa: E402

a, b, c = slices(*CASES[0][:-1])
gone = weakref.ref(a.untyped_storage())
hopper.hopper_matmul(a, b, c, CASES[0][-1])
launched.clear()
del a
gc.collect()
answer["kept alive"] = gone() is not None

# The cache of maps is bounded.
launch = hopper.hopper_launch(*slices(*CASES[0][:-1]), CASES[0][-1])
for address in range(0, 16 * 3000, 16):
    launch._describe(launch.prepared, (address, 0, 0, 0))
answer["maps"] = max(launch.prepared.map_of.cache_info().currsize, len(launch._arguments))

# Threads: each launch has its own operands, whoever runs in between.
launched.clear()
operands = [slices(*CASES[0][:-1]) for _ in range(8)]
sys.setswitchinterval(1e-6)


def work(mine):
    for _ in range(200):
        hopper.hopper_matmul(*mine, CASES[0][-1])


threads = [threading.Thread(target=work, args=(mine,)) for mine in operands]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
triples = {tuple(x.data_ptr() for x in mine) for mine in operands}
flat = [
    tuple(x[0] for x in (call if "3.6." in triton.__version__[:4] else call[-1]) if isinstance(x, Map))
    for call in launched
]
answer["threads"] = [len(launched), len(set(flat)), {three[:3] for three in flat} == triples]

# A hook, or another device: the usual way.
launched.clear()
told = []
triton.knobs.runtime.launch_enter_hook.add(told.append)
hopper.hopper_matmul(*operands[0], CASES[0][-1])
answer["hooked"] = any(x is triton.knobs.runtime.launch_enter_hook for x in launched.pop())
triton.knobs.runtime.launch_enter_hook.remove(told.append)
active.device = 1
answer["other device"] = not launch.prepared.fits()
active.device = 0
answer["fits"] = launch.prepared.fits()
prepared_launch.VERSIONS = ("2.",)
answer["other version"] = prepared_launch.prepare(launch.prepared._kernel) is None
print(json.dumps(answer))
