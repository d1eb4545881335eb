"""Lab 03, exercise 4: measure every configuration with a correct result, and no other."""

import math


def grid_search(configs, run, expected, bound, measure):
    """Return (best, times): the fastest correct configuration, and Config → ms in order.

    run(config) returns the result, a tensor. It raises an Exception if the configuration cannot
    run: on a GPU Triton's OutOfResources, which is not a RuntimeError. expected: the result in
    float64. bound: the largest error allowed in each element, from the dtype and K. A configuration
    is correct if |result − expected| ≤ bound in every element; NaN is never correct.
    measure(config) returns the time in ms. A configuration that raises or is wrong gets math.inf
    and is not timed. After a KeyboardInterrupt, return what was measured. best is None if no
    configuration is correct.
    """
    times = {}
    # 1. Run each configuration. After an Exception (not KeyboardInterrupt) store math.inf; go on.
    # 2. Compare its error in float64 with the bound, element by element. If wrong: math.inf; go on.
    # 3. Only now measure it.
    # 4. Around the loop: a KeyboardInterrupt ends it and keeps the times measured so far.
    # 5. Find the fastest configuration with a finite time.
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
        print(f"interrupted after {len(times)} configurations")
    best = min(times, key=times.get, default=None)
    return best if best is not None and math.isfinite(times[best]) else None, times
    ### END SOLUTION
