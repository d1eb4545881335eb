"""Build what `attention.study --random 100 --seed 7` launches, in 12 processes: python warm.py [dtype]; then run the study."""
import subprocess, sys, time
if len(sys.argv) < 3:
    began, dtype = time.monotonic(), (sys.argv[1:] or ["float16"])[0]
    running = [subprocess.Popen([sys.executable, __file__, dtype, str(i)]) for i in range(12)]
    for process in running:
        try: process.wait(max(1, 150 - (time.monotonic() - began)))
        except subprocess.TimeoutExpired: process.kill()
    print(f"built after {time.monotonic() - began:.0f} s"); raise SystemExit
import torch
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
from labs_helpers.attention.flash_attention import flash_attention
from labs_helpers.attention.random_shapes import random_shapes
for s in random_shapes(100, 7)[int(sys.argv[2])::12]:
    q, k, v = (torch.randn(s.B, h, n, s.D, device="cuda", dtype=getattr(torch, sys.argv[1])) for h, n in ((s.H, s.Lq), (s.Hkv, s.Lk), (s.Hkv, s.Lk)))
    try:
        if s.kind == "decode": flash_attention(q, k, v, s.causal)
        else:
            w = [t.requires_grad_() for t in (q, k, v)]
            flash_attention(*w, s.causal).sum().backward()
    except Exception as error: print(s, type(error).__name__, str(error)[:200], flush=True)
