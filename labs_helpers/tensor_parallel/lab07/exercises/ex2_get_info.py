"""Lab 07, exercise 2: a rank's place in the grid, its two communicators, and its part of a layer."""


def get_info(comm, rank, mp_size, dp_size, fc_layer, in_dim, out_dim):
    """(mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim) of this rank.

    mp_idx, dp_idx: its place in the grid of mp_size × dp_size ranks, mp_idx running fastest: with
    mp_size 2, ranks 0 and 1 hold the first copy of the model. mp_comm: the communicator of the
    mp_size ranks with the same dp_idx, in the order of mp_idx. dp_comm: of the dp_size ranks with
    the same mp_idx, in the order of dp_idx. part_in_dim, part_out_dim: this rank's part of a
    layer of in_dim × out_dim. fc_layer: "fc_q", "fc_k" and "fc_v" are split on the output
    dimension, "fc_o" on the input dimension.

    Every rank calls it; comm has Split(color=, key=): ranks of one color come into one
    communicator, ordered by key. ValueError on every rank, before anything is sent: mp_size ·
    dp_size is not comm's size, fc_layer is another, or mp_size does not divide the dimension that
    is split.
    """
    # 1. What cannot be: raise ValueError, with the sizes in its message.
    # 2. The two indices. 3. The two communicators. 4. The two dimensions.
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
