"""Lab 01, exercise 1: measure how long a training step and its phases take."""

import numpy


def benchmark(model, synchronize, clock, warmup=3, runs=9):
    """Time a training step: return {"forward": (median, spread), "backward": …, "step": …}.

    model.forward() returns a loss, model.backward(loss) needs a loss that was not used before, and
    model.update() ends a step. Each only queues its work and returns. synchronize() waits until all
    queued work is done. clock(): the time in seconds. A step is all three calls without a wait in
    between. For each phase, run `warmup` rounds that do not count, then `runs` rounds that do.
    median: of a round's time, in ms. spread: (80th − 20th percentile) / median, a share.
    """
    timings = {}
    # 1. A function that times one phase: nothing is queued when the clock starts, and its work is
    #    done when the clock stops. Calls that must come before the phase also run, but untimed.
    # 2. warmup + runs rounds, of which the last `runs` count.
    # 3. Median and spread by numpy.quantile, in ms, for each of the three phases; return them.
    ### BEGIN SOLUTION

    def timed(prepare, phase):
        samples = []
        for _ in range(warmup + runs):
            ready = prepare()
            synchronize()
            started = clock()
            phase(ready)
            synchronize()
            samples.append(1e3 * (clock() - started))
        p20, median, p80 = numpy.quantile(samples[warmup:], (0.2, 0.5, 0.8))
        return float(median), float((p80 - p20) / median)

    def step(_):
        model.backward(model.forward())
        model.update()

    timings["forward"] = timed(lambda: None, lambda _: model.forward())
    timings["backward"] = timed(model.forward, model.backward)
    timings["step"] = timed(lambda: None, step)
    return timings
    ### END SOLUTION
