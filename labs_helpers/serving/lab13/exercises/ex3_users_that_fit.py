"""Lab 13, exercise 3: the bytes of a cache per position, and how many users fit on a chip."""


def users_that_fit(config, parameters, memory, length, size):
    """Return (bytes_per_position, reserved, paged): how many users a chip serves at a time.

    config: layers, key_value_heads, head_dim, and context, the longest sequence. parameters:
    number of weights. Weights and cache are bfloat16, and share `memory` bytes with nothing else.
    bytes_per_position: of one position's keys and values, in all layers. reserved: the number of
    users if each one reserves memory for `context` positions. paged: the number of users if each
    one holds `length` positions, in blocks of `size` positions; a block belongs to one user.
    """
    # 1. Count keys and values of all layers, and the bytes of each number.
    # 2. What do the weights leave for the cache?
    # 3. Divide into whole users, or into whole blocks and then into users.
    ### BEGIN SOLUTION
    per_position = 2 * 2 * config.layers * config.key_value_heads * config.head_dim
    left = memory - 2 * parameters
    reserved = left // (per_position * config.context)
    blocks = left // (per_position * size)
    return per_position, reserved, blocks // -(-length // size)
    ### END SOLUTION
