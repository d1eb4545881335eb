"""Decode: which configuration and how many parts, against FA2 and cuDNN and the copy bandwidth.

    python decode.py --seconds 200      # from the repository root; JSON lines to $OUT/decode.jsonl
Cold: K and V rotate over enough copies to fill 4 × the L2. Every variant is compared with float64 first. Times from
graphs. Last: for each case the best (config, parts), what choose_splits takes now, and a fit of FILL and JOIN.
"""
import argparse, json, os, statistics, time
from pathlib import Path
import torch
from labs_helpers.measure.machine import prepare_triton, this_machine
prepare_triton()
from labs_helpers.attention.baselines import BACKENDS, CUDNN, FLASH
from labs_helpers.attention import torch_reference
from labs_helpers.attention.error_study import relative_error
from labs_helpers.attention.kernels import decode
from labs_helpers.attention.kernels.decode import DecodeConfig
from torch.nn.attention import sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
p = argparse.ArgumentParser(); p.add_argument("--seconds", type=float, default=200); p.add_argument("--compile", type=int); given = p.parse_args()
OUT = Path(os.environ.get("OUT", ".")) / "decode.jsonl"; BEGAN = time.monotonic()
L2 = torch.cuda.get_device_properties(0).L2_cache_size
SMS = decode.multiprocessors(0)
if given.compile is None: print(f"device {this_machine()}, L2 {L2 / 2**20:.0f} MiB, {SMS} SMs", flush=True)
x = torch.empty(2**20 if given.compile is not None else 2**30, dtype=torch.uint8, device="cuda"); y = torch.empty_like(x)
def events(call, n=20):
    b, e = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call(); torch.cuda.synchronize(); b.record()
    for _ in range(n): call()
    e.record(); torch.cuda.synchronize(); return b.elapsed_time(e) / n
x.random_(); COPY = 2 * x.numel() / events(lambda: y.copy_(x)) / 1e9
del x, y
if given.compile is None: print(f"copy {COPY:.2f} TB/s", flush=True)
#        B  H  Hkv Lq  Lk      D
CASES = [(1, 32, 8, 1, 8192, 128), (1, 32, 8, 1, 131072, 128), (8, 32, 8, 1, 8192, 128), (32, 32, 8, 1, 4096, 128), (1, 32, 32, 1, 4096, 128), (4, 32, 8, 8, 16384, 128), (16, 16, 16, 1, 2048, 64), (1, 16, 4, 1, 65536, 64), (1, 8, 1, 16, 32768, 128), (1, 32, 8, 1, 1024, 128), (2, 20, 5, 1, 10000, 96), (64, 32, 8, 1, 1024, 128)]
def configs(D):
    w = decode.decode_config(D, "sm_90")
    more = [DecodeConfig(64, 4, 2, 3), DecodeConfig(64, 4, 4, 1), DecodeConfig(64, 8, 3, 2), DecodeConfig(128, 4, 3, 1), DecodeConfig(128, 8, 3, 1), DecodeConfig(32, 4, 5, 2)]
    if D <= 64: more = [DecodeConfig(64, 4, 4, 3), DecodeConfig(128, 4, 4, 1), DecodeConfig(128, 8, 3, 2), DecodeConfig(64, 4, 3, 4), DecodeConfig(256, 8, 3, 1)]
    return list(dict.fromkeys([w, *more]))
