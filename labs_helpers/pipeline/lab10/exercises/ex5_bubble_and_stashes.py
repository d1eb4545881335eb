"""Lab 10, exercise 5: the bubble and the stashes of a schedule, in closed form."""


def bubble_and_stashes(schedule, ranks, micro_batches, chunks=1):
    """Return (the bubble as a share of the step, the most stashes that rank 0 holds at a time).

    schedule: "GPipe", "1F1B" or "interleaved". chunks: the stages per rank, 1 unless interleaved;
    the stages of a rank together take as long as its single stage would. All ranks take equally
    long for a micro-batch, a backward pass takes the same multiple of a forward pass in every
    stage, and messages take no time. The bubble is the time in which a rank waits, from the start
    of the step to its end. A stash is what one forward pass of one stage keeps for its backward
    pass. Interleaved 1F1B starts with 2 (ranks − 1) + (chunks − 1) ranks forward passes of single
    stages on rank 0, and then alternates; `ranks` divides its micro-batches. GPipe and 1F1B may
    have fewer micro-batches than ranks.
    """
    # 1. How long does a rank work in a step, and how long does it wait? Count in micro-batches.
    # 2. How many forward passes does rank 0 run before its first backward pass ends?
    ### BEGIN SOLUTION
    work, wait = micro_batches * chunks, ranks - 1  # in passes through one stage
    before = {
        "GPipe": micro_batches,
        "1F1B": ranks,
        "interleaved": 2 * (ranks - 1) + (chunks - 1) * ranks + 1,
    }
    return wait / (work + wait), min(before[schedule], work)
    ### END SOLUTION
