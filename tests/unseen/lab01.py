"""Answers to lab 01 that were written without knowledge of its checks."""

from tests.unseen.answers import Answer

B, G, W, P, S, C, M = "benchmark", "gpu_time", "bound_by", "peak_bytes", "scaled_update", "place_checkpoints", "mfu"

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
    Answer(B, "no wait before the clock starts", [("            synchronize()\n            started", "            started")], says="the time includes work that was queued"),
    Answer(B, "no wait before the clock stops", [("            phase(ready)\n            synchronize()\n", "            phase(ready)\n")], says="the clock stops while the GPU is still"),
    Answer(B, "warm-up rounds count", [("samples[warmup:]", "samples")], says="warm-up rounds count, in which functions are"),
    Answer(B, "keeps the first rounds", [("samples[warmup:]", "samples[:runs]")], says="warm-up rounds count, in which functions are"),
    Answer(B, "no ms", [("1e3 * (clock() - started)", "clock() - started")], says="it is in seconds, not in ms"),
    Answer(B, "spread in ms", [("float((p80 - p20) / median)", "float(p80 - p20)")], says="it is not divided by the median"),
    Answer(B, "mean as median", [("p20, median, p80 = numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))", "p20, median, p80 = numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))\n        median = numpy.mean(samples[warmup:])")], says="this is the mean: one slow round moves it"),
    Answer(B, "backward with its forward pass", [("timed(model.forward, model.backward)", "timed(lambda: None, lambda _: model.backward(model.forward()))")], says="it includes forward"),
    Answer(B, "step waits before its update", [("        model.update()", "        synchronize()\n        model.update()")], says="your round waits between its phases, and"),
    Answer(B, "step is the sum of its phases", [('timed(lambda: None, step)', 'tuple(a + b for a, b in zip(timings["forward"], timings["backward"]))')], says="it is the sum of forward and backward,"),
    Answer(B, "one loss for all backward rounds", [('    timings["backward"] = timed(model.forward, model.backward)', '    loss = model.forward()\n    timings["backward"] = timed(lambda: loss, model.backward)')], says="a loss can go backward only once: before"),
    Answer(G, "adds up durations", [("        for start, end in sorted((e[\"ts\"], e[\"ts\"] + e[\"dur\"]) for e in part):\n            total += max(0.0, end - max(start, reached))\n            reached = max(reached, end)\n        return total", "        return sum(e[\"dur\"] for e in part)")], says="overlapping work was added up: count it"),
    Answer(G, "the GPU's time is the whole", [('max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)', 'max(e["ts"] + e["dur"] for e in timed if e["cat"] == "kernel") - min(e["ts"] for e in timed if e["cat"] == "kernel")')], says="the trace's time runs from the GPU's first"),
    Answer(G, "no memset", [('("kernel", "gpu_memcpy", "gpu_memset")', '("kernel", "gpu_memcpy")')], says=r"memsets \(gpu_memset\) are work too"),
    Answer(G, "nested intervals move the end back", [("reached = max(reached, end)", "reached = end")], says="an interval may lie inside an earlier one:"),
    Answer(G, "exposed is all communication", [("(busy - covered(others)) / whole", "covered([e for e in work if e not in others]) / whole")], says="all communication was counted; exposed is"),
    Answer(G, "copies count as launches", [('sum(e["cat"] == "kernel" for e in work)', "len(work)")], says="copies and memsets are not kernels"),
    Answer(G, "sorts the caller's list", [("    timed = [", '    events.sort(key=lambda e: e.get("ts", 0))\n    timed = [')], says=r"events\.sort\(\) sorts that list in place"),
    Answer(G, "percent", [("busy / whole, (busy", "100 * busy / whole, 100 * (busy")], says="return a share from 0 to 1, not a percentage"),
    Answer(G, "a name that has nccl in it", [('e["name"].startswith("nccl")', '"nccl" in e["name"]')], says='a name must begin with "nccl": kernels with'),
    Answer(G, "the last start ends the trace", [('max(e["ts"] + e["dur"] for e in timed)', 'max(e["ts"] for e in timed)')], says=r"the trace's time ends at the largest ts \+"),
    Answer(W, "one FLOP per multiplication and addition", [("flops = 2 * math.prod", "flops = math.prod")], says="a product multiplies and adds: 2 · M · N · K"),
    Answer(W, "nothing is written", [(" for elements, itemsize in inputs) + written", " for elements, itemsize in inputs)")], says="the result is written too"),
    Answer(W, "the product is float32", [("M * N * inputs[0][1]", "M * N * 4")]),
    Answer(W, "a FLOP per element of every input", [("        flops, itemsize = max(inputs, default=(0, 0))\n        written = flops * itemsize", "        elements, itemsize = max(inputs, default=(0, 0))\n        written = elements * itemsize\n        flops = sum(n for n, _ in inputs)")], says="one FLOP per element of the largest input,"),
    Answer(W, "no input left", [("max(inputs, default=(0, 0))", "max(inputs)")], says="without inputs, bytes and FLOPs are 0: use"),
    Answer(W, "numbers are inputs", [("if shape and kind in ITEMSIZE", "if kind in ITEMSIZE")], says=r"an entry with shape \[\] is not an input and"),
    Answer(W, "neither reports no share", [('return "neither", share', 'return "neither", 0.0')], says="return the share that was reached"),
    Answer(W, "written without the batch", [("written = math.prod(batch) * M * N", "written = M * N")], says="every matrix of the batch counts: count the"),
    Answer(W, "names swapped", [('"bytes" if at_bytes > at_flops else "FLOPs"', '"FLOPs" if at_bytes > at_flops else "bytes"')], says="the bound is whichever takes longer at its roof"),
    Answer(W, "the sum of both times", [("max(at_bytes, at_flops) / us", "(at_bytes + at_flops) / us")], says="the two times were added: bytes move while"),
    Answer(W, "only mm is a product", [('("aten::mm", "aten::bmm")', '("aten::mm",)')], says="for a product, count 2 · M · N · K FLOPs and"),
    Answer(P, "an output also where tied", [("V * W * (2 - config.tied)", "V * W * 2")], says="a tied output is the embedding and adds no"),
    Answer(P, "one moment", [("states = 3 * itemsize", "states = 2 * itemsize")], says="AdamW keeps two moments per parameter"),
    Answer(P, "a mask per sequence", [("+ length**2 + 4 * scores", "+ batch * config.heads * length**2 + 4 * scores")], says="a layer's mask serves all heads and"),
    Answer(P, "scores of one sequence", [("scores = batch * config.heads", "scores = config.heads")], says="every sequence of the batch has its own"),
    Answer(P, "rounded in float32 too", [("0 if itemsize == 4 else itemsize * scores", "itemsize * scores")], says="in float32 the probabilities are kept only"),
    Answer(P, "log-softmax without its gradients", [("3 * 4 * tokens * V", "4 * tokens * V")], says="the loss's softmax needs three tensors as"),
    Answer(P, "no temporary in the update", [("5 * itemsize * parameters)", "4 * itemsize * parameters)")], says="the update also needs a temporary as large"),
    Answer(P, "two matrices in the MLP", [("3 * W * F", "2 * W * F")], says="SwiGLU has three matrices W × F"),
    Answer(P, "adds the points", [("return max(states + loss, states + softmax, 5 * itemsize * parameters)", "return states + loss + softmax")]),
    Answer(P, "no gradient in the softmax", [("above + 2 * 4 * scores", "above")], says="the last layer's softmax is left out: it is"),
    Answer(S, "checks each gradient as it goes", [("    if not all(gradient.isfinite().all() for gradient in gradients):\n        return scale / 2, 0\n", ""), ("            exact -= lr", "            if not gradient.isfinite().all():\n                return scale / 2, 0\n            exact -= lr")], says="skip the whole step: test all gradients"),
    Answer(S, "NaN alone", [("not all(gradient.isfinite().all() for", "any(gradient.isnan().any() for")], says=r"inf is not NaN: use isfinite\(\)"),
    Answer(S, "divides in float16", [("(gradient.float() / scale)", "(gradient / scale).float()")], says="lr · gradient / scale is computed in"),
    Answer(S, "the weight loses it in float16", [("            weight.copy_(exact)", "            weight -= (lr * gradient.float() / scale).half()")], says="the weights must be the rounded masters"),
    Answer(S, "a skip keeps the count", [("return scale / 2, 0", "return scale / 2, good_steps")], says="count good steps in a row: start again from"),
    Answer(S, "the count goes on after growth", [("return scale * 2, 0", "return scale * 2, good_steps")], says="after the scale grows, the count starts again from 0"),
    Answer(S, "a step late", [("good_steps == growth_interval", "good_steps > growth_interval")], says="this step is a good one too: count it before"),
    Answer(S, "divides the gradients in place", [("(gradient.float() / scale)", "gradient.div_(scale).float()")], says=r"gradient\.div_\(\) and `gradient /= …` change"),
    Answer(S, "rebinds the weight", [("weight.copy_(exact)", "weight = exact.half()")], says="the given weights did not change: write to"),
    Answer(S, "scale forgotten", [("(gradient.float() / scale)", "gradient.float()")], says="the gradient belongs to scale times the"),
    Answer(S, "weights come out of the old master", [("            exact -= lr * (gradient.float() / scale)\n            weight.copy_(exact)", "            weight.copy_(exact)\n            exact -= lr * (gradient.float() / scale)")], says="the weights are written before the masters"),
    Answer(C, "rounds down", [("-(-layers // segments)", "layers // segments")], says="round layers / segments up: the largest"),
    Answer(C, "the root of the formula", [("min(range(1, layers + 1), key=peak)", "max(1, min(layers, round((layers * inside / kept) ** 0.5)))")], says="the root is the best real number; another"),
    Answer(C, "the last takes the rest", [("[size + 1] * larger + [size] * (segments - larger)", "[size] * (segments - 1) + [size + larger]")], says="give the remaining layers to the first"),
    Answer(C, "drops the rest", [("[size + 1] * larger + [size] * (segments - larger)", "[size] * segments")], says="the remainder, layers % segments, is lost"),
    Answer(C, "never one per layer", [("range(1, layers + 1)", "range(1, layers)")], says=r"one layer allows one segment: use range\(1"),
    Answer(C, "most segments of equal peaks", [("range(1, layers + 1)", "range(layers, 0, -1)")], says="of several numbers with the lowest peak, use"),
    Answer(C, "kept and inside swapped", [("segments * kept + -(-layers // segments) * inside", "segments * inside + -(-layers // segments) * kept")], says="kept and inside are swapped"),
    Answer(C, "only divisors", [("range(1, layers + 1)", "[s for s in range(1, layers + 1) if layers % s == 0]")], says="segments may differ in size: the number"),
    Answer(C, "all the insides", [("-(-layers // segments) * inside", "layers * inside / segments")], says="round layers / segments up: the largest"),
    Answer(M, "backward costs as much as forward", [("3 * forward", "2 * forward")], says="forward and backward are three times the"),
    Answer(M, "one FLOP per multiplication and addition", [("forward = 2 * (", "forward = (")], says="a multiplication and its addition are two"),
    Answer(M, "k and v as wide as q", [("config.width // config.heads * config.kv_heads", "config.width")], says="k and v have kv_heads heads: their matrices"),
    Answer(M, "all scores", [("(length + 1) / 2", "length")], says="a token attends to itself and to those"),
    Answer(M, "no logits where tied", [("config.vocabulary * W)", "config.vocabulary * W * (not config.tied))")], says="the logits multiply by V × W, whether tied or not"),
    Answer(M, "two matrices in the MLP", [("mlp = 3 *", "mlp = 2 *")], says="the MLP has three matrices: gate, up and"),
    Answer(M, "percent", [("flops * tokens_per_s / peak", "100 * flops * tokens_per_s / peak")], says="return a share from 0 to 1, not a percentage"),
    Answer(M, "scores of q·kᵀ alone", [("scores = 2 * W", "scores = W")], says="q·kᵀ and p·v are two products"),
    Answer(M, "logits in every layer", [("(config.layers * (projections + scores + mlp) + config.vocabulary * W)", "config.layers * (projections + scores + mlp + config.vocabulary * W)")], says="the logits are computed once, not by each"),
    Answer(M, "scores of the key heads", [("scores = 2 * W *", "scores = 2 * kv_width *")], says="each of the `heads` query heads has its own"),
    Answer(M, "per sequence", [("flops * tokens_per_s / peak", "flops * length * tokens_per_s / peak")], says="tokens_per_s already includes the sequence's"),
    # Right answers, written differently.
    Answer(B, "three loops in one", [("samples = []\n        for _ in range(warmup + runs):", "samples = []\n        for number in range(-warmup, runs):"), ("            samples.append(1e3 * (clock() - started))", "            ended = clock()\n            if number >= 0:\n                samples.append((ended - started) * 1000)"), ("samples[warmup:]", "samples")], says=None),
    Answer(G, "a walk through moments", [("        total, reached = 0.0, float(\"-inf\")\n        for start, end in sorted((e[\"ts\"], e[\"ts\"] + e[\"dur\"]) for e in part):\n            total += max(0.0, end - max(start, reached))\n            reached = max(reached, end)\n        return total", "        moments = [(e[\"ts\"], 1) for e in part] + [(e[\"ts\"] + e[\"dur\"], -1) for e in part]\n        total, depth, before = 0.0, 0, 0.0\n        for moment, change in sorted(moments):\n            if depth:\n                total += moment - before\n            depth, before = depth + change, moment\n        return total")], says=None),
    Answer(W, "seconds, and a sorted list", [("flops, itemsize = max(inputs, default=(0, 0))", "flops, itemsize = sorted([(0, 0), *inputs])[-1]"), ("1e6 * moved / bandwidth, 1e6 * flops / peak", "moved / bandwidth * 1e6, flops / peak * 1e6")], says=None),
    Answer(P, "forgets the small norms", [(" + 2 * W) + W + V * W", ") + V * W")], says=None),
    Answer(S, "one tensor of flags", [("not all(gradient.isfinite().all() for gradient in gradients)", "not torch.cat([g.reshape(-1) for g in gradients]).isfinite().all()"), ("exact -= lr * (gradient.float() / scale)\n            weight.copy_(exact)", "exact.add_(gradient.float() / scale, alpha=-lr)\n            weight.data[...] = exact.half()"), ("    good_steps += 1\n    if good_steps == growth_interval:", "    good_steps += 1\n    if good_steps >= growth_interval:")], says=None),
    Answer(C, "by size", [("    segments = min(range(1, layers + 1), key=peak)\n    size, larger = divmod(layers, segments)\n    return [size + 1] * larger + [size] * (segments - larger)", "    best = min(range(1, layers + 1), key=lambda s: (s * kept + -(-layers // s) * inside, s))\n    cuts = [layers * i // best for i in range(best + 1)]\n    return [b - a for a, b in zip(cuts, cuts[1:])]")], says=None),
    Answer(M, "six times the weights", [("flops = 3 * forward", "flops = 6 * (config.layers * (2 * W**2 + 2 * W * kv_width + 3 * W * config.hidden + W * (length + 1)) + config.vocabulary * W)")], says=None),
    Answer("diagnose", "a piece belongs to the part during which it runs", [('r["ts"] <= launch["ts"] <', 'r["ts"] <= piece["ts"] <')], says="a piece belongs to the part that launched", source=DIAGNOSE),
    Answer("diagnose", "any thread", [(' or launch["tid"] != r["tid"]', "")], says="another thread's launches do not belong to", source=DIAGNOSE),
    Answer("diagnose", "adds up durations", [("            busy += max(0.0, end - max(start, reached))\n", "            busy += end - start\n")], says="pieces that run at the same time were added", source=DIAGNOSE),
    Answer("diagnose", "slow by µs", [("parts[name][2])", "parts[name][1])")], says="you chose the largest µs; waits count too", source=DIAGNOSE),
    Answer("diagnose", "a name that comes again overwrites", [("total[0] += len", "total[0] = len"), ("total[1] += busy", "total[1] = busy"), ("total[2] += max", "total[2] = max")], says="a part may occur again: add to its totals", source=DIAGNOSE),
    Answer("diagnose", "parts without launches left out", [('{r["name"]: [0, 0.0, 0.0] for r in ranges}', "{}"), ('totals[r["name"]]', 'totals.setdefault(r["name"], [0, 0.0, 0.0])')], says="include parts that launched nothing, with", source=DIAGNOSE),
    Answer("diagnose", "span of the CPU's range", [("max(end for _, end in mine) - min(start for start, _ in mine)", 'r["dur"]')], says="span is on the GPU, from the first piece's", source=DIAGNOSE),
    Answer("diagnose", "names swapped", [('"waits" if parts', '"works" if parts'), ('else "works"', 'else "waits"')], says="it waits (only )?if its µs are less than half", source=DIAGNOSE),
    Answer("diagnose", "kernels alone", [('("kernel", "gpu_memcpy", "gpu_memset")', '("kernel",)')], says="copies and memsets are pieces of GPU work", source=DIAGNOSE),
    Answer("diagnose", "from nothing", says=None, source=DIAGNOSE),
    # The second round.
    Answer(B, "divides by 1e3", [("1e3 * (clock() - started)", "(clock() - started) / 1e3")], says=r"clock\(\) returns seconds: multiply by 1,000"),
    Answer(B, "warmup once for all phases", [("range(warmup + runs)", "range(runs)"), ("samples[warmup:]", "samples"), ("    timings[\"forward\"]", "    for _ in range(warmup):\n        step(None)\n    timings[\"forward\"]")], says=None),
    Answer(B, "one list for all phases", [("        samples = []\n", ""), ("    def timed(", "    samples = []\n\n    def timed(")], says="the rounds of earlier phases count too: use"),
    Answer(B, "spread over the interquartile range", [("(0.2, 0.5, 0.8)", "(0.25, 0.5, 0.75)")], says="it is the difference between other"),
    Answer(B, "spread is the standard deviation", [("float((p80 - p20) / median)", "float(numpy.std(samples[warmup:]) / median)")], says="it is the standard deviation"),
    Answer(B, "tuple of three", [("    return timings\n", "    return tuple(timings.values())\n")], says="a dict with the keys"),
    Answer(B, "starts the clock before preparing", [("            ready = prepare()\n            synchronize()\n            started = clock()\n", "            synchronize()\n            started = clock()\n            ready = prepare()\n")], says="it includes forward"),
    Answer(B, "defaults in place of what is asked", [("range(warmup + runs)", "range(12)"), ("samples[warmup:]", "samples[3:]")], says="fewer than `runs` rounds count"),
    Answer(G, "loses labels without dur by dropping names", [('[e for e in events if e["ph"] == "X"]', "events")], says='only events with "ph" == "X" have a'),
    Answer(G, "total over streams separately", [("    busy = covered(work)\n", '    streams = {e.get("tid") for e in work}\n    busy = sum(covered([e for e in work if e.get("tid") == s]) for s in streams)\n')], says="overlapping work was added up: count it"),
    Answer(G, "idle share", [("busy / whole, (busy", "1 - busy / whole, (busy")], says="this is the idle share; busy is the rest"),
    Answer(G, "waits between first and last kernel left out of exposed", [("(busy - covered(others)) / whole", "(busy - covered(others)) / busy")], says="return the share of the trace's time, not of"),
    Answer(G, "memory copies communicate", [('if e["cat"] != "kernel" or not', 'if e["cat"] == "kernel" and not')], says="copies and memsets are not communication"),
    Answer(W, "zip stops at inputs that count", [('"aten::bmm"):\n        (*batch, M, K), N = shapes[0], shapes[1][-1]', '"aten::bmm"):\n        (*batch, M, K), N = shapes[0], shapes[1][-2]')]),
    Answer(W, "bytes of the smallest", [("max(inputs, default=(0, 0))", "min(inputs, default=(0, 0))")], says="the result is like the largest input: the"),
    Answer(W, "share capped at 1", [("max(at_bytes, at_flops) / us", "min(1.0, max(at_bytes, at_flops) / us)")], says="share may exceed 1 if a cache serves the"),
    Answer(W, "ms for µs", [("1e6 * moved / bandwidth, 1e6 * flops / peak", "1e3 * moved / bandwidth, 1e3 * flops / peak")], says="us is in µs, not in ms"),
    Answer(W, "returns the share alone", [('return "bytes" if at_bytes > at_flops else "FLOPs", share', "return share")], says=r"expected \(bound, share\)"),
    Answer(W, "neither below 30", [("share < 0.3", "share < 30")], says=r'a share of 0\.3 or more is not "neither"'),
    Answer(P, "forgets gradients of the update", [("5 * itemsize * parameters)", "states)")], says="the update, or its gradients, are left out"),
    Answer(P, "kept activations in itemsize throughout", [("tokens * W * (4 + 2 * itemsize)", "tokens * W * 3 * itemsize"), ("4 * scores", "itemsize * scores")]),
    Answer(P, "in GB", [("return max(states", "return 1e-9 * max(states")], says="return bytes"),
    Answer(P, "q, k and v are one", [("3 * itemsize * tokens * W", "itemsize * tokens * W")], says="q, k and v are kept, each W wide"),
    Answer(P, "first layer's softmax", [("(config.layers - 1) * layer + above", "above")], says="during the last layer's softmax, the layers"),
    Answer(P, "gradients at every point", [("states = 3 *", "states = 4 *")], says="the backward pass begins without gradients:"),
    Answer(S, "scale grows without end of count", [("    good_steps += 1\n", "")], says="the good step is not counted"),
    Answer(S, "scale and count exchanged", [("    return scale, good_steps", "    return good_steps, scale")], says=r"the scale comes first in \(scale, good_steps\)"),
    Answer(S, "skips only what overflows", [("    if not all(gradient.isfinite().all() for gradient in gradients):\n        return scale / 2, 0\n", "    if not all(gradient.isfinite().all() for gradient in gradients):\n        gradients = [g.nan_to_num(0, 0, 0) for g in gradients]\n        scale = scale / 2\n        good_steps = -1\n")]),
    Answer(S, "any finite is enough", [("not all(gradient.isfinite().all()", "not any(gradient.isfinite().all()")], says="nothing tests whether all gradients are"),
    Answer(S, "adds", [("exact -= lr", "exact += lr")], says="weights move against the gradient: subtract"),
    Answer(S, "new master", [("exact -= lr * (gradient.float() / scale)", "exact = exact - lr * (gradient.float() / scale)")], says="the given masters did not change: use `-=`"),
    Answer(S, "grows by 1.5, as some libraries", [("return scale * 2, 0", "return scale * 1.5, 0")], says="the scale doubles"),
    Answer(C, "number of segments", [("    return [size + 1] * larger + [size] * (segments - larger)", "    return segments")], says="; return a list of sizes"),
    Answer(C, "highest peak", [("segments = min(", "segments = max(")], says="you chose the number with the highest peak"),
    Answer(C, "sizes one too many", [("range(1, layers + 1)", "range(1, layers + 2)")], says=None),
    Answer(C, "inputs of all layers", [("segments * kept +", "layers * kept +")], says="you use one segment per layer, as if `kept`"),
    Answer(M, "6 · parameters", [("flops = 3 * forward", "flops = 6 * (config.layers * (projections + mlp) + config.vocabulary * W)")], says="q·kᵀ and p·v are products too"),
    Answer(M, "heads for kv_heads", [("config.heads * config.kv_heads", "config.kv_heads * config.heads")]),
    Answer(M, "swapped", [("return flops, flops * tokens_per_s / peak", "return flops * tokens_per_s / peak, flops")], says="the function returns the right parts in the wrong order"),
    Answer(M, "TFLOP", [("return flops, flops", "return flops / 1e12, flops")]),
    Answer(M, "output projection left out", [("projections = 2 * W * W", "projections = W * W")], says="attention's output is a product too, W × W"),
]
