"""Answers to lab 01 that nobody had seen when its checks were written."""

from tests.unseen.answers import Answer

B, G, O, P, S, C, M = "benchmark", "gpu_time", "bound_by", "peak_bytes", "scaled_update", "place_checkpoints", "mfu"

DIAGNOSE = '''
def diagnose(events):
    timed = [e for e in events if e["ph"] == "X"]
    ranges = [e for e in timed if e["cat"] == "user_annotation"]
    launched = {e["args"]["correlation"]: e for e in timed if e["cat"] == "cuda_runtime"}
    totals = {r["name"]: [0, 0.0, 0.0] for r in ranges}
    pieces = [e for e in timed if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    for r in ranges:
        mine = []
        for piece in pieces:
            launch = launched.get(piece["args"].get("correlation"))
            if launch is None or launch["tid"] != r["tid"]:
                continue
            if r["ts"] <= launch["ts"] < r["ts"] + r["dur"]:
                mine.append((piece["ts"], piece["ts"] + piece["dur"]))
        if not mine:
            continue
        busy, reached = 0.0, float("-inf")
        for start, end in sorted(mine):
            busy += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        total = totals[r["name"]]
        total[0] += len(mine)
        total[1] += busy
        total[2] += max(end for _, end in mine) - min(start for start, _ in mine)
    parts = {name: tuple(total) for name, total in totals.items()}
    slow = max(parts, key=lambda name: parts[name][2])
    return parts, slow, "waits" if parts[slow][1] < parts[slow][2] / 2 else "works"
'''