def graph(call, inputs):
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        for i in inputs: call(*i)
        s.synchronize(); g = torch.cuda.CUDAGraph()
        n = -(-8 // len(inputs))
        with torch.cuda.graph(g, stream=s):
            for _ in range(n):
                for i in inputs: call(*i)
        g.replay(); s.synchronize(); t = []
        b, e = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(7):
            b.record(); g.replay(); e.record(); s.synchronize(); t.append(b.elapsed_time(e) / n / len(inputs))
    return statistics.median(t)
def case(B, H, Hkv, Lq, Lk, D):
    size = 4 * B * Hkv * Lk * D; copies = 1 if given.compile is not None else min(max(2, -(-4 * L2 // size)), 64)
    inputs = [tuple(torch.randn(B, h, n, D, device="cuda", dtype=torch.half) for h, n in ((H, Lq), (Hkv, Lk), (Hkv, Lk))) for _ in range(copies)]
    q, k, v = inputs[0]; G = H // Hkv
    if given.compile is not None: exact = None
    else: exact = torch_reference.attention_forward(q[:1, :G].double(), k[:1, :1].double(), v[:1, :1].double(), True)[0]
    moved = 4 * D * (B * H * Lq + B * Hkv * Lk); found = []
    def add(name, call, **more):
        r = {"B": B, "H": H, "Hkv": Hkv, "Lq": Lq, "Lk": Lk, "D": D, "name": name, "device": torch.cuda.get_device_name(), "copy": COPY} | more
        try:
            if given.compile is not None:
                if name == "ours": call(q, k, v)
                return
            wrong = relative_error(call(q, k, v)[:1, :G], exact)
            if not wrong < 5e-3: raise ValueError(f"wrong: {wrong:.2g}")
            ms = graph(call, inputs); r |= {"ms": ms, "TB/s": moved / ms / 1e9, "relative_error": wrong}
        except Exception as error: r["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]; torch.cuda.synchronize()
        found.append(r)
    for name in (FLASH, CUDNN):
        mask = None if Lq == 1 else causal_lower_right(Lq, Lk) if name == FLASH else torch.ones(Lq, Lk, dtype=torch.bool, device="cuda").tril(Lk - Lq)
        def sdpa(q, k, v, name=name, mask=mask):
            with sdpa_kernel(BACKENDS[name]): return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=H != Hkv)
        add(name, sdpa)
    rows = H // Hkv * Lq; tiles = -(-rows // min(64, max(16, 1 << (rows - 1).bit_length())))
    for c in configs(D):
        blocks = -(-Lk // c.BLOCK_N); chosen = decode.choose_splits(B * Hkv * tiles, blocks, c.programs * SMS)
        first = c == configs(D)[0]
        tries = {chosen} | ({max(1, min(blocks, 128, round(chosen * f))) for f in (0.25, 0.5, 0.75, 1.5, 2, 3)} | {1} if first else {max(1, min(blocks, 128, chosen * 2))})
        for s in sorted(tries):
            launch = decode.launch_for(q, k, v, True, c, s)
            add("ours", lambda q, k, v, launch=launch: launch(q, k, v, D**-0.5)[0], config=vars(c), splits=s, chosen=s == chosen, default=first, programs=B * Hkv * tiles, blocks=blocks)
    return found
if given.compile is not None:
    case(*CASES[given.compile]); torch.cuda.synchronize(); raise SystemExit
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(12) as pool:
    for done in pool.map(lambda i: subprocess.run([sys.executable, __file__, "--compile", str(i)], timeout=150, capture_output=True, text=True), range(len(CASES))):
        if done.returncode: print("compiling beforehand:", done.stderr[-300:])
print(f"compiled beforehand after {time.monotonic() - BEGAN:.0f} s", flush=True)
known = {}
if OUT.exists():
    for line in OUT.read_text().splitlines():
        r = json.loads(line); known.setdefault(tuple(r[n] for n in ("B", "H", "Hkv", "Lq", "Lk", "D")), []).append(r)
for c in CASES:
    if c in known: continue
    if time.monotonic() - BEGAN > given.seconds: print("time is over before", c); break
    t = time.monotonic()
    try: known[c] = case(*c)
    except Exception as error: print("failed", c, type(error).__name__, str(error)[:300], flush=True); continue
    with OUT.open("a") as f: f.writelines(json.dumps(r) + "\n" for r in known[c])
    print(c, f"{time.monotonic() - t:.1f} s", *[r["error"] for r in known[c] if "error" in r][:3], flush=True); torch.cuda.empty_cache()
print(f"\n{'B H Hkv Lq Lk D':28s} {'FA2':>7s} {'cuDNN':>7s} {'now':>7s} {'best':>7s} best/base now/base  %copy now best   parts now best  config of the best")
for c, records in known.items():
    ours = [r for r in records if r["name"] == "ours" and "ms" in r]
    base = {r["name"]: r["ms"] for r in records if r["name"] != "ours" and "ms" in r}
    now = [r for r in ours if r["chosen"] and r["default"]]
    if not ours or not now: continue
    best, now, least = min(ours, key=lambda r: r["ms"]), now[0], min(base.values(), default=float("nan"))
    print(f"{str(c):28s} {base.get(FLASH, float('nan')):7.4f} {base.get(CUDNN, float('nan')):7.4f} {now['ms']:7.4f} {best['ms']:7.4f} {least / best['ms']:9.2f} {least / now['ms']:8.2f} {100 * now['TB/s'] / COPY:9.0f}% {100 * best['TB/s'] / COPY:3.0f}% {now['splits']:9d} {best['splits']:4d}  {tuple(best['config'].values())}")
# FILL and JOIN: those under which choose_splits takes, of the measured numbers of parts, the best ones.
fits = []
for FILL in (0.5, 1, 2, 3, 4, 6):
    for JOIN in (0, 1, 2, 3, 5, 8):
        lost = []
        for c, records in known.items():
            ours = [r for r in records if r["name"] == "ours" and "ms" in r and r["default"]]
            if len(ours) < 2: continue
            slots = ours[0]["config"]["programs"] * SMS
            steps = lambda r: -(-r["programs"] * r["splits"] // slots) * (FILL + -(-r["blocks"] // r["splits"])) + JOIN * (r["splits"] > 1)
            lost.append(min(ours, key=lambda r: (steps(r), r["splits"]))["ms"] / min(r["ms"] for r in ours))
        if lost: fits.append((statistics.mean(lost), max(lost), FILL, JOIN))
for f in sorted(fits)[:4]: print("FILL %g JOIN %g: the parts taken cost %.3f of the best in the mean, %.3f at worst" % (f[2], f[3], f[0], f[1]))
print(f"total {time.monotonic() - BEGAN:.0f} s")
