"""Error messages of MPI, as practice ranks say them."""

UNWAITED = "until its Wait returns, MPI may still read or write the buffer: keep what the call returns, and call Wait()"
ERRORS = (
    (
        r"^BufferError: the buffer is not contiguous",
        "a transposed or sliced view; MPI takes one run of memory: np.ascontiguousarray makes one to send (np.copy, "
        "np.array and astype keep the order that it has in memory)",
    ),
    (r"^SendBufferOverwritten", "the same vector is sent and written; receive into a buffer of its own"),
    (r"^ValueError: \w+: send and recv share", "recv needs memory of its own: np.empty"),
    (
        r"^TypeError: (rank \d+ sent (?!float64)\w+, .* receives it as|\w+: send is (?!float64)\w+, recv is) float64",
        "np.empty(n) and np.zeros(n) are float64 whatever is sent; np.empty_like(…), or dtype=",
    ),
    (
        r"\(\) missing 1 required positional argument: 'recvbuf'",
        "methods with a capital letter, such as Allgather, write into their second argument; allgather returns a list",
    ),
    (r"^Mismatch: rank \d+ calls", "which collective comes next depends on the rank"),
    (
        r"^Mismatch: \w+: elements",
        "the ranks are at different collectives, or bring tensors of different sizes: does each rank call the same "
        "ones, in the same order, outside of any if?",
    ),
    (r"^Mismatch: \w+: (dtype|op)", "all ranks have to give one dtype, and the same op="),
)
