"""Which configuration of the Hopper kernels to take: forward 512/1k, backward d 64 full, lengths off the blocks, d 96.

    python forward_backward.py --seconds 290     # from the repository root; JSON lines to $OUT/forward_backward.jsonl
Every variant is compared with float64 first; what is wrong, or fails to build, says so and is not timed. Times from CUDA
graphs (warm L2, no host): ours against cuDNN and FA2 in the same turns. Resumes: a case in the file is not run again.
"""
import argparse, json, os, statistics, sys, time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
import torch
from labs_helpers.measure.machine import prepare_triton, this_machine
prepare_triton()
from labs_helpers.attention.baselines import BACKENDS, CUDNN, FLASH
from labs_helpers.attention.error_study import reference, relative_error
from labs_helpers.attention.kernels import hopper
from labs_helpers.attention.kernels.hopper_launch import BackwardConfig, ForwardConfig
from torch.nn.attention import sdpa_kernel

p = argparse.ArgumentParser(); p.add_argument("--seconds", type=float, default=290); p.add_argument("--ms", type=float, default=12)
p.add_argument("--rounds", type=int, default=3); p.add_argument("--compile", type=int); given = p.parse_args()
OUT = Path(os.environ.get("OUT", ".")) / "forward_backward.jsonl"
BEGAN = time.monotonic()
if given.compile is None: print(f"device {this_machine()}", flush=True)

def short(c): return " ".join(f"{k}={v}" for k, v in vars(c).items())
def forwards(D, L):
    found = [hopper.forward_config(D, L)]
    for cons, st, turns in ((2, 2, False), (2, 2, True)) if D > 64 else ((2, 4, True), (3, 2, True)):
        for qb, drawn in ((1, True), (2, True), (2, False)):
            found.append(ForwardConfig(cons, 128, st, turns, qb, drawn))
    if D <= 64: found += [ForwardConfig(2, 64, 4, True, 2, True), ForwardConfig(2, 128, 4, False, 2, True)]
    return list(dict.fromkeys(found))
def backwards(D): return [BackwardConfig(64, 2)] + ([BackwardConfig(64, 3), BackwardConfig(128, 2)] if D <= 64 else [])

# (direction, D, L, causal); 16,384 tokens, width about 2,048. The most valuable first.
CASES = [("backward", 64, L, False) for L in (2048, 4096, 16384)]
CASES += [("forward", D, L, c) for L in (512, 1024) for D in (64, 128) for c in (True, False)]
CASES += [("backward", D, 1000, c) for D in (64, 128, 96) for c in (False, True)]
CASES += [("backward", 96, 1024, False), ("backward", 64, 8192, False), ("forward", 96, 1000, False), ("forward", 64, 1000, True), ("forward", 128, 4096, True), ("forward", 128, 4096, False), ("forward", 64, 4096, False), ("backward", 128, 4096, False)]

def graph_of(call, stream, ms):
    with torch.cuda.stream(stream):
        b, e = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call(); b.record(); call(); e.record(); stream.synchronize()
        n = max(1, min(round(ms / 4 / max(b.elapsed_time(e), 1e-3)), 100))
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, stream=stream):
            for _ in range(n): call()
        g.replay(); stream.synchronize()
    def sample():
        with torch.cuda.stream(stream):
            b.record(); g.replay(); e.record(); stream.synchronize()
        return b.elapsed_time(e) / n
    return sample

def compile_case(direction, D, L, causal):
    """Build what the case needs, on a small problem: no size is compiled in but whether 128 divides L."""
    n = 128 if L % 128 == 0 else 100
    q, k, v, do = (torch.randn(1, 1, n, D, device="cuda").half() for _ in range(4))
    o, lse = hopper.forward(q, k, v, causal, 0.1)
    for drawn_tiles in (1, 140):  # one tile a program, and more tiles than programs
        x = [t.expand(1, drawn_tiles, n, D).contiguous() for t in (q, k, v)]
        for config in forwards(D, L) if direction == "forward" else ():
            try: hopper.forward_launch(*x, causal, config)(*x, 0.1)
            except Exception as error: print(type(error).__name__, str(error)[:200])
    for config in backwards(D) if direction == "backward" else ():
        try: hopper.backward_launch(q, k, v, o, do, causal, config)(q, k, v, o, lse, do, 0.1)
        except Exception as error: print(type(error).__name__, str(error)[:200])
    torch.cuda.synchronize()
if given.compile is not None:
    compile_case(*CASES[given.compile]); raise SystemExit
def beforehand():
    import subprocess
    kinds = {(d, D > 64, L % 128 == 0, c, d == "forward" and L > 1024): i for i, (d, D, L, c) in enumerate(CASES)}
    with ThreadPoolExecutor(12) as pool:
        for done in pool.map(lambda i: subprocess.run([sys.executable, __file__, "--compile", str(i)], timeout=150, capture_output=True, text=True), kinds.values()):
            if done.returncode or done.stdout: print("compiling beforehand:", done.stdout[-300:], done.stderr[-300:])
    print(f"compiled beforehand after {time.monotonic() - BEGAN:.0f} s", flush=True)

