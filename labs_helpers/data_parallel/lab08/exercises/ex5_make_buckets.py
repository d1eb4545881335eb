"""Lab 08, exercise 5: divide the gradients into buckets."""


def make_buckets(parameters, bucket_bytes, first_bytes):
    """Divide parameters into buckets; return the buckets (lists) in the order of their completion.

    parameters: a list of the trained parameters in the model's order, each once; do not change it.
    Gradients arrive from the last parameter to the first, and fill the buckets in this order. Each
    dtype has its own open bucket. A parameter goes into the open bucket of its dtype if it fits,
    and otherwise opens a new one. The parameters of a bucket therefore share one dtype. Together
    they have at most bucket_bytes, or first_bytes in the bucket that is opened first. A parameter
    larger than the limit gets its own bucket. A bucket is complete when its last parameter has
    arrived. The size of a parameter is parameter.nbytes.
    """
    # 1. For each dtype, keep the open bucket and the number of bytes left in it.
    # 2. When do you open a new bucket, and how many bytes may it hold?
    # 3. With several dtypes, in which order do the buckets become complete?
    ### BEGIN SOLUTION
    buckets, filling, room, arrival = [], {}, {}, {}
    for place, parameter in enumerate(reversed(parameters)):
        kind = parameter.dtype
        if kind not in filling or parameter.nbytes > room[kind]:
            filling[kind], room[kind] = [], bucket_bytes if buckets else first_bytes
            buckets.append(filling[kind])
        filling[kind].append(parameter)
        room[kind] -= parameter.nbytes
        arrival[parameter] = place
    return sorted(buckets, key=lambda bucket: arrival[bucket[-1]])
    ### END SOLUTION
