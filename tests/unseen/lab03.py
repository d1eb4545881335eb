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
    Answer("resources", "elements, not bytes", [(BUFFER, "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K")]),
    Answer("resources", "float32 operands", [(BUFFER, "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 4")]),
    Answer("resources", "D's tile instead of A and B", [(BUFFER, "config.BLOCK_M * config.BLOCK_N * 2")]),
    Answer("resources", "num_stages everywhere", [("config.num_stages - 1 if chip.capability < 90 else config.num_stages", "config.num_stages")]),
    Answer("resources", "num_stages − 1 on an H100 as well", [("config.num_stages - 1 if chip.capability < 90 else config.num_stages", "config.num_stages - 1")]),
    Answer("resources", "pipeline on a T4", [("(buffers if chip.capability >= 80 else 1) * buffer", "buffers * buffer")]),
    Answer("resources", "above 80 only", [("chip.capability >= 80", "chip.capability > 80")]),
    Answer("resources", "accumulators per warp", [("(32 * config.num_warps)", "config.num_warps")]),
    Answer("resources", "64 lanes a warp", [("32 * config.num_warps", "64 * config.num_warps")]),
    Answer("resources", "spills before too large", [("    if shared > chip", '    if accumulators > 255:\n        return shared, accumulators, "spills"\n    if shared > chip')]),
    Answer("resources", "too large where it just fits", [("shared > chip", "shared >= chip")]),
    Answer("resources", "spills at 255", [("accumulators > 255", "accumulators >= 255")]),
    Answer("resources", "spills from 128", [("accumulators > 255", "accumulators > 127")]),
    Answer("resources", "threads by name", [("config.BLOCK_M * config.BLOCK_N // (32 * config.num_warps)", "(config.BLOCK_M * config.BLOCK_N) // 32 // config.num_warps")], None),
    Answer("waves", "floors the tiles", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "(M // config.BLOCK_M) * (N // config.BLOCK_N)")]),
    Answer("waves", "ceil of the areas' ratio", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "-(-(M * N) // (config.BLOCK_M * config.BLOCK_N))")]),
    Answer("waves", "M by BLOCK_N", [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "-(-M // config.BLOCK_N) * -(-N // config.BLOCK_M)")]),
    Answer("waves", "waves as a fraction", [("-(-tiles // at_once)\n", "tiles / at_once\n"), ("(count - 1)", "(tiles // at_once)")]),
    Answer("waves", "0 where the last wave is full", [("tiles - (count - 1) * at_once", "tiles % at_once")]),
    Answer("waves", "the share of places left empty", [("left / at_once", "1 - left / at_once")]),
    Answer("waves", "tiles left, not a fraction", [("left / at_once", "left")]),
    Answer("waves", "utilisation of all waves", [("left / at_once", "tiles / (count * at_once)")]),
    Answer("waves", "math.ceil", [("    tiles = -(-M", "    import math\n    tiles = -(-M"), ("-(-tiles // at_once)", "math.ceil(tiles / at_once)")], None),
    Answer("waves", "a zero turned to one", [("tiles - (count - 1) * at_once", "tiles % at_once or at_once")], None),
    Answer("prune", "keeps those that spill", [('verdict == "runs"', 'verdict != "too large"')]),
    Answer("prune", "no floor for accumulators", [(" and accumulators >= 32", "")]),
    Answer("prune", "no floor for the pipeline", [(" and shared >= 0.4 * chip.shared_bytes_per_block", "")]),
    Answer("prune", "largest estimates first", [("key=lambda entry: entry[:2])", "key=lambda entry: entry[:2], reverse=True)")]),
    Answer("prune", "fewer accumulators first among equals", [("-accumulators, config))", "accumulators, config))")]),
    Answer("prune", "20 whatever the list", [(KEEP, "kept[:20]")]),
    Answer("prune", "40% of what was kept", [(KEEP, "kept[: min(20, 2 * len(kept) // 5)]")]),
    Answer("prune", "40% without the 20", [(KEEP, "kept[: 2 * len(configs) // 5]")]),
    Answer("prune", "tiles instead of waves", [("chip.multiprocessors)[1]", "chip.multiprocessors)[0]")]),
    Answer("prune", "edges multiplied", [("32 * (config.BLOCK_M + config.BLOCK_N)", "32 * (config.BLOCK_M * config.BLOCK_N)")]),
    Answer("prune", "edges left out", [(" + 32 * (config.BLOCK_M + config.BLOCK_N)", "")]),
    Answer("prune", "two sorts", [("    kept.sort(key=lambda entry: entry[:2])", "    kept.sort(key=lambda entry: entry[1])\n    kept.sort(key=lambda entry: entry[0])")], None),
    Answer("grid_search", "times before it checks", [("            error = (", "            times[config] = measure(config)\n            error = ("), ("            if (error <= bound).all():\n                times[config] = measure(config)", "            if not (error <= bound).all():\n                times[config] = math.inf")]),
    Answer("grid_search", "catches RuntimeError only", [("except Exception:", "except RuntimeError:")]),
    Answer("grid_search", "a bare except eats the interrupt", [("            except Exception:", "            except BaseException:")]),
    Answer("grid_search", "signed error", [(".abs()", "")]),
    Answer("grid_search", "any element within the bound", [("(error <= bound).all()", "(error <= bound).any()")]),
    Answer("grid_search", "NaN passes", [("if (error <= bound).all():", "if not (error > bound).any():")]),
    Answer("grid_search", "error in the result's dtype", [("(result.double() - expected)", "(result - expected.to(result.dtype))")]),
    Answer("grid_search", "the slowest", [("min(times, key", "max(times, key")]),
    Answer("grid_search", "returns the time for best", [("return best if", "return times[best] if")]),
    Answer("grid_search", "best although all are inf", [("return best if best is not None and math.isfinite(times[best]) else None, times", "return best, times")]),
    Answer("grid_search", "what failed is left out of times", [("            times[config] = math.inf\n", "")]),
    Answer("grid_search", "stops at the first that raises", [("                continue", "                break")]),
    Answer("grid_search", "mean error against the bound", [("(error <= bound).all()", "(error.mean() <= bound.mean()).item()")]),
    Answer("grid_search", "allclose-free with torch.all", [("(error <= bound).all()", "torch.all(error <= bound).item()"), ("    try:\n        for", "    import torch\n    try:\n        for")], None),
    Answer("random_search", "draws from everything", [("prune(configs, M, N, K, chip)", "list(configs)")]),
    Answer("random_search", "the global generator", [(SAMPLE, "random.sample(candidates, min(budget, len(candidates)))")]),
    Answer("random_search", "seeds the global generator", [("    for config in " + SAMPLE, "    random.seed(seed)\n    for config in random.sample(candidates, min(budget, len(candidates)))")]),
    Answer("random_search", "with replacement", [(SAMPLE, "random.Random(seed).choices(candidates, k=min(budget, len(candidates)))")]),
    Answer("random_search", "budget larger than the candidates", [("min(budget, len(candidates))", "budget")]),
    Answer("random_search", "the first of the pruned", [(SAMPLE, "candidates[:budget]")]),
    Answer("random_search", "curve of times, not of the best", [("curve.append(fastest)", "curve.append(ms)")]),
    Answer("random_search", "curve written only when it improves", [("        curve.append(fastest)", "            curve.append(fastest)")]),
    Answer("random_search", "best is a time", [("return best, curve", "return fastest, curve")]),
    Answer("random_search", "keeps the slowest", [("fastest, curve = None, math.inf", "fastest, curve = None, 0.0"), ("ms < fastest", "ms > fastest")]),
    Answer("random_search", "seed ignored", [("random.Random(seed)", "random.Random(0)")]),
    Answer("random_search", "shuffles a copy", [("    for config in " + SAMPLE, "    random.Random(seed).shuffle(candidates)\n    for config in candidates[:budget]")], None),
    Answer("cache_key", "Python's hash of the source", [("hashlib.sha256(source.encode()).hexdigest()[:12]", "str(hash(source))")]),
    Answer("cache_key", "no source", [("[kernel, digest, shape", "[kernel, shape")]),
    Answer("cache_key", "no Triton version", [("gpu, triton]", "gpu]")]),
    Answer("cache_key", "bucket below: bit_length of size", [("(size - 1).bit_length()", "size.bit_length()")]),
    Answer("cache_key", "shapes as they are", [("1 << (size - 1).bit_length() for size in (M, N, K)", "size for size in (M, N, K)")]),
    Answer("cache_key", "one bucket for M·N·K", [("1 << (size - 1).bit_length() for size in (M, N, K)", "1 << (M * N * K - 1).bit_length()")]),
    Answer("cache_key", "kinds of the strides only", [("(M, N, K, *strides)", "strides")]),
    Answer("cache_key", "strides as they are", [('"".join(kinds)', '"".join(kinds) + str(strides)')]),
    Answer("cache_key", "1 not told from the rest", [('"1" if n == 1 else ', "")]),
    Answer("cache_key", "multiples of 8", [("n % 16", "n % 8")]),
    Answer("cache_key", "sorted buckets", [("map(str, buckets)", "map(str, sorted(buckets))")]),
    Answer("cache_key", "nothing between buckets", [('"x".join', '"".join')]),
    Answer("cache_key", "buckets by loop and a colon", [("    digest", "    buckets = []\n    for size in (M, N, K):\n        bucket = 1\n        while bucket < size:\n            bucket *= 2\n        buckets.append(bucket)\n    digest"), ('"|".join', '" : ".join')], None),
    Answer("tune_silu", "never asks the cache", [("config = cache.get(key)", "config = None")], source=TUNE),
    Answer("tune_silu", "never puts", [("cache.put(key, config, times[config])", "pass")], source=TUNE),
    Answer("tune_silu", "puts None", [("            if config is not None:\n                cache.put(key, config, times[config])", "            cache.put(key, config, times.get(config))")], source=TUNE),
    Answer("tune_silu", "ignores the budget", [("[:budget]", "")], source=TUNE),
    Answer("tune_silu", "no pruning", [("prune(grid(), M, N, K, chip)[:budget]", "grid()[:budget]")], source=TUNE),
    Answer("tune_silu", "returns only what was measured", [("        best[M, N, K] = config", "            best[M, N, K] = config")], source=TUNE),
    Answer("tune_silu", "prunes for the first shape", [("prune(grid(), M, N, K, chip)", "prune(grid(), *shapes[0], chip)")], source=TUNE),
]
