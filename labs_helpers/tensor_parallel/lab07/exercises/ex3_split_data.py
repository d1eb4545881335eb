"""Lab 07, exercise 3: each copy of the model trains on its own part of the data."""


def split_data(x_train, y_train, mp_size, dp_size, rank):
    """This rank's part of the training data, (x, y), in the order of the whole.

    x_train: (n, …), y_train: (n, …), NumPy arrays. The grid is that of get_info. The ranks of one
    model get the same n / dp_size samples: the first of them for dp_idx 0, the next for dp_idx 1,
    and so on. The parts may be views. ValueError if dp_size does not divide n.
    """
    # All ranks of a model need the same samples. Which index tells the models apart?
    ### BEGIN SOLUTION
    n = len(x_train)
    if n % dp_size:
        raise ValueError(f"dp_size {dp_size} does not divide {n} samples")
    dp_idx, part = rank // mp_size, n // dp_size
    mine = slice(dp_idx * part, (dp_idx + 1) * part)
    return x_train[mine], y_train[mine]
    ### END SOLUTION
