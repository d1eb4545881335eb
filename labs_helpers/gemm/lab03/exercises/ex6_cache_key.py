"""Lab 03, exercise 6: build a cache key from everything that the best configuration depends on."""

import hashlib


def cache_key(kernel, source, M, N, K, strides, dtype, gpu, triton):
    """Return the cache key of a kernel's best configuration, one line of text.

    kernel: its name. source: its code, many lines; after an edit the key must change. M, N, K: two
    shapes share a key if each size stays in its bucket, up to and including the same power of two
    (513 … 1024), and Triton compiles the same kernel for both. strides: six numbers, two each for
    A, B and C. dtype: 'float16'. gpu: 'NVIDIA H200'. triton: '3.6.0'. The key must be the same in
    every process.
    """
    # 1. Round M, N and K up to a power of two, their bucket: 1024 → 1024, 1025 → 2048.
    # 2. Triton compiles a different kernel if M, N, K or a stride is 1, or a multiple of 16:
    #    choose three letters, and encode the kind of each of these nine numbers.
    # 3. Shorten the source to a digest: hashlib.sha256(source.encode()).hexdigest()[:12].
    # 4. Join everything that the best configuration depends on, with a separator between the parts.
    ### BEGIN SOLUTION
    buckets = [1 << (size - 1).bit_length() for size in (M, N, K)]
    kinds = ["1" if n == 1 else "d" if n % 16 == 0 else "n" for n in (M, N, K, *strides)]
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    shape = "x".join(map(str, buckets))
    return "|".join([kernel, digest, shape, "".join(kinds), dtype, gpu, triton])
    ### END SOLUTION
