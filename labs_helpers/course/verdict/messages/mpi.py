"""Error messages of MPI, as practice ranks raise them."""

UNWAITED = (
    "MPI may read or write the buffer until Wait() returns: keep the request that the call returns, and call its Wait()"
)
ERRORS = (
    (
        r"^BufferError: the buffer is not contiguous",
        "a transposed or sliced view is not contiguous, and MPI needs contiguous memory: np.ascontiguousarray "
        "makes a copy to send (np.copy, np.array and astype may keep the order in memory)",
    ),
    (r"^SendBufferOverwritten", "the call receives into the array that it sends; receive into a separate buffer"),
    (r"^ValueError: \w+: send and recv share", "recv needs a separate buffer: np.empty"),
    (
        r"^TypeError: (rank \d+ sent (?!float64)\w+, .* receives it as|\w+: send is (?!float64)\w+, recv is) float64",
        "np.empty(n) and np.zeros(n) are float64, whatever you send: use np.empty_like(…) or pass dtype=",
    ),
    (
        r"\(\) missing 1 required positional argument: 'recvbuf'",
        "methods with a capital letter, such as Allgather, write into their second argument; allgather returns a list",
    ),
    (r"^Mismatch: rank \d+ calls", "the ranks call different collectives: the order of the calls depends on the rank"),
    (
        r"^Mismatch: \w+: elements",
        "the ranks are in different collectives, or they pass tensors of different sizes. Does each rank call "
        "the same collectives in the same order, outside of any if?",
    ),
    (r"^Mismatch: \w+: (dtype|op)", "all ranks must pass the same dtype and the same op="),
)
