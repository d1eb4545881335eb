"""Host time of a call, µs: ours and SDPA, forward, backward through autograd, decode; no device time in it.

    python host.py      # from the repository root, 20 s; a JSON line to $OUT/host.jsonl
"""
import json, os, time
from pathlib import Path
import torch
from labs_helpers.measure.machine import prepare_triton, this_machine
prepare_triton()
from labs_helpers.attention.baselines import BACKENDS, CUDNN, FLASH
from labs_helpers.attention.flash_attention import flash_attention
from torch.nn.attention import sdpa_kernel
def host(call, n=100, tries=15):
    """Least of the means: n calls begun, timed before the device is waited for; the queue holds 1,024 launches."""
    times = []
    for _ in range(tries):
        torch.cuda.synchronize(); t = time.perf_counter()
        for _ in range(n): call()
        times.append((time.perf_counter() - t) / n * 1e6)
    torch.cuda.synchronize(); return min(times)
def sdpa(name):
    def f(q, k, v, causal):
        with sdpa_kernel(BACKENDS[name]): return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return f
print(f"device {this_machine()}"); out = {}
q, k, v, do = (torch.randn(1, 4, 128, 64, device="cuda").half() for _ in range(4))
w = [t.clone().requires_grad_() for t in (q, k, v)]
d, key = torch.randn(1, 8, 1, 64, device="cuda").half(), torch.randn(1, 2, 1024, 64, device="cuda").half()
def every(name, f):
    o = f(*w, True)
    cases = {"forward": lambda: f(q, k, v, True), "forward, kept": lambda: f(*w, True), "backward": lambda: torch.autograd.grad(o, w, do, retain_graph=True)}
    if name == "ours": cases["decode"] = lambda: f(d, key, key, True)
    for what, call in cases.items():
        for _ in range(5): call()
        torch.cuda.synchronize(); out[f"{name}, {what}"] = host(call)
for name, f in {"ours": flash_attention, FLASH: sdpa(FLASH), CUDNN: sdpa(CUDNN)}.items():
    try: every(name, f)
    except Exception as error: print(name, type(error).__name__, str(error)[:200])
with (Path(os.environ.get("OUT", ".")) / "host.jsonl").open("a") as file: file.write(json.dumps({"device": torch.cuda.get_device_name()} | out) + "\n")
for name, us in out.items(): print(f"{name:45s} {us:7.1f} µs")
