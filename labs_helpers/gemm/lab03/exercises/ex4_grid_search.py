"""Lab 03, exercise 4: measure every configuration that is right, and none that is not."""

import math


def grid_search(configs, run, expected, bound, measure):
    """(best, times): the fastest configuration whose result is right, and Config → ms in order.

    run(config) returns the result, a tensor, or raises where the configuration cannot run: on a GPU
    Triton's OutOfResources, which is an Exception but no RuntimeError.
    expected: the result in float64. bound: how far off each of its elements may be, from the dtype
    and K. Right means |result − expected| ≤ bound in every element; NaN is not right.
    measure(config): its time in ms. A configuration that raises or is wrong gets math.inf and is
    not timed. KeyboardInterrupt keeps what was measured. best is None where nothing was right.
    """
    times = {}
    # 1. For each configuration: run it. An Exception (not KeyboardInterrupt) means math.inf; go on.
    # 2. Its error in float64, against the bound, element by element. Not within: math.inf; go on.
    # 3. Only now measure it.
    # 4. Around the loop: a KeyboardInterrupt ends it, and what was measured stays.
    # 5. The fastest of those with a finite time.
    ### BEGIN SOLUTION
    try:
        for config in configs:
            times[config] = math.inf
            try:
                result = run(config)
            except Exception:
                continue
            error = (result.double() - expected).abs()
            if (error <= bound).all():
                times[config] = measure(config)
    except KeyboardInterrupt:
        print(f"interrupted: {len(times)} configurations are kept")
    best = min(times, key=times.get, default=None)
    return best if best is not None and math.isfinite(times[best]) else None, times
    ### END SOLUTION
