"""Answers to lab 03."""

from tests.unseen.answers import Answer

TUNE = '''
from labs_helpers.gemm.lab03.exercises import grid_search, prune
from labs_helpers.gemm.tuning.space import grid

def tune_silu(shapes, bench_of, chip, cache, key_of, budget):
    best = {}
    for M, N, K in shapes:
        key = key_of(M, N, K)
        config = cache.get(key)
        if config is None:
            bench = bench_of(M, N, K)
            candidates = prune(grid(), M, N, K, chip)[:budget]
            config, times = grid_search(candidates, bench.run, bench.expected, bench.bound, bench.measure)
            if config is not None:
                cache.put(key, config, times[config])
        best[M, N, K] = config
    return best
'''

LAST = "return tiles, count, left / at_once"
BUFFER = "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2"
KEEP = "kept[: min(20, 2 * len(configs) // 5)]"
ONE_TRY = '            try:\n                result = run(config)\n            except Exception:\n                continue\n'
SAMPLE = "random.Random(seed).sample(candidates, min(budget, len(candidates)))"
JOIN = '"|".join([kernel, digest, shape, "".join(kinds), dtype, gpu, triton])'
KINDS = '"1" if n == 1 else "d" if n % 16 == 0 else "n" for n in (M, N, K, *strides)'

