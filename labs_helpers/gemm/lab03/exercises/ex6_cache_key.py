"""Lab 03, exercise 6: what a remembered configuration depends on."""

import hashlib


def cache_key(kernel, source, M, N, K, dtype, gpu, triton):
    """One line of text under which the best configuration of a kernel is remembered.

    kernel: its name. source: its code; who edits the kernel must not find the old one's
    configuration. M, N, K: shapes share an entry when each of the three lies in the same bucket, up
    to and including the same power of two (513 … 1024). dtype: 'float16'. gpu: 'NVIDIA H200'.
    triton: '3.6.0'. The same in every process.
    """
    # 1. The bucket of each of M, N, K: the power of two that it reaches: 1024 → 1024, 1025 → 2048.
    # 2. The source as a short digest: hashlib.sha256(source.encode()).hexdigest()[:12].
    # 3. Everything that the best configuration depends on, with something between the parts.
    ### BEGIN SOLUTION
    buckets = [1 << (size - 1).bit_length() for size in (M, N, K)]
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return "|".join([kernel, digest, "x".join(map(str, buckets)), dtype, gpu, triton])
    ### END SOLUTION
