"""Lab 08, exercise 5: which gradients travel together."""


def make_buckets(parameters, bucket_bytes, first_bytes):
    """Lists of parameters, each a bucket, in the order in which the buckets are complete.

    parameters: the trained ones in the model's order, each once; a list, which stays as it is.
    Gradients arrive from the last parameter to the first, and buckets are filled in that order. A
    parameter goes into the bucket of its dtype that is being filled if it fits, and into a new one
    if not: all parameters of a bucket have one dtype, and together at most bucket_bytes, or
    first_bytes in the bucket that is begun first. A parameter larger than that has a bucket alone.
    A bucket is complete when its last parameter has arrived. parameter.nbytes is its size.
    """
    # 1. For each dtype: the bucket that is being filled, and how many bytes are left in it.
    # 2. When is a new one begun, and with how much room?
    # 3. With several dtypes, in which order are the buckets complete?
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
