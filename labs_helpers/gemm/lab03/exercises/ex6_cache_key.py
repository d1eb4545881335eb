"""Lab 03, exercise 6: what a remembered configuration depends on."""

import hashlib


def cache_key(kernel, source, M, N, K, strides, dtype, gpu, triton):
    """One line of text under which the best configuration of a kernel is remembered.

    kernel: its name. source: its code, many lines; who edits the kernel must not find the old one's
    configuration. M, N, K: shapes share an entry when each of the three lies in the same bucket, up
    to and including the same power of two (513 … 1024), and Triton compiles the same kernel for
    them. strides: six numbers, A's, B's and C's. dtype: 'float16'. gpu: 'NVIDIA H200'.
    triton: '3.6.0'. The same in every process.
    """
    # 1. The bucket of each of M, N, K: the power of two that it reaches: 1024 → 1024, 1025 → 2048.
    # 2. Triton compiles another kernel where one of M, N, K or a stride is 1, or a multiple of 16:
    #    the kind of each of these nine numbers, three letters of your own.
    # 3. The source as a short digest: hashlib.sha256(source.encode()).hexdigest()[:12].
    # 4. Everything that the best configuration depends on, with something between the parts.
    ### BEGIN SOLUTION
    buckets = [1 << (size - 1).bit_length() for size in (M, N, K)]
    kinds = ["1" if n == 1 else "d" if n % 16 == 0 else "n" for n in (M, N, K, *strides)]
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    shape = "x".join(map(str, buckets))
    return "|".join([kernel, digest, shape, "".join(kinds), dtype, gpu, triton])
    ### END SOLUTION