ANSWERS = [
    Answer(B, "no wait before the clock starts", [("            synchronize()\n            started", "            started")]),
    Answer(B, "no wait before the clock stops", [("            phase(ready)\n            synchronize()\n", "            phase(ready)\n")]),
    Answer(B, "warm-up rounds count", [("samples[warmup:]", "samples")]),
    Answer(B, "keeps the first rounds", [("samples[warmup:]", "samples[:runs]")]),
    Answer(B, "no ms", [("1e3 * (clock() - started)", "clock() - started")]),
    Answer(B, "spread in ms", [("float((p80 - p20) / median)", "float(p80 - p20)")]),
    Answer(B, "mean as median", [("p20, median, p80 = numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))", "p20, median, p80 = numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))\n        median = numpy.mean(samples[warmup:])")]),
    Answer(B, "backward with its forward pass", [("timed(model.forward, model.backward)", "timed(lambda: None, lambda _: model.backward(model.forward()))")]),
    Answer(B, "step waits before its update", [("        model.update()", "        synchronize()\n        model.update()")]),
    Answer(B, "step is the sum of its phases", [('timed(lambda: None, step)', 'tuple(a + b for a, b in zip(timings["forward"], timings["backward"]))')]),
    Answer(B, "one loss for all backward rounds", [('    timings["backward"] = timed(model.forward, model.backward)', '    loss = model.forward()\n    timings["backward"] = timed(lambda: loss, model.backward)')]),
    Answer(G, "adds up durations", [("        for start, end in sorted((e[\"ts\"], e[\"ts\"] + e[\"dur\"]) for e in part):\n            total += max(0.0, end - max(start, reached))\n            reached = max(reached, end)\n        return total", "        return sum(e[\"dur\"] for e in part)")]),
    Answer(G, "the GPU's time is the whole", [('max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)', 'max(e["ts"] + e["dur"] for e in timed if e["cat"] == "kernel") - min(e["ts"] for e in timed if e["cat"] == "kernel")')]),
    Answer(G, "no memset", [('("kernel", "gpu_memcpy", "gpu_memset")', '("kernel", "gpu_memcpy")')]),
    Answer(G, "nested intervals move the end back", [("reached = max(reached, end)", "reached = end")]),
    Answer(G, "exposed is all communication", [("(busy - covered(others)) / whole", "covered([e for e in work if e not in others]) / whole")]),
    Answer(G, "copies count as launches", [('sum(e["cat"] == "kernel" for e in work)', "len(work)")]),
    Answer(G, "sorts the caller's list", [("    timed = [", '    events.sort(key=lambda e: e.get("ts", 0))\n    timed = [')]),
    Answer(G, "percent", [("busy / whole, (busy", "100 * busy / whole, 100 * (busy")]),
    Answer(G, "a name that has nccl in it", [('e["name"].startswith("nccl")', '"nccl" in e["name"]')]),
    Answer(G, "the last start ends the trace", [('max(e["ts"] + e["dur"] for e in timed)', 'max(e["ts"] for e in timed)')]),
    Answer(O, "one FLOP per multiplication and addition", [("flops = 2 * math.prod", "flops = math.prod")]),
    Answer(O, "nothing is written", [(" for elements, itemsize in inputs) + written", " for elements, itemsize in inputs)")]),
    Answer(O, "the product is float32", [("M * N * inputs[0][1]", "M * N * 4")]),
    Answer(O, "a FLOP per element of every input", [("        flops, itemsize = max(inputs, default=(0, 0))\n        written = flops * itemsize", "        elements, itemsize = max(inputs, default=(0, 0))\n        written = elements * itemsize\n        flops = sum(n for n, _ in inputs)")]),
    Answer(O, "no input left", [("max(inputs, default=(0, 0))", "max(inputs)")]),
    Answer(O, "numbers are inputs", [("if shape and kind in ITEMSIZE", "if kind in ITEMSIZE")]),
    Answer(O, "neither reports no share", [('return "neither", share', 'return "neither", 0.0')]),
    Answer(O, "written without the batch", [("written = math.prod(batch) * M * N", "written = M * N")]),
    Answer(O, "names swapped", [('"bytes" if at_bytes > at_flops else "FLOPs"', '"FLOPs" if at_bytes > at_flops else "bytes"')]),
    Answer(O, "the sum of both times", [("max(at_bytes, at_flops) / us", "(at_bytes + at_flops) / us")]),
    Answer(O, "only mm is a product", [('("aten::mm", "aten::bmm")', '("aten::mm",)')]),
    Answer(P, "an output also where tied", [("V * W * (2 - config.tied)", "V * W * 2")]),
    Answer(P, "one moment", [("states = 3 * itemsize", "states = 2 * itemsize")]),
    Answer(P, "a mask per sequence", [("+ length**2 + 4 * scores", "+ batch * config.heads * length**2 + 4 * scores")]),
    Answer(P, "scores of one sequence", [("scores = batch * config.heads", "scores = config.heads")]),
    Answer(P, "rounded in float32 too", [("0 if itemsize == 4 else itemsize * scores", "itemsize * scores")]),
    Answer(P, "log-softmax without its gradients", [("3 * 4 * tokens * V", "4 * tokens * V")]),
    Answer(P, "no temporary in the update", [("5 * itemsize * parameters)", "4 * itemsize * parameters)")]),
    Answer(P, "two matrices in the MLP", [("3 * W * F", "2 * W * F")]),
    Answer(P, "adds the points", [("return max(states + loss, states + softmax, 5 * itemsize * parameters)", "return states + loss + softmax")]),
    Answer(P, "no gradient in the softmax", [("above + 2 * 4 * scores", "above")]),
    Answer(S, "checks each gradient as it goes", [("    if not all(gradient.isfinite().all() for gradient in gradients):\n        return scale / 2, 0\n", ""), ("            exact -= lr", "            if not gradient.isfinite().all():\n                return scale / 2, 0\n            exact -= lr")]),
    Answer(S, "NaN alone", [("not all(gradient.isfinite().all() for", "any(gradient.isnan().any() for")]),
    Answer(S, "divides in float16", [("(gradient.float() / scale)", "(gradient / scale).float()")]),
    Answer(S, "the weight loses it in float16", [("            weight.copy_(exact)", "            weight -= (lr * gradient.float() / scale).half()")]),
    Answer(S, "a skip keeps the count", [("return scale / 2, 0", "return scale / 2, good_steps")]),
    Answer(S, "the count goes on after growth", [("return scale * 2, 0", "return scale * 2, good_steps")]),
    Answer(S, "a step late", [("good_steps == growth_interval", "good_steps > growth_interval")]),
    Answer(S, "divides the gradients in place", [("(gradient.float() / scale)", "gradient.div_(scale).float()")]),
    Answer(S, "rebinds the weight", [("weight.copy_(exact)", "weight = exact.half()")]),
    Answer(S, "scale forgotten", [("(gradient.float() / scale)", "gradient.float()")]),
    Answer(S, "weights come out of the old master", [("            exact -= lr * (gradient.float() / scale)\n            weight.copy_(exact)", "            weight.copy_(exact)\n            exact -= lr * (gradient.float() / scale)")]),
    Answer(C, "rounds down", [("-(-layers // segments)", "layers // segments")]),
    Answer(C, "the root of the formula", [("min(range(1, layers + 1), key=peak)", "max(1, min(layers, round((layers * inside / kept) ** 0.5)))")]),
    Answer(C, "the last takes the rest", [("[size + 1] * larger + [size] * (segments - larger)", "[size] * (segments - 1) + [size + larger]")]),
    Answer(C, "drops the rest", [("[size + 1] * larger + [size] * (segments - larger)", "[size] * segments")]),
    Answer(C, "never one per layer", [("range(1, layers + 1)", "range(1, layers)")]),
    Answer(C, "most segments of equal peaks", [("range(1, layers + 1)", "range(layers, 0, -1)")]),
    Answer(C, "kept and inside swapped", [("segments * kept + -(-layers // segments) * inside", "segments * inside + -(-layers // segments) * kept")]),
    Answer(C, "only divisors", [("range(1, layers + 1)", "[s for s in range(1, layers + 1) if layers % s == 0]")]),
    Answer(C, "all the insides", [("-(-layers // segments) * inside", "layers * inside / segments")]),
    Answer(M, "backward costs as much as forward", [("3 * forward", "2 * forward")]),
    Answer(M, "one FLOP per multiplication and addition", [("forward = 2 * (", "forward = (")]),
    Answer(M, "k and v as wide as q", [("config.width // config.heads * config.kv_heads", "config.width")]),
    Answer(M, "all scores", [("(length + 1) / 2", "length")]),
    Answer(M, "no logits where tied", [("config.vocabulary * W)", "config.vocabulary * W * (not config.tied))")]),
    Answer(M, "two matrices in the MLP", [("mlp = 3 *", "mlp = 2 *")]),
    Answer(M, "percent", [("flops * tokens_per_s / peak", "100 * flops * tokens_per_s / peak")]),
    Answer(M, "scores of q·kᵀ alone", [("scores = 2 * W", "scores = W")]),
    Answer(M, "logits in every layer", [("(config.layers * (projections + scores + mlp) + config.vocabulary * W)", "config.layers * (projections + scores + mlp + config.vocabulary * W)")]),
    Answer(M, "scores of the key heads", [("scores = 2 * W *", "scores = 2 * kv_width *")]),
    Answer(M, "per sequence", [("flops * tokens_per_s / peak", "flops * length * tokens_per_s / peak")]),
    # Right answers, written differently.
    Answer(B, "three loops in one", [("samples = []\n        for _ in range(warmup + runs):", "samples = []\n        for number in range(-warmup, runs):"), ("            samples.append(1e3 * (clock() - started))", "            ended = clock()\n            if number >= 0:\n                samples.append((ended - started) * 1000)"), ("samples[warmup:]", "samples")], says=None),
    Answer(G, "a walk through moments", [("        total, reached = 0.0, float(\"-inf\")\n        for start, end in sorted((e[\"ts\"], e[\"ts\"] + e[\"dur\"]) for e in part):\n            total += max(0.0, end - max(start, reached))\n            reached = max(reached, end)\n        return total", "        moments = [(e[\"ts\"], 1) for e in part] + [(e[\"ts\"] + e[\"dur\"], -1) for e in part]\n        total, depth, before = 0.0, 0, 0.0\n        for moment, change in sorted(moments):\n            if depth:\n                total += moment - before\n            depth, before = depth + change, moment\n        return total")], says=None),
    Answer(O, "seconds, and a sorted list", [("flops, itemsize = max(inputs, default=(0, 0))", "flops, itemsize = sorted([(0, 0), *inputs])[-1]"), ("1e6 * moved / bandwidth, 1e6 * flops / peak", "moved / bandwidth * 1e6, flops / peak * 1e6")], says=None),
    Answer(P, "forgets the small norms", [(" + 2 * W) + W + V * W", ") + V * W")], says=None),
    Answer(S, "one tensor of flags", [("not all(gradient.isfinite().all() for gradient in gradients)", "not torch.cat([g.reshape(-1) for g in gradients]).isfinite().all()"), ("exact -= lr * (gradient.float() / scale)\n            weight.copy_(exact)", "exact.add_(gradient.float() / scale, alpha=-lr)\n            weight.data[...] = exact.half()"), ("    good_steps += 1\n    if good_steps == growth_interval:", "    good_steps += 1\n    if good_steps >= growth_interval:")], says=None),
    Answer(C, "by size", [("    segments = min(range(1, layers + 1), key=peak)\n    size, larger = divmod(layers, segments)\n    return [size + 1] * larger + [size] * (segments - larger)", "    best = min(range(1, layers + 1), key=lambda s: (s * kept + -(-layers // s) * inside, s))\n    cuts = [layers * i // best for i in range(best + 1)]\n    return [b - a for a, b in zip(cuts, cuts[1:])]")], says=None),
    Answer(M, "six times the weights", [("flops = 3 * forward", "flops = 6 * (config.layers * (2 * W**2 + 2 * W * kv_width + 3 * W * config.hidden + W * (length + 1)) + config.vocabulary * W)")], says=None),
    Answer("diagnose", "a piece belongs to the part during which it runs", [('r["ts"] <= launch["ts"] <', 'r["ts"] <= piece["ts"] <')], source=DIAGNOSE),
    Answer("diagnose", "any thread", [(' or launch["tid"] != r["tid"]', "")], source=DIAGNOSE),
    Answer("diagnose", "adds up durations", [("            busy += max(0.0, end - max(start, reached))\n", "            busy += end - start\n")], source=DIAGNOSE),
    Answer("diagnose", "slow by µs", [("parts[name][2])", "parts[name][1])")], source=DIAGNOSE),
    Answer("diagnose", "a name that comes again overwrites", [("total[0] += len", "total[0] = len"), ("total[1] += busy", "total[1] = busy"), ("total[2] += max", "total[2] = max")], source=DIAGNOSE),
    Answer("diagnose", "parts without launches left out", [('{r["name"]: [0, 0.0, 0.0] for r in ranges}', "{}"), ('totals[r["name"]]', 'totals.setdefault(r["name"], [0, 0.0, 0.0])')], source=DIAGNOSE),
    Answer("diagnose", "span of the CPU's range", [("max(end for _, end in mine) - min(start for start, _ in mine)", 'r["dur"]')], source=DIAGNOSE),
    Answer("diagnose", "names swapped", [('"waits" if parts', '"works" if parts'), ('else "works"', 'else "waits"')], source=DIAGNOSE),
    Answer("diagnose", "kernels alone", [('("kernel", "gpu_memcpy", "gpu_memset")', '("kernel",)')], source=DIAGNOSE),
    Answer("diagnose", "from nothing", says=None, source=DIAGNOSE),
]
