"""Lab 06, exercise 6: fit the cost of a message, and find the size from which the ring is faster."""

import math

import numpy as np


def fit_cost(nbytes, seconds, ranks):
    """Return (alpha, beta, crossover): a message of n bytes costs alpha + beta·n seconds.

    nbytes, seconds: arrays, the sizes of messages and their measured times. ranks: a power of
    two ≥ 2. alpha: seconds per message; beta: seconds per byte; the fit minimizes the sum of
    the squared *relative* errors. crossover: bytes of the vector at which the ring all-reduce
    and recursive doubling cost the same; math.inf if the ring never catches up.
    Source: Thakur, Rabenseifner, Gropp: Optimization of collective communication, 2005.
    """
    # 1. Least squares: (alpha + beta·n) / seconds should be 1 at every size. np.linalg.lstsq.
    # 2. Recursive doubling: log2(ranks) steps; each sends the whole vector.
    # 3. The ring: 2·(ranks − 1) steps; each sends a chunk of n / ranks bytes.
    # 4. Set the two costs equal and solve for n.
    ### BEGIN SOLUTION
    nbytes, seconds = np.asarray(nbytes, float), np.asarray(seconds, float)
    rows = np.column_stack([1 / seconds, nbytes / seconds])
    alpha, beta = map(float, np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)[0])
    more_messages = 2 * (ranks - 1) - math.log2(ranks)
    fewer_vectors = math.log2(ranks) - 2 * (ranks - 1) / ranks
    crossover = alpha * more_messages / (beta * fewer_vectors) if fewer_vectors > 0 else math.inf
    return alpha, beta, crossover
    ### END SOLUTION
