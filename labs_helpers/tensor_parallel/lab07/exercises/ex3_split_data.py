"""Lab 07, exercise 3: each copy of the model trains on its own part of the data."""


def split_data(x_train, y_train, mp_size, dp_size, rank):
    """Return (x, y), this rank's part of the training data, with the samples in their order.

    x_train: (n, …), y_train: (n, …), NumPy arrays. The grid is the one of get_info. All ranks of
    one model get the same n / dp_size samples: dp_idx 0 gets the first n / dp_size, dp_idx 1 the
    next, and so on. The parts may be views. Raise ValueError if dp_size does not divide n.
    """
    # All ranks of a model need the same samples. Which index distinguishes the models?
    ### BEGIN SOLUTION
    n = len(x_train)
    if n % dp_size:
        raise ValueError(f"dp_size {dp_size} does not divide {n} samples")
    dp_idx, part = rank // mp_size, n // dp_size
    mine = slice(dp_idx * part, (dp_idx + 1) * part)
    return x_train[mine], y_train[mine]
    ### END SOLUTION
