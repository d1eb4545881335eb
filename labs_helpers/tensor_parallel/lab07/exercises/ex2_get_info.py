"""Lab 07, exercise 2: a rank's grid indices, its two communicators, and its part of a layer."""


def get_info(comm, rank, mp_size, dp_size, fc_layer, in_dim, out_dim):
    """Return this rank's (mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim).

    mp_idx, dp_idx: the rank's indices in the grid of mp_size × dp_size ranks. mp_idx varies
    fastest: with mp_size 2, ranks 0 and 1 hold the first copy of the model. mp_comm: the
    communicator of the mp_size ranks with the same dp_idx, in the order of mp_idx. dp_comm: the
    communicator of the dp_size ranks with the same mp_idx, in the order of dp_idx. part_in_dim,
    part_out_dim: the size of this rank's part of an in_dim × out_dim layer. The layers "fc_q",
    "fc_k" and "fc_v" are split on the output dimension, "fc_o" on the input dimension.

    Every rank calls this function. comm.Split(color=, key=) puts all ranks of one color into one
    communicator, ordered by key. Raise ValueError on every rank, before any communication, if
    mp_size · dp_size is not comm's size, if fc_layer is none of these four, or if mp_size does
    not divide the dimension that is split.
    """
    # 1. If the arguments are impossible, raise ValueError with the sizes in its message.
    # 2. Compute the two indices. 3. Split off the two communicators. 4. Compute the two sizes.
    ### BEGIN SOLUTION
    if mp_size * dp_size != comm.Get_size():
        raise ValueError(f"{mp_size} × {dp_size} is not {comm.Get_size()} ranks")
    if fc_layer not in ("fc_q", "fc_k", "fc_v", "fc_o"):
        raise ValueError(f"fc_layer is {fc_layer!r}, not fc_q, fc_k, fc_v or fc_o")
    split_dim = in_dim if fc_layer == "fc_o" else out_dim
    if split_dim % mp_size:
        raise ValueError(f"mp_size {mp_size} does not divide the {split_dim} of {fc_layer}")
    mp_idx, dp_idx = rank % mp_size, rank // mp_size
    mp_comm = comm.Split(color=dp_idx, key=mp_idx)
    dp_comm = comm.Split(color=mp_idx, key=dp_idx)
    part = split_dim // mp_size
    part_in_dim, part_out_dim = (part, out_dim) if fc_layer == "fc_o" else (in_dim, part)
    return mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim
    ### END SOLUTION
