"""Planted bugs of exercise 1, and right answers written differently."""

import inspect

from labs_helpers.transformer.lab01 import exercises

BODY = inspect.getsource(exercises.benchmark).split("    ### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
QUANTILES = "numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))"
INDEX = "(sorted(samples[warmup:])[int(runs * p)] for p in (0.2, 0.5, 0.8))"
READY = "            ready = prepare()\n            synchronize()\n"
STARTS = READY + "            started = clock()\n"
STOPS = "            phase(ready)\n            synchronize()\n"
STEP = "        model.backward(model.forward())\n        model.update()\n"
SPLIT_STEP = "        loss = model.forward()\n        model.backward(loss)\n        model.update()\n"
IMPORTS_TORCH = ("    timings = {}\n", "    import torch\n\n    timings = {}\n")
THREE_SUM = """def update(_):
        model.update()

    last = timed(lambda: model.backward(model.forward()), update)
    timings["step"] = timings["forward"][0] + timings["backward"][0] + last[0], 0.1"""
TIMED_STEP = 'timings["step"] = timed(lambda: None, step)'


def whole(body: str) -> list[tuple[str, str]]:
    """The change that puts another body into the reference."""
    return [(BODY, body)]


# A round as people write it first: what is read and waited for differs from answer to answer.
LOOPS = """
    def spread(samples):
        p20, p80 = numpy.percentile(samples, [20, 80])
        return (p80 - p20) / numpy.median(samples)

    forward, backward, step = [], [], []
    for _ in range(warmup + runs):
        synchronize()
        t0 = clock()
        loss = model.forward()
        synchronize()
        t1 = clock()
        model.backward(loss)
        synchronize()
        t2 = clock()
        model.update()
        forward.append(1000 * (t1 - t0))
        backward.append(1000 * (t2 - t1))
    for _ in range(warmup + runs):
        synchronize()
        t0 = clock()
        loss = model.forward()
        model.backward(loss)
        model.update()
        synchronize()
        step.append(1000 * (clock() - t0))
    for name, samples in (("forward", forward), ("backward", backward), ("step", step)):
        samples = samples[-runs:]
        timings[name] = (numpy.median(samples), spread(samples))
    return timings
"""
ONE_LOOP = """
    samples = {"forward": [], "backward": [], "step": []}
    for round in range(warmup + runs):
        times = {}
        synchronize()
        started = clock()
        loss = model.forward()
        synchronize()
        times["forward"] = clock() - started
        loss = model.forward()
        synchronize()
        started = clock()
        model.backward(loss)
        synchronize()
        times["backward"] = clock() - started
        model.update()
        synchronize()
        started = clock()
        model.backward(model.forward())
        model.update()
        synchronize()
        times["step"] = clock() - started
        if round >= warmup:
            for name, seconds in times.items():
                samples[name].append(seconds)
    for name, values in samples.items():
        values = numpy.sort(values)
        p20, p50, p80 = (numpy.quantile(values, q) for q in (0.2, 0.5, 0.8))
        timings[name] = 1e3 * p50, (p80 - p20) / p50
    return timings
"""
LISTS = """
    import statistics

    def rounds(phase, count):
        for _ in range(count):
            loss = model.forward() if phase == "backward" else None
            synchronize()
            before = clock()
            if phase == "forward":
                model.forward()
            elif phase == "backward":
                model.backward(loss)
            else:
                loss = model.forward()
                model.backward(loss)
                model.update()
            synchronize()
            yield (clock() - before) * 1e3
            if phase == "backward":
                model.update()

    for phase in ("step", "backward", "forward"):
        list(rounds(phase, warmup))
        times = list(rounds(phase, runs))
        fifths = statistics.quantiles(times, n=5, method="inclusive")
        median = statistics.median(times)
        timings[phase] = [median, (fifths[3] - fifths[0]) / median]
    return timings
"""
UNTIMED_WARM_UP = """
    def measure(work, loss_first):
        times = numpy.empty(runs)
        for _ in range(warmup):
            work(model.forward() if loss_first else None)
        for i in range(runs):
            loss = model.forward() if loss_first else None
            synchronize()
            start = clock()
            work(loss)
            synchronize()
            times[i] = clock() - start
        times *= 1e3
        median = numpy.median(times)
        return numpy.array([median, numpy.ptp(numpy.quantile(times, [0.2, 0.8])) / median])

    def step(_):
        loss = model.forward()
        model.backward(loss)
        model.update()

    timings["forward"] = measure(lambda _: model.forward(), False)
    timings["backward"] = measure(lambda loss: model.backward(loss), True)
    timings["step"] = measure(step, False)
    return timings
"""

AT_ONCE = """
    def timed(phase):
        for _ in range(warmup):
            phase()
        synchronize()
        started = clock()
        for _ in range(runs):
            phase()
        synchronize()
        return 1e3 * (clock() - started) / runs, 0.0

    timings["forward"] = timed(model.forward)
    timings["backward"] = timed(lambda: model.backward(model.forward()))
    timings["step"] = timed(lambda: (model.backward(model.forward()), model.update()))
    return timings
"""

_BUGS = [
    ("no wait at the end", [(STOPS, "            phase(ready)\n")], "the clock stops while the GPU"),
    ("no wait at all", [(READY, READY[:30]), (STOPS, "            phase(ready)\n")], "the clock stops while"),
    ("no wait before", [(READY, "            ready = prepare()\n")], "the time includes work that was queued"),
    (
        "no wait before in a loop",
        whole(LOOPS.replace("        synchronize()\n        t0", "        t0")),
        "the time includes work that was queued",
    ),
    ("warm-up counted", [("samples[warmup:]", "samples")], "warm-up rounds count, in which functions are"),
    (
        "no warm-up",
        [("range(warmup + runs)", "range(runs)"), ("samples[warmup:]", "samples")],
        "warm-up rounds count, in which functions are",
    ),
    (
        "one warm-up for all",
        whole(
            UNTIMED_WARM_UP.replace(
                "        for _ in range(warmup):\n            work(model.forward() if loss_first else None)\n", ""
            ).replace("    def measure", "    for _ in range(warmup):\n        model.forward()\n\n    def measure")
        ),
        "warm-up rounds count, in which functions are",
    ),
    (
        "a round too few to warm up",
        [("range(warmup + runs)", "range(warmup - 1 + runs)"), ("samples[warmup:]", "samples[warmup - 1:]")],
        "warm-up rounds count, in which functions are",
    ),
    ("the first rounds", [("samples[warmup:]", "samples[:runs]")], "warm-up rounds count, in which functions are"),
    (
        "runs forgotten",
        [("warmup=3, runs=9):", "warmup=3, runs=9):\n    _, runs = runs, 9")],
        "fewer than `runs` rounds",
    ),
    (
        "warm-up dropped twice",
        whole(UNTIMED_WARM_UP.replace("times *= 1e3", "times = times[warmup:] * 1e3")),
        "fewer than `runs` rounds",
    ),
    (
        "mean",
        [("return float(median)", "return sum(samples[warmup:]) / runs")],
        "this is the mean",
    ),
    ("minimum", [("float(median)", "min(samples[warmup:])")], "the fastest round"),
    ("maximum", [("float(median)", "max(samples[warmup:])")], "the slowest round"),
    ("seconds", [("1e3 * (clock() - started)", "clock() - started")], "in seconds, not in ms"),
    ("microseconds", [("1e3 *", "1e6 *")], "in µs, not in ms"),
    (
        "forward in backward",
        [("timed(model.forward, model.backward)", "timed(lambda: None, lambda _: model.backward(model.forward()))")],
        "it includes forward",
    ),
    (
        "update in backward",
        [
            (
                "timed(model.forward, model.backward)",
                "timed(model.forward, lambda loss: (model.backward(loss), model.update()))",
            )
        ],
        "it includes update",
    ),
    (
        "backward in forward",
        [("lambda _: model.forward())", "lambda _: model.backward(model.forward()))")],
        "it includes backward",
    ),
    ("forward twice", [(STEP, "        loss = model.forward()\n" + STEP)], "it runs forward twice"),
    (
        "forward before the clock",
        [
            (STEP, STEP.replace("model.forward()", "_")),
            (TIMED_STEP, TIMED_STEP.replace("lambda: None", "model.forward")),
        ],
        "forward is not timed",
    ),
    ("no update", [(STEP, "        model.backward(model.forward())\n")], "it leaves out update"),
    (
        "no backward",
        [(STEP, "        model.forward()\n        model.update()\n")],
        "it leaves out backward, and update does",
    ),
    (
        "update first",
        [(STEP, "        loss = model.forward()\n        model.update()\n        model.backward(loss)\n")],
        "update comes before backward",
    ),
    (
        "waits in the step",
        [(STEP, SPLIT_STEP.replace("        model.", "        synchronize()\n        model."))],
        "your round waits between its phases, and",
    ),
    (
        "a wait before the update",
        [(STEP, STEP.replace("        model.update", "        synchronize()\n        model.update"))],
        "your round waits between its phases, and",
    ),
    (
        "sum of two phases",
        [(TIMED_STEP, 'timings["step"] = timings["forward"][0] + timings["backward"][0], 0.1')],
        "sum of forward and backward",
    ),
    ("sum of three phases", [(TIMED_STEP, THREE_SUM)], "it is the sum of phases timed separately; in"),
    ("all rounds at once", whole(AT_ONCE), "all rounds were timed together: without"),
    (
        "clock started once",
        whole(UNTIMED_WARM_UP.replace("start = clock()\n", "start = start if i else clock()\n")),
        "start the clock in each round, not once",
    ),
    (
        "the wait after the clock starts",
        whole(
            UNTIMED_WARM_UP.replace(
                "synchronize()\n            start = clock()", "start = clock()\n            synchronize()"
            )
        ),
        "the time includes work that was queued",
    ),
    (
        "backward as a difference",
        [
            (
                'timings["backward"] = timed(model.forward, model.backward)',
                "both = timed(lambda: None, lambda _: model.backward(model.forward()))\n"
                '    timings["backward"] = both[0] - timings["forward"][0], 0.1',
            )
        ],
        "it is a difference",
    ),
    (
        "forward's name",
        [
            ('timings["forward"] =', 'timings["x"] ='),
            ('timings["backward"] =', 'timings["forward"] ='),
            ('timings["x"] =', 'timings["backward"] ='),
        ],
        "it is backward's",
    ),
    (
        "the spread first",
        [("return float(median), float((p80 - p20) / median)", "return float((p80 - p20) / median), float(median)")],
        "it is the spread, which belongs in second",
    ),
    ("spread not divided", [("(p80 - p20) / median", "p80 - p20")], "not divided by the median"),
    ("quarters", [("(0.2, 0.5, 0.8)", "(0.25, 0.5, 0.75)")], "other percentiles"),
    (
        "one list for all phases",
        [("        samples = []\n", ""), ("    timings = {}\n", "    timings = {}\n    samples = []\n")],
        "backward's median(.|\n)*rounds of earlier phases",
    ),
    ("rounded", [("float(median)", "round(float(median), 2)")], "median is(.|\n)*it is rounded"),
    ("tenths", [("(0.2, 0.5, 0.8)", "(0.1, 0.5, 0.9)")], "other percentiles"),
    ("max - min", [("(p80 - p20) / median", "numpy.ptp(samples[warmup:]) / median")], "slowest minus fastest"),
    (
        "percentile of a share",
        [(QUANTILES, QUANTILES.replace("quantile", "percentile").replace("0.5", "50"))],
        "numpy.percentile 20 and 80",
    ),
    (
        "spread of all",
        [("return float(median)", "p20, p80 = numpy.quantile(samples, (0.2, 0.8))\n        return float(median)")],
        "warm-up rounds count, in which functions are",
    ),
    (
        "standard deviation",
        [("(p80 - p20) / median", "numpy.std(samples[warmup:]) / median")],
        "the standard deviation",
    ),
    ("percent", [("(p80 - p20) / median", "100 * (p80 - p20) / median")], "a share, not a percentage"),
    ("a round for the median", [(QUANTILES, INDEX)], r"an even number of rounds, 3 .*(.|\n)*lies between two"),
    (
        "rounds for the percentiles",
        [
            (QUANTILES, INDEX),
            ("return float(median)", "median = numpy.median(samples[warmup:])\n        return float(median)"),
        ],
        "a percentile may lie between two rounds: use",
    ),
    ("an error", [("numpy.quantile", "numpy.quantiles")], r"GPU-bound, 3 \+ 11 rounds: AttributeError"),
    (
        "one loss",
        [("timed(model.forward, model.backward)", "timed(lambda loss=model.forward(): loss, model.backward)")],
        "a loss can go backward only once: before",
    ),
    (
        "its own clock",
        [("        samples = []", "        import time\n\n        clock, samples = time.perf_counter, []")],
        "clock.. was never called",
    ),
]

_RIGHT = [
    whole(LOOPS),
    whole(ONE_LOOP),
    whole(LISTS),
    whole(UNTIMED_WARM_UP),
    [("samples[warmup:]", "samples[-runs:]"), ("1e3 * (clock() - started)", "clock() * 1000 - started * 1000")],
    [(STARTS, STARTS.replace("synchronize()", "synchronize()\n            synchronize()"))],
    [(STEP, SPLIT_STEP + "        synchronize()\n")],
    [(QUANTILES, "torch.tensor(samples[warmup:]).quantile(torch.tensor([0.2, 0.5, 0.8]))"), IMPORTS_TORCH],
    [
        ("return float(median), float((p80 - p20) / median)", "return torch.tensor([median, (p80 - p20) / median])"),
        IMPORTS_TORCH,
    ],
]

BUGS = [("benchmark", *bug) for bug in _BUGS]
DIFFERENT = [("benchmark", changes) for changes in _RIGHT]