def case(direction, D, L, causal):
    H, B = max(2048 // D, 1), max(16384 // L, 1)
    torch.manual_seed(L + D)
    q, k, v = (torch.randn(B, H, L, D, device="cuda").half().requires_grad_() for _ in range(3))
    do = torch.randn(B, H, L, D, device="cuda").half()
    corner = ([0, -1], [0, -1])
    exact = reference(*(t[corner][None] for t in (q, k, v, do)), causal)
    stream, scale = torch.cuda.Stream(), D**-0.5
    flops = 4 * B * H * L * L * D / (2 if causal else 1) * (1 if direction == "forward" else 2.5)
    calls, told = {}, {}
    plain = [t.detach() for t in (q, k, v)]
    o0, lse0 = hopper.forward(*plain, causal, scale)
    def add(name, call, kept=None):
        try:
            with torch.cuda.stream(stream):
                got = call(); stream.synchronize()
            got = list(got) if isinstance(got, (tuple, list)) else [got]
            right = exact[:1] if direction == "forward" else exact[1:]
            wrong = max(relative_error(g[corner][None], r) for g, r in zip(got, right))
            if not wrong < 5e-3: raise ValueError(f"wrong: {wrong:.2g}")
            told[name] = {"relative_error": wrong}
            calls[name] = graph_of(call, stream, given.ms)
        except Exception as error:
            told[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    for name in (CUDNN, FLASH):
        def attend(name=name):
            with sdpa_kernel(BACKENDS[name]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if direction == "forward": add(name, attend)
        else:
            try:
                with torch.cuda.stream(stream): o = attend()
                stream.synchronize()
                add(name, partial(torch.autograd.grad, o, (q, k, v), do, retain_graph=True))
            except Exception as error: told[name] = {"error": str(error)[:200]}
    for config in forwards(D, L) if direction == "forward" else backwards(D):
        if direction == "forward":
            launch = hopper.forward_launch(*plain, causal, config)
            add(short(config), lambda launch=launch: launch(*plain, scale)[0])
        else:
            launch = hopper.backward_launch(*plain, o0, do, causal, config)
            add(short(config), lambda launch=launch: launch(*plain, o0, lse0, do, scale))
    times = {name: [] for name in calls}
    for _ in range(given.rounds):
        for name, sample in calls.items(): times[name] += [sample() for _ in range(4)]
    records = []
    for name in told:
        r = {"direction": direction, "D": D, "L": L, "B": B, "H": H, "causal": causal, "name": name, "device": torch.cuda.get_device_name(), "torch": torch.__version__} | told[name]
        if name in times and times[name]:
            ms = statistics.median(times[name])
            r |= {"ms": ms, "tflops": flops / ms / 1e9, "spread": (max(times[name]) - min(times[name])) / ms}
        records.append(r)
    return records

beforehand()
known = {}
if OUT.exists():
    for line in OUT.read_text().splitlines():
        r = json.loads(line); known.setdefault((r["direction"], r["D"], r["L"], r["causal"]), []).append(r)
for c in CASES:
    if c in known: continue
    if time.monotonic() - BEGAN > given.seconds: print("time is over before", c); break
    t = time.monotonic()
    try: records = case(*c)
    except Exception as error: print("failed", c, type(error).__name__, str(error)[:300], flush=True); continue
    with OUT.open("a") as f: f.writelines(json.dumps(r) + "\n" for r in records)
    known[c] = records
    print(c, f"{time.monotonic() - t:.1f} s", *[f"{r['name']}: {r['error']}" for r in records if "error" in r and r["name"] not in (FLASH,)], sep="; ", flush=True)
    torch.cuda.empty_cache()
print(f"\n{'case':34s} {'cuDNN':>7s} {'FA2':>7s} {'now':>7s} {'best':>7s}  best/cuDNN now/cuDNN  take")
for c, records in known.items():
    t = {r["name"]: r["ms"] for r in records if "ms" in r}
    ours = {n: ms for n, ms in t.items() if n not in (CUDNN, FLASH)}
    if not ours: continue
    now = short(hopper.forward_config(c[1], c[2]) if c[0] == "forward" else BackwardConfig(64, 2))
    best = min(ours, key=ours.get); base = t.get(CUDNN, float("nan"))
    take = best if ours[best] < 0.99 * ours.get(now, 9e9) else "as it is"
    print(f"{str(c):34s} {base:7.4f} {t.get(FLASH, float('nan')):7.4f} {ours.get(now, float('nan')):7.4f} {ours[best]:7.4f}  {base / ours[best]:10.3f} {base / ours.get(now, float('nan')):9.3f}  {take}")
print(f"total {time.monotonic() - BEGAN:.0f} s")
