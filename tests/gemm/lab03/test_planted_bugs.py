"""Test that lab 03's checks name common mistakes, and accept correct answers that are written differently."""

from labs_helpers.gemm.lab03 import checks as check
from labs_helpers.gemm.lab03 import exercises
from tests.gemm.lab03.exercises.ex7_tune_silu import tune_silu
from tests.planted import PlantedBugs

GATE = "            if (error <= bound).all():\n                times[config] = measure(config)\n"
ERROR = "(result.double() - expected).abs()"
DRAW = "random.Random(seed).sample(candidates, min(budget, len(candidates)))"
KEY = 'return "|".join([kernel, digest, shape, "".join(kinds), dtype, gpu, triton])'
SEARCH = """config, times = grid_search(
                candidates, bench.run, bench.expected, bench.bound, bench.measure
            )"""
PUT = "            if config is not None:\n                cache.put(key_of(*shape), config, times[config])\n"
CUT = "kept[: min(20, 2 * len(configs) // 5)]"
COUNT = "waves(M, N, config, chip.multiprocessors)[1]"
HALF = "Likely cause: a wave takes the same time(?!.*; or: ).*$"

BUGS = [
    # resources
    ("resources", "elements, not bytes", [("config.BLOCK_K * 2", "config.BLOCK_K")], "two bytes"),
    ("resources", "all stages on sm_80", [("config.num_stages - 1", "config.num_stages")], r"num_stages - 1 buffers"),
    (
        "resources",
        "a stage too few on sm_90",
        [("else config.num_stages\n", "else config.num_stages - 1\n")],
        "wgmma reads shared memory itself",
    ),
    (
        "resources",
        "stages on a T4",
        [("(buffers if chip.capability >= 80 else 1)", "buffers"), ("< 90", "in (80, 89)")],
        "without asynchronous copies",
    ),
    ("resources", "A alone", [("(config.BLOCK_M + config.BLOCK_N)", "config.BLOCK_M")], "only A's tile"),
    (
        "resources",
        "a tile of D",
        [("(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K", "config.BLOCK_M * config.BLOCK_N")],
        "not a tile of D",
    ),
    ("resources", "warps for threads", [("(32 * config.num_warps)", "config.num_warps")], "a warp has 32 threads"),
    ("resources", "one warp", [("(32 * config.num_warps)", "32")], "num_warps warps share"),
    ("resources", "float16 accumulators", [("// (32 *", "// (64 *")], "float32 and not float16"),
    ("resources", "the limit excluded", [("shared > chip", "shared >= chip")], "exactly the limit still fits"),
    ("resources", "48 KB", [("shared > chip.shared_bytes_per_block", "shared > 300000")], "is not compared with chip"),
    (
        "resources",
        "spills first",
        [
            (
                "if shared > chip.shared_bytes_per_block:",
                "if accumulators > 255:\n        return shared, accumulators, 'spills'\n"
                "    if shared > chip.shared_bytes_per_block:",
            )
        ],
        "comes first; a program",
    ),
    (
        "resources",
        "of the SM",
        [("shared > chip.shared_bytes_per_block", "shared > chip.shared_bytes_per_sm")],
        "not that of its whole SM",
    ),
    ("resources", "four bytes", [("config.BLOCK_K * 2", "config.BLOCK_K * 4")], "two bytes, not four"),
    (
        "resources",
        "accumulators in bytes",
        [("config.BLOCK_M * config.BLOCK_N //", "4 * config.BLOCK_M * config.BLOCK_N //")],
        "a register holds 4 bytes",
    ),
    (
        "resources",
        "another order",
        [
            ('return shared, accumulators, "too large"', 'return "too large", shared, accumulators'),
            (
                'return shared, accumulators, "spills" if accumulators > 255 else "runs"',
                'return ("spills" if accumulators > 255 else "runs"), shared, accumulators',
            ),
        ],
        "the order is",
    ),
    ("resources", "89 like 90", [("< 90", "< 89")], "from 80 on there are"),
    (
        "resources",
        "a stage too many",
        [("else config.num_stages\n", "else config.num_stages + 1\n")],
        "buffers and no more",
    ),
    ("resources", "256 fit", [("> 255", "> 256")], "one more than a thread's 255"),
    # waves
    (
        "waves",
        "tiles round down",
        [
            (
                "-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)",
                "max(1, (M // config.BLOCK_M) * (N // config.BLOCK_N))",
            )
        ],
        "round up",
    ),
    (
        "waves",
        "one division",
        [("-(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)", "-(-(M * N) // (config.BLOCK_M * config.BLOCK_N))")],
        "by itself",
    ),
    (
        "waves",
        "M and N swapped",
        [
            ("-M // config.BLOCK_M", "-M // config.BLOCK_X"),
            ("-N // config.BLOCK_N", "-N // config.BLOCK_M"),
            ("-M // config.BLOCK_X", "-M // config.BLOCK_N"),
        ],
        "swapped",
    ),
    ("waves", "waves round down", [("-(-tiles // at_once)", "tiles // at_once")], "the partial last wave"),
    ("waves", "always one more", [("-(-tiles // at_once)", "tiles // at_once + 1")], "none comes after it"),
    ("waves", "remainder", [("tiles - (count - 1) * at_once", "tiles % at_once")], "a full last wave is 1.0"),
    ("waves", "share of all", [("left / at_once", "tiles / (count * at_once)")], "the share of all places"),
    ("waves", "empty places", [("left / at_once", "1 - left / at_once")], "empty places"),
    ("waves", "cut off", [("left / at_once", "left // at_once")], "// cuts the fraction off"),
    ("waves", "percent", [("left / at_once", "100 * left / at_once")], "not a percentage"),
    ("waves", "BLOCK_K", [("-N // config.BLOCK_N", "-N // config.BLOCK_K")], "BLOCK_K plays no role"),
    ("waves", "on its head", [("left / at_once", "at_once / left")], "is inverted"),
    ("waves", "tiles left", [("left / at_once", "left")], "a fraction of the wave"),
    # prune
    ("prune", "everything", [(f"return [config for *_, config in {CUT}]", "return configs")], "at most 40%"),
    (
        "prune",
        "not cut",
        [("and accumulators >= 32 and shared >= 0.4 * chip.shared_bytes_per_block", ""), (CUT, "kept")],
        "at most 40%",
    ),
    (
        "prune",
        "the worst first",
        [("kept[:", "kept[::-1][:")],
        "the order is reversed",
    ),
    ("prune", "small tiles", [("accumulators >= 32", "accumulators <= 32")], "32 accumulators are the minimum"),
    ("prune", "little shared memory", [("shared >= 0.4", "shared <= 0.4")], "40% of the shared memory is the minimum"),
    (
        "prune",
        "another chip's SMs",
        [("chip.multiprocessors", "132")],
        "cause: the waves are counted for another chip than `chip`$",
    ),
    (
        "prune",
        "another chip's bytes",
        [("0.4 * chip.shared_bytes_per_block", "92_979")],
        "nothing is kept|another chip",
    ),
    ("prune", "M and N swapped", [("waves(M, N", "waves(N, M")], "M and N are swapped in the waves"),
    ("prune", "no edges", [("32 * (config.BLOCK_M + config.BLOCK_N)", "0")], "the edges.*missing from the estimate"),
    (
        "prune",
        "all three numbers",
        [
            ("waves(M, N, config, chip.multiprocessors)[1] * tile", "waves(M, N, config, chip.multiprocessors) * tile"),
            ("-accumulators, config", "0, config"),
        ],
        "the second is the number of waves",
    ),
    ("prune", "cut too early", [("    kept.sort(", "    kept = kept[:20]\n    kept.sort(")], "cut before it is sorted"),
    ("prune", "no waves", [("waves(M, N, config, chip.multiprocessors)[1] * tile", "tile")], "the waves are missing"),
    ("prune", "ties left open", [("-accumulators, config", "0, config")], "do not decide the order"),
    (
        "prune",
        "its own list",
        [
            (
                "    for config in configs:",
                "    for config in __import__('labs_helpers.gemm.tuning.space', fromlist=['grid']).grid():",
            )
        ],
        "was not among those given",
    ),
    (
        "prune",
        "removes while it walks",
        [
            (
                "        shared, accumulators, verdict = resources(config, chip)\n",
                "        shared, accumulators, verdict = resources(config, chip)\n"
                "        if verdict != 'runs':\n            configs.remove(config)\n",
            )
        ],
        "that you were given was changed",
    ),
    (
        "prune",
        "by the recorded times",
        [
            (
                f"    return [config for *_, config in {CUT}]",
                "    from labs_helpers.gemm.tuning import recorded as r\n"
                "    frame = r.measured()\n"
                "    shape = (M, N, K) if (M, N, K) in r.shapes(frame) else (4096, 4096, 4096)\n"
                "    time = r.Recorded(frame, 'fused_matmul', shape).time\n"
                "    return sorted((config for *_, config in kept), key=time)[:20]",
            )
        ],
        "more accumulators first|the lowest first",
    ),
    ("prune", "a fixed number", [(CUT, "kept[:20]")], "of 24 are kept.*\nLikely cause: the cut is at a fixed number"),
    ("prune", "a fixed number, 12", [(CUT, "kept[:12]")], "of 24 are kept.*\nLikely cause: the cut is at a fixed"),
    (
        "prune",
        "no cut",
        [(CUT, "kept")],
        "of 24 are kept.*\nLikely cause: the list is not cut after the ranking, or the",
    ),
    ("prune", "half of it", [(CUT, "kept[: min(20, len(configs) // 2)]")], r"12 of 24 are kept[^\n]*$"),
    ("prune", "parts of a wave", [(COUNT, COUNT.replace("[1]", "[0] / chip.multiprocessors"))], HALF),
    ("prune", "tiles for waves", [(COUNT, COUNT.replace("[1]", "[0]"))], HALF),
    (
        "prune",
        "waves rounded down",
        [(COUNT, COUNT.replace("[1]", "[0] // chip.multiprocessors"))],
        "are rounded down$",
    ),
    ("prune", "too few", [(CUT, "kept[:3]")], "more than 1% is lost"),
    (
        "prune",
        "waves only",
        [("    def estimate", "    configs = configs[::-1]\n\n    def estimate"), ("[1] * tile", "[1]")],
        "the lowest first",
    ),
    (
        "prune",
        "too large kept",
        [('verdict == "runs"', 'verdict != "spills"'), (CUT, "kept[:57]")],
        "its verdict is 'too large'|more than 1%",
    ),
    (
        "prune",
        "spills kept",
        [('verdict == "runs"', 'verdict != "too large"')],
        "its verdict is 'spills'",
    ),
    ("prune", "one chip's bytes", [("0.4 * chip.shared_bytes_per_block", "90_000")], "nothing is kept"),
    (
        "prune",
        "by their numbers",
        [(f"return [config for *_, config in {CUT}]", "return [i for i, _ in enumerate(kept[:20])]")],
        "return a list of configurations",
    ),
    # grid_search
    ("grid_search", "no gate", [(GATE, "            times[config] = measure(config)\n")], "nothing is compared"),
    (
        "grid_search",
        "NaN passes",
        [("(error <= bound).all()", "not (error > bound).any()")],
        "comparison with NaN is False",
    ),
    ("grid_search", "signed", [(f"{ERROR}", "result.double() - expected")], r"abs\(\) is missing"),
    ("grid_search", "any", [("(error <= bound).all()", "(error <= bound).any()")], "not any"),
    (
        "grid_search",
        "the norm alone",
        [("(error <= bound).all()", "error.norm() / expected.norm() < 1e-3")],
        "says nothing about one small element",
    ),
    (
        "grid_search",
        "largest against largest",
        [("(error <= bound).all()", "error.max() <= bound.max()")],
        "says nothing about one small element",
    ),
    (
        "grid_search",
        "the mean",
        [("(error <= bound).all()", "error.mean() <= bound.mean()")],
        "says nothing about one small element",
    ),
    (
        "grid_search",
        "the mean of what cancels",
        [("(error <= bound).all()", "abs((result.double() - expected).mean()) <= bound.mean()")],
        "opposite sign cancel",
    ),
    (
        "grid_search",
        "allclose",
        [
            ("(error <= bound).all()", "torch.allclose(result.double(), expected)"),
            ("import math", "import math\nimport torch"),
        ],
        "their own tolerances",
    ),
    (
        "grid_search",
        "relative to the result",
        [("error <= bound", "error / expected <= bound")],
        "the error is absolute here",
    ),
    ("grid_search", "ten times too wide", [("error <= bound", "error <= 10 * bound")], "is wider than `bound`"),
    ("grid_search", "squared", [("error <= bound", "error**2 <= bound")], "It takes half the time"),
    (
        "grid_search",
        "in float16",
        [(ERROR, "(result.half() - expected.half()).abs()")],
        "its result is right.*\nLikely cause: the error is computed in the result's dtype[^;]*$",
    ),
    (
        "grid_search",
        "in the result's dtype, the bound too",
        [(ERROR, "(result - expected.to(result.dtype)).abs()"), ("<= bound", "<= bound.to(result.dtype)")],
        "its result is right.*\nLikely cause: the error is computed in the result's dtype[^;]*$",
    ),
    (
        "grid_search",
        "sorted by time",
        [("    best = min(times", "    times = dict(sorted(times.items(), key=lambda p: p[1]))\n    best = min(times")],
        "keep the order of the configurations",
    ),
    (
        "grid_search",
        "interrupt caught in run",
        [("            except Exception:", "            except BaseException:")],
        "interrupt must end the search",
    ),
    (
        "grid_search",
        "walked twice",
        [("        for config in configs:", "        print(len(list(configs)))\n        for config in configs:")],
        "loops over configs twice",
    ),
    (
        "grid_search",
        "best forgotten",
        [("    except KeyboardInterrupt:\n", "    except KeyboardInterrupt:\n        return None, times\n")],
        "after an interrupt, your function",
    ),
    (
        "grid_search",
        "in place",
        [("            error = (result.double() - expected).abs()", "            error = expected.sub_(result).abs()")],
        "`expected` was changed",
    ),
    ("grid_search", "its time", [("None, times\n", "None, times[best]\n")], "a dict of Config"),
    (
        "grid_search",
        "timed first",
        [
            (
                "            try:\n                result = run(config)",
                "            ms = measure(config)\n            try:\n                result = run(config)",
            ),
            ("measure(config)\n    except Key", "ms\n    except Key"),
        ],
        "before its result was compared",
    ),
    (
        "grid_search",
        "failures left out",
        [("            times[config] = math.inf\n", "")],
        "cannot run or is wrong must also get math.inf",
    ),
    ("grid_search", "failures end it", [("                continue", "                break")], "have no entry"),
    (
        "grid_search",
        "the slowest",
        [
            (
                "min(times, key=times.get, default=None)",
                "max((c for c in times if times[c] < math.inf), key=times.get, default=None)",
            )
        ],
        "the slowest was taken",
    ),
    (
        "grid_search",
        "the first",
        [("min(times, key=times.get, default=None)", "next((c for c in times if math.isfinite(times[c])), None)")],
        "took less time",
    ),
    (
        "grid_search",
        "interrupt lost",
        [("except KeyboardInterrupt:", "except ZeroDivisionError:")],
        "KeyboardInterrupt leaves your function",
    ),
    (
        "grid_search",
        "interrupt swallowed",
        [
            (
                GATE,
                "            try:\n                if (error <= bound).all():\n"
                "                    times[config] = measure(config)\n"
                "            except BaseException:\n                pass\n",
            )
        ],
        "must end the search",
    ),
    (
        "grid_search",
        "something always wins",
        [("best if best is not None and math.isfinite(times[best]) else None", "best")],
        "it must be None",
    ),
    (
        "grid_search",
        "measured again",
        [("times[config] = measure(config)", "times[config] = min(measure(config), measure(config))")],
        "timed twice",
    ),
    # random_search
    (
        "random_search",
        "from everything",
        [("sample(candidates", "sample(list(configs)")],
        "draw from the configurations prune keeps",
    ),
    ("random_search", "the first ones", [(DRAW, "candidates[:budget]")], "instead of drawn"),
    ("random_search", "seed ignored", [("random.Random(seed)", "random.Random(0)")], "the seed is not used"),
    (
        "random_search",
        "the first ones, shuffled",
        [(DRAW, "random.Random(seed).sample(candidates[:budget], budget)")],
        "instead of drawn",
    ),
    ("random_search", "all of them", [("min(budget, len(candidates))", "len(candidates)")], "here all were measured"),
    ("random_search", "14 for the budget", [("min(budget, len", "min(14, len")], "5 times math.inf"),
    (
        "random_search",
        "another chip",
        [
            ("K, chip)\n    best", "K, DATASHEET['H200'])\n    best"),
            ("import random\n", "import random\n\nfrom labs_helpers.measure.datasheet import DATASHEET\n"),
        ],
        "another chip than",
    ),
    (
        "random_search",
        "drawn too early",
        [("prune(configs, M, N, K, chip)", "prune(random.Random(seed).sample(list(configs), 40), M, N, K, chip)")],
        "first prune all",
    ),
    (
        "random_search",
        "the slowest so far",
        [("curve.append(fastest)", "curve.append(max([ms, *curve]))")],
        "it is the slowest so far",
    ),
    ("random_search", "M and N swapped", [("prune(configs, M, N", "prune(configs, N, M")], "are swapped, or belong"),
    (
        "random_search",
        "its time",
        [("return best, curve", "return fastest, curve")],
        "best is a configuration, not its time",
    ),
    (
        "random_search",
        "measured again for the best",
        [("return best, curve", "return min(candidates[:3], key=measure), curve")],
        "measure is called again|was the fastest",
    ),
    (
        "random_search",
        "late",
        [
            ("        if ms", "        curve.append(fastest)\n        if ms"),
            (
                "            best, fastest = config, ms\n        curve.append(fastest)",
                "            best, fastest = config, ms",
            ),
        ],
        "before you append",
    ),
    (
        "random_search",
        "global seed",
        [(DRAW, "(random.seed(seed), " + DRAW.replace("random.Random(seed)", "random") + ")[1]")],
        "global state",
    ),
    ("random_search", "no seed", [("random.Random(seed)", "random.Random()")], "the same seed drew different"),
    (
        "random_search",
        "with replacement",
        [("sample(candidates, min(budget, len(candidates)))", "choices(candidates, k=budget)")],
        "measured twice",
    ),
    (
        "random_search",
        "over budget",
        [("        curve.append", "        measure(config)\n        curve.append")],
        "measure is called again",
    ),
    ("random_search", "half the budget", [("min(budget,", "min(budget // 2,")], "may be spent"),
    (
        "random_search",
        "the last",
        [("if ms < fastest:", "if True:")],
        "it is the last one measured|it holds every time",
    ),
    ("random_search", "raw curve", [("curve.append(fastest)", "curve.append(ms)")], "every time as it was measured"),
    # cache_key
    ("cache_key", "no kernel", [("[kernel, digest", "[digest")], "`kernel` is not in the key"),
    ("cache_key", "no source", [("[kernel, digest", "[kernel")], "`source` is not in the key"),
    ("cache_key", "no dtype", [("dtype, gpu, triton]", "gpu, triton]")], "`dtype` is not in the key"),
    ("cache_key", "no GPU", [("dtype, gpu, triton]", "dtype, triton]")], "`gpu` is not in the key"),
    ("cache_key", "vendor only", [("dtype, gpu, triton]", "dtype, gpu.split()[0], triton]")], "part of `gpu`"),
    ("cache_key", "minor version", [(", triton]", ', triton.rpartition(".")[0]]')], "part of `triton`"),
    ("cache_key", "no strides", [(", *strides)", ")")], "the strides are not in the key"),
    ("cache_key", "no kinds", [('"".join(kinds), ', "")], "neither of M, N, K nor of the strides"),
    (
        "cache_key",
        "1 is like any other",
        [('"1" if n == 1 else "d"', '"d"')],
        "a stride of 1 needs its own kind",
    ),
    ("cache_key", "A's strides alone", [("*strides", "*strides[:2]")], "only A's strides"),
    ("cache_key", "by 8", [("n % 16", "n % 8")], "a multiple of 8 counts as a multiple of 16"),
    ("cache_key", "by 32", [("n % 16", "n % 32")], "finer than Triton's"),
    ("cache_key", "8 and 16", [('0 else "n"', '0 else "8" if n % 8 == 0 else "n"')], "finer than Triton's"),
    ("cache_key", "2 by itself", [('["1" if', '["2" if n == 2 else "1" if')], "finer than Triton's"),
    (
        "cache_key",
        "small ones together",
        [("1 << (size", "max(16, 1 << (size"), ("bit_length()", "bit_length())")],
        "small sizes share",
    ),
    (
        "cache_key",
        "small ones exact",
        [("[1 <<", "[size if size < 16 else 1 <<")],
        "small sizes themselves are in the key",
    ),
    ("cache_key", "fine buckets", [("1 << (size - 1).bit_length()", "-(-size // 128)")], "are not powers of two"),
    (
        "cache_key",
        "nearest power",
        [("1 << (size - 1).bit_length()", "2 ** round(__import__('math').log2(size))")],
        "nearest",
    ),
    ("cache_key", "kinds sorted", [('"".join(kinds)', '"".join(sorted(kinds))')], "counted or sorted"),
    ("cache_key", "kinds of strides", [("(M, N, K, *strides)", "strides")], "kinds of M, N and K are not"),
    ("cache_key", "one H100 for all", [("dtype, gpu, triton]", "dtype, gpu.split()[1], triton]")], "part of `gpu`"),
    (
        "cache_key",
        "the strides themselves",
        [('"".join(kinds)', '"".join(kinds) + str(strides)')],
        "their kind is enough",
    ),
    ("cache_key", "the raw source", [("digest, shape", "source, shape")], "contains the source itself"),
    ("cache_key", "its first line", [("source.encode()", "source.splitlines()[0].encode()")], "part of `source`"),
    ("cache_key", "its length", [("[kernel, digest", "[kernel, str(len(source))")], "part of `source`|too short"),
    ("cache_key", "two digits", [("[:12]", "[:2]")], "the digest is too short"),
    (
        "cache_key",
        "hexdigest forgotten",
        [("hashlib.sha256(source.encode()).hexdigest()[:12]", "str(hashlib.sha256(source.encode()))")],
        "hexdigest.* is missing",
    ),
    ("cache_key", "no N", [("for size in (M, N, K)]", "for size in (M, K)]")], "the bucket of `N` is not in the key"),
    ("cache_key", "no bucket", [("1 << (size - 1).bit_length()", "size")], "exact size"),
    (
        "cache_key",
        "rounded down",
        [("(size - 1).bit_length()", "size.bit_length() - 1")],
        "Likely cause: a power of two belongs to its own bucket",
    ),
    (
        "cache_key",
        "the next power",
        [("(size - 1).bit_length()", "size.bit_length()")],
        "cause: a power of two belongs to its own",
    ),
    (
        "cache_key",
        "product",
        [('"x".join(map(str, buckets))', "str(buckets[0] * buckets[1] * buckets[2])")],
        "buckets are multiplied",
    ),
    ("cache_key", "sorted", [("map(str, buckets)", "map(str, sorted(buckets))")], "buckets are sorted"),
    (
        "cache_key",
        "salted hash",
        [("hashlib.sha256(source.encode()).hexdigest()[:12]", "str(hash(source))")],
        "differs from process to process",
    ),
    (
        "cache_key",
        "a tuple",
        [(KEY, "return (kernel, digest, *buckets, *kinds, dtype, gpu, triton)")],
        "a line of text",
    ),
    ("grid_search", "RuntimeError alone", [("except Exception:", "except RuntimeError:")], "neither a RuntimeError"),
    (
        "grid_search",
        "swapped",
        [("- expected", "- bound"), ("error <= bound", "error <= expected")],
        "are swapped: .result",
    ),
    ("grid_search", "twice the bound", [("error <= bound", "error <= 2 * bound")], "wider than `bound`"),
    ("grid_search", "stops", [("                continue", "                break")], "use continue"),
    (
        "grid_search",
        "times first",
        [("else None, times", "else None, times)[::-1]"), ("return best if", "return (best if")],
        "the order is",
    ),
    ("random_search", "one too few", [("min(budget", "min(budget - 1")], "one too few is drawn"),
    ("random_search", "configurations", [("curve.append(fastest)", "curve.append(best)")], "holds configurations"),
    ("waves", "turned", [("return tiles, count, left", "return count, tiles, left")], "the order is"),
    (
        "waves",
        "N rounds down",
        [("-(-N // config.BLOCK_N)", "(N // config.BLOCK_N)")],
        "Likely cause: a partial tile[^;]*$",
    ),
    ("resources", "other words", [('"too large"', '"too_large"')], "one of the words"),
    (
        "resources",
        "a number of its own",
        [("shared > chip.shared_bytes_per_block", "shared > 120_000")],
        "another number",
    ),
    (
        "resources",
        "three factors",
        [("(config.BLOCK_M + config.BLOCK_N)", "config.BLOCK_M * config.BLOCK_N")],
        "do not multiply",
    ),
    ("resources", "128 are the most", [("> 255", "> 128")], "128 accumulators leave room"),
    ("prune", "rounded", [("2 * len(configs) // 5", "round(0.4 * len(configs))")], "the share is rounded up"),
    ("prune", "rounded up", [("2 * len(configs) // 5", "-(-2 * len(configs) // 5)")], "the share is rounded up"),
    (
        "prune",
        "fewer first",
        [("-accumulators, config", "accumulators, config")],
        "fewer accumulators comes first[^;]*$",
    ),
    ("prune", "not sorted", [("    kept.sort(key=lambda entry: entry[:2])\n", "")], "nothing is sorted"),
    ("prune", "share for count", [("[1] * tile", "[2] * tile")], "the second is the number of waves"),
    ("prune", "a sum", [("[1] * tile", "[1] + tile")], "multiply the waves by the cost"),
    ("prune", "no 32", [("32 * (config", "(config")], "count 32 times"),
    ("prune", "verdict not asked", [('verdict == "runs" and ', "")], "ignores the verdict"),
    ("prune", "tuples", [("[config for *_, config in", "[entry for entry in")], "its last entry"),
    ("tune_silu", "swapped", [("bench.expected, bench.bound", "bench.bound, bench.expected")], "are swapped: .result"),
    (
        "tune_silu",
        "found none left out",
        [("found[shape] = config", "found.update({shape: config} if config else {})")],
        "shapes are missing",
    ),
    # tune_silu (the transfer exercise; its reference is beside this file)
    ("tune_silu", "the whole grid", [("prune(grid(), *shape, chip)[:budget]", "grid()")], "may be spent"),
    ("tune_silu", "not cut", [("[:budget]", "")], "may be spent"),
    (
        "tune_silu",
        "the first of the grid",
        [("prune(grid(), *shape, chip)[:budget]", "grid()[:budget]")],
        "2% is allowed",
    ),
    (
        "tune_silu",
        "compared afterwards",
        [
            (
                "            config, times = grid_search(",
                "            timed = {c: bench.measure(c) for c in candidates}\n"
                "            config, times = grid_search(",
            ),
            ("bench.measure\n", "timed.get\n"),
        ],
        "before its result was compared",
    ),
    (
        "tune_silu",
        "no gate",
        [
            (
                SEARCH,
                "times = {c: bench.measure(c) for c in candidates}\n            config = min(times, key=times.get)",
            ),
        ],
        "never computed",
    ),
    ("tune_silu", "loose gate", [("bench.bound,", "10 * bench.expected,")], "its result is"),
    (
        "tune_silu",
        "another chip",
        [
            ("*shape, chip)", "*shape, DATASHEET['H200'])"),
            (
                "from labs_helpers.gemm.tuning.space",
                "from labs_helpers.measure.datasheet import DATASHEET\nfrom labs_helpers.gemm.tuning.space",
            ),
        ],
        "another chip",
    ),
    ("tune_silu", "14 for the budget", [("[:budget]", "[:14]")], "cut the list at `budget`"),
    (
        "tune_silu",
        "another shape",
        [("prune(grid(), *shape, chip)", "prune(grid(), *shapes[0], chip)")],
        "prune for each shape",
    ),
    ("tune_silu", "the last of them", [("[:budget]", "[-budget:]")], "most promising|2% is allowed"),
    (
        "tune_silu",
        "one for all",
        [
            ("found[shape] = config", "found.update(dict.fromkeys(shapes, config))"),
            ("for shape in shapes:", "for shape in [min(shapes)]:"),
        ],
        "cache holds None",
    ),
    ("tune_silu", "not remembered", [(PUT, "")], "cache.put.* is missing"),
    ("tune_silu", "cache not asked", [("cache.get(key_of(*shape))", "None")], "cache.get"),
    ("tune_silu", "one key", [("key_of(*shape)", "key_of(*shapes[0])")], "cache holds None"),
    ("tune_silu", "a wrong time", [("times[config])", "1.0)")], "another shape's key or time"),
    ("tune_silu", "None remembered", [("if config is not None:", "if True:")], "store nothing then"),
]

REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"tune_silu": tune_silu}

DIFFERENT = [
    (
        "resources",
        [
            (
                "config.BLOCK_M * config.BLOCK_N // (32 * config.num_warps)",
                "config.BLOCK_M // config.num_warps * (config.BLOCK_N // 32)",
            )
        ],
    ),
    (
        "resources",
        [
            (
                "(config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2",
                "2 * config.BLOCK_M * config.BLOCK_K + 2 * config.BLOCK_K * config.BLOCK_N",
            )
        ],
    ),
    ("waves", [("-(-tiles // at_once)", "(tiles + at_once - 1) // at_once")]),
    ("waves", [("tiles - (count - 1) * at_once", "(tiles % at_once or at_once)")]),
    ("prune", [("min(20, ", "min(12, ")]),
    (
        "prune",
        [
            (
                f"return [config for *_, config in {CUT}]",
                "return tuple(e[2] for e in kept[: int(0.4 * len(configs))])",
            ),
            (" and accumulators >= 32", ""),
        ],
    ),
    (
        "prune",
        [
            (
                "waves(M, N, config, chip.multiprocessors)[1] * tile",
                "tile * waves(M, N, config, chip.multiprocessors)[1] / chip.fp16_flops * K",
            )
        ],
    ),
    (
        "grid_search",
        [
            (
                "                continue",
                "                pass\n            else:\n"
                "                result = result.double()\n"
                "                if torch.all(torch.abs(result - expected).sub(bound) <= 0):\n"
                "                    times[config] = measure(config)\n            continue",
            ),
            ("import math", "import math\nimport torch"),
        ],
    ),
    (
        "grid_search",
        [("except Exception:", "except (RuntimeError, Exception):"), ("in configs:", "in list(configs):")],
    ),
    (
        "random_search",  # with a prune of the student's that keeps many
        [
            (
                "from labs_helpers.gemm.lab03.exercises.ex3_prune import prune",
                "from labs_helpers.gemm.lab03.exercises.ex1_resources import resources\n\n\n"
                "def prune(configs, M, N, K, chip):\n"
                "    return [c for c in configs if resources(c, chip)[2] == 'runs'][:57]\n",
            )
        ],
    ),
    (
        "random_search",  # with one that keeps fewer than the budget
        [
            (
                "from labs_helpers.gemm.lab03.exercises.ex3_prune import prune",
                "from labs_helpers.gemm.lab03.exercises import ex3_prune\n\n\n"
                "def prune(*given):\n    return ex3_prune.prune(*given)[:10]\n",
            )
        ],
    ),
    ("random_search", [(DRAW, "random.Random(1000 + seed).sample(candidates, budget)")]),
    (
        "random_search",
        [
            (
                "    for config in " + DRAW,
                "    generator = random.Random(seed)\n"
                "    generator.shuffle(candidates)\n    for config in candidates[:budget]",
            )
        ],
    ),
    (
        "cache_key",
        [
            (
                "import hashlib",
                "import hashlib\nimport json\n\n\ndef reach(n):\n    return 1 << (n - 1).bit_length()\n",
            ),
            (KEY, "return json.dumps([kernel, digest, [reach(n) for n in (M, N, K)], kinds, dtype, gpu, triton])"),
        ],
    ),
    ("cache_key", [(KEY, 'return f"{triton}/{gpu}/{dtype}/{kernel}/{digest}/{tuple(buckets)}/{kinds}"')]),
    (
        "cache_key",
        [
            (
                "[1 << (size - 1).bit_length() for size in (M, N, K)]",
                "[next(2**i for i in range(99) if 2**i >= size) for size in (M, N, K)]",
            ),
            ("hashlib.sha256(source.encode()).hexdigest()[:12]", "repr(source)"),
        ],
    ),
    ("tune_silu", [("prune(grid(), *shape, chip)[:budget]", "list(prune(grid(), *shape, chip))[: min(12, budget)]")]),
    (
        "tune_silu",
        [
            (
                "            if config is not None:\n                cache.put(key_of(*shape), config, "
                "times[config])\n",
                "            if times[candidates[0]] and config:\n"
                "                cache.put(key_of(*shape), config, min(times.values()))\n",
            )
        ],
    ),
]


class TestLab03(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, DIFFERENT