ANSWERS = [
    Answer("resources", "elements, not bytes", [(BUFFER, "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K")], "float16 has two bytes"),
    Answer("resources", "float32 operands", [(BUFFER, "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 4")], "float16 has two bytes, not four"),
    Answer("resources", "D's tile instead of A and B", [(BUFFER, "config.BLOCK_M * config.BLOCK_N * 2")], "one buffer holds a tile of A and a tile of B,"),
    Answer("resources", "num_stages everywhere", [("config.num_stages - 1 if chip.capability < 90 else config.num_stages", "config.num_stages")], "from 80 on there are num_stages - 1 buffers,"),
    Answer("resources", "num_stages − 1 on an H100 as well", [("config.num_stages - 1 if chip.capability < 90 else config.num_stages", "config.num_stages - 1")], "on sm_90 wgmma reads shared memory itself, so"),
    Answer("resources", "pipeline on a T4", [("(buffers if chip.capability >= 80 else 1) * buffer", "buffers * buffer")], "without asynchronous copies there is one"),
    Answer("resources", "above 80 only", [("chip.capability >= 80", "chip.capability > 80")]),
    Answer("resources", "accumulators per warp", [("(32 * config.num_warps)", "config.num_warps")], "a warp has 32 threads"),
    Answer("resources", "64 lanes a warp", [("32 * config.num_warps", "64 * config.num_warps")], "a warp has 32 threads"),
    Answer("resources", "spills before too large", [("    if shared > chip", '    if accumulators > 255:\n        return shared, accumulators, "spills"\n    if shared > chip')], "shared memory comes first; a program that"),
    Answer("resources", "too large where it just fits", [("shared > chip", "shared >= chip")], "exactly the limit still fits"),
    Answer("resources", "spills at 255", [("accumulators > 255", "accumulators >= 255")], None),
    Answer("resources", "spills from 128", [("accumulators > 255", "accumulators > 127")], "128 accumulators leave room for addresses and"),
    Answer("resources", "threads by name", [("config.BLOCK_M * config.BLOCK_N // (32 * config.num_warps)", "(config.BLOCK_M * config.BLOCK_N) // 32 // config.num_warps")], None),
    Answer("waves", "floors the tiles", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "(M // config.BLOCK_M) * (N // config.BLOCK_N)")], "a partial tile is a tile too: round up"),
    Answer("waves", "ceil of the areas' ratio", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "-(-(M * N) // (config.BLOCK_M * config.BLOCK_N))")], "each of the two directions rounds up by"),
    Answer("waves", "M by BLOCK_N", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "-(-M // config.BLOCK_N) * -(-N // config.BLOCK_M)")], "BLOCK_M and BLOCK_N are swapped"),
    Answer("waves", "waves as a fraction", [("-(-tiles // at_once)\n", "tiles / at_once\n"), ("(count - 1)", "(tiles // at_once)")], "the number of waves is an integer: round up"),
    Answer("waves", "0 where the last wave is full", [("tiles - (count - 1) * at_once", "tiles % at_once")], r"a full last wave is 1\.0, although the remainder"),
    Answer("waves", "the share of places left empty", [("left / at_once", "1 - left / at_once")], "this counts the empty places"),
    Answer("waves", "tiles left, not a fraction", [("left / at_once", "left")], "return a fraction of the wave, not"),
    Answer("waves", "utilization of all waves", [("left / at_once", "tiles / (count * at_once)")], "this is the share of all places, not"),
    Answer("waves", "math.ceil", [("    tiles = -(-M", "    import math\n    tiles = -(-M"), ("-(-tiles // at_once)", "math.ceil(tiles / at_once)")], None),
    Answer("waves", "a zero turned to one", [("tiles - (count - 1) * at_once", "tiles % at_once or at_once")], None),
    Answer("prune", "keeps those that spill", [('verdict == "runs"', 'verdict != "too large"')], r"your function ignores the verdict of resources"),
    Answer("prune", "no floor for accumulators", [(" and accumulators >= 32", "")], None),
    Answer("prune", "no floor for the pipeline", [(" and shared >= 0.4 * chip.shared_bytes_per_block", "")], None),
    Answer("prune", "largest estimates first", [("key=lambda entry: entry[:2])", "key=lambda entry: entry[:2], reverse=True)")], "the order is reversed"),
    Answer("prune", "fewer accumulators first among equals", [("-accumulators, config))", "accumulators, config))")], "of equal estimates the one with fewer"),
    Answer("prune", "20 whatever the list", [(KEEP, "kept[:20]")], "the cut is at a fixed number; keep at most 40%"),
    Answer("prune", "40% of what was kept", [(KEEP, "kept[: min(20, 2 * len(kept) // 5)]")], None),
    Answer("prune", "40% without the 20", [(KEEP, "kept[: 2 * len(configs) // 5]")], None),
    Answer("prune", "tiles instead of waves", [("chip.multiprocessors)[1]", "chip.multiprocessors)[0]")], "a wave takes the same time however full it"),
    Answer("prune", "edges multiplied", [("32 * (config.BLOCK_M + config.BLOCK_N)", "32 * (config.BLOCK_M * config.BLOCK_N)")], r"the edges, 32 · \(BLOCK_M \+ BLOCK_N\), are"),
    Answer("prune", "edges left out", [(" + 32 * (config.BLOCK_M + config.BLOCK_N)", "")], r"the edges, 32 · \(BLOCK_M \+ BLOCK_N\), are"),
    Answer("prune", "two sorts", [("    kept.sort(key=lambda entry: entry[:2])", "    kept.sort(key=lambda entry: entry[1])\n    kept.sort(key=lambda entry: entry[0])")], None),
    Answer("grid_search", "times before it checks", [("            error = (", "            times[config] = measure(config)\n            error = ("), ("            if (error <= bound).all():\n                times[config] = measure(config)", "            if not (error <= bound).all():\n                times[config] = math.inf")], r"the comparison comes before measure\(config\)\."),
    Answer("grid_search", "catches RuntimeError only", [("except Exception:", "except RuntimeError:")], r"`except Exception` around run\(config\) catches"),
    Answer("grid_search", "a bare except eats the interrupt", [("            except Exception:", "            except BaseException:")], "KeyboardInterrupt is caught inside the loop,"),
    Answer("grid_search", "signed error", [(".abs()", "")], r"abs\(\) is missing, so a result that is too small"),
    Answer("grid_search", "any element within the bound", [("(error <= bound).all()", "(error <= bound).any()")], r"all elements must be within the bound, not any\."),
    Answer("grid_search", "NaN passes", [("if (error <= bound).all():", "if not (error > bound).any():")], "every comparison with NaN is False; test"),
    Answer("grid_search", "error in the result's dtype", [("(result.double() - expected)", "(result - expected.to(result.dtype))")], "the error is computed in the result's dtype,"),
    Answer("grid_search", "the slowest", [("min(times, key", "max(times, key")], r"the largest is taken, and that is math\.inf"),
    Answer("grid_search", "returns the time for best", [("return best if", "return times[best] if")], r"best is a configuration, not its time\."),
    Answer("grid_search", "best although all are inf", [("return best if best is not None and math.isfinite(times[best]) else None, times", "return best, times")], r"min\(\) also returns a configuration if all"),
    Answer("grid_search", "what failed is left out of times", [("            times[config] = math.inf\n", "")], r"a configuration that cannot run or is wrong must"),
    Answer("grid_search", "stops at the first that raises", [("                continue", "                break")], "the search ends at the first configuration that"),
    Answer("grid_search", "mean error against the bound", [("(error <= bound).all()", "(error.mean() <= bound.mean()).item()")], "a norm, mean or maximum over all elements says"),
    Answer("grid_search", "allclose-free with torch.all", [("(error <= bound).all()", "torch.all(error <= bound).item()"), ("    try:\n        for", "    import torch\n    try:\n        for")], None),
    Answer("random_search", "draws from everything", [("prune(configs, M, N, K, chip)", "list(configs)")], "your function draws from everything; draw from"),
    Answer("random_search", "the global generator", [(SAMPLE, "random.sample(candidates, min(budget, len(candidates)))")], r"draw with random\.Random\(seed\)\."),
    Answer("random_search", "seeds the global generator", [("    for config in " + SAMPLE, "    random.seed(seed)\n    for config in random.sample(candidates, min(budget, len(candidates)))")], r"random\.seed\(seed\) sets it for everyone;"),
    Answer("random_search", "with replacement", [(SAMPLE, "random.Random(seed).choices(candidates, k=min(budget, len(candidates)))")], "choice and choices draw with replacement;"),
    Answer("random_search", "budget larger than the candidates", [("min(budget, len(candidates))", "budget")], None),
    Answer("random_search", "the first of the pruned", [(SAMPLE, "candidates[:budget]")], "the first ones are taken instead of drawn"),
    Answer("random_search", "curve of times, not of the best", [("curve.append(fastest)", "curve.append(ms)")], r"it holds every time as it was measured\."),
    Answer("random_search", "curve written only when it improves", [("        curve.append(fastest)", "            curve.append(fastest)")], "it has one entry per improvement"),
    Answer("random_search", "best is a time", [("return best, curve", "return fastest, curve")], r"best is a configuration, not its time\."),
    Answer("random_search", "keeps the slowest", [("fastest, curve = None, math.inf", "fastest, curve = None, 0.0"), ("ms < fastest", "ms > fastest")], r"it is the slowest\."),
    Answer("random_search", "seed ignored", [("random.Random(seed)", "random.Random(0)")], "the seed is not used"),
    Answer("random_search", "shuffles a copy", [("    for config in " + SAMPLE, "    random.Random(seed).shuffle(candidates)\n    for config in candidates[:budget]")], None),
    Answer("cache_key", "Python's hash of the source", [("hashlib.sha256(source.encode()).hexdigest()[:12]", "str(hash(source))")], r"hash\(\) of a text differs from process to"),
    Answer("cache_key", "no source", [("[kernel, digest, shape", "[kernel, shape")], r"`source` is not in the key\."),
    Answer("cache_key", "no Triton version", [("gpu, triton]", "gpu]")], r"`triton` is not in the key\."),
    Answer("cache_key", "bucket below: bit_length of size", [("(size - 1).bit_length()", "size.bit_length()")], "a power of two belongs to its own bucket, 33"),
    Answer("cache_key", "shapes as they are", [("1 << (size - 1).bit_length() for size in (M, N, K)", "size for size in (M, N, K)")], "the exact size is in the key, so the cache"),
    Answer("cache_key", "one bucket for M·N·K", [("1 << (size - 1).bit_length() for size in (M, N, K)", "1 << (M * N * K - 1).bit_length()")], "the three buckets are multiplied; put each"),
    Answer("cache_key", "kinds of the strides only", [("(M, N, K, *strides)", "strides")], r"the kinds of M, N and K are not in the key\."),
    Answer("cache_key", "strides as they are", [('"".join(kinds)', '"".join(kinds) + str(strides)')], "the strides themselves are in the key; their"),
    Answer("cache_key", "1 not told from the rest", [('"1" if n == 1 else ', "")], "a stride of 1 needs its own kind, besides"),
    Answer("cache_key", "multiples of 8", [("n % 16", "n % 8")], r"a multiple of 8 counts as a multiple of 16\."),
    Answer("cache_key", "sorted buckets", [("map(str, buckets)", "map(str, sorted(buckets))")], "the buckets are sorted; M, N and K each need"),
    Answer("cache_key", "nothing between buckets", [('"x".join', '"".join')], None),
    Answer("cache_key", "buckets by loop and a colon", [("    digest", "    buckets = []\n    for size in (M, N, K):\n        bucket = 1\n        while bucket < size:\n            bucket *= 2\n        buckets.append(bucket)\n    digest"), ('"|".join', '" : ".join')], None),
    Answer("tune_silu", "never asks the cache", [("config = cache.get(key)", "config = None")], r"cache\.get\(key\) comes first\.", TUNE),
    Answer("tune_silu", "never puts", [("cache.put(key, config, times[config])", "pass")], r"cache\.put\(key, config, ms\) is missing, or", TUNE),
    Answer("tune_silu", "puts None", [("            if config is not None:\n                cache.put(key, config, times[config])", "            cache.put(key, config, times.get(config))")], r"cache\.put takes \(key, config, ms\), and ms is", TUNE),
    Answer("tune_silu", "ignores the budget", [("[:budget]", "")], "the grid is not pruned, or not cut at the", TUNE),
    Answer("tune_silu", "no pruning", [("prune(grid(), M, N, K, chip)[:budget]", "grid()[:budget]")], "pruned for another shape or chip, or the most", TUNE),
    Answer("tune_silu", "returns only what was measured", [("        best[M, N, K] = config", "            best[M, N, K] = config")], "2 of 2 shapes are missing: a return ends", TUNE),
    Answer("tune_silu", "prunes for the first shape", [("prune(grid(), M, N, K, chip)", "prune(grid(), *shapes[0], chip)")], r"were pruned for another shape; prune for each", TUNE),
]
