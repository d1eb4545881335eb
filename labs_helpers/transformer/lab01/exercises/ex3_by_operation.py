"""Lab 01, exercise 3: which of PyTorch's operations the GPU's time belongs to."""


def by_operation(events):
    """{name: (calls, µs)} of a trace's operations, the dearest first.

    events: as in exercise 2, those with "ph" == "X" with "args" too. An operation of PyTorch is an
    event with "cat" == "cpu_op"; its e["args"]["External id"] is its own. Each kernel, copy or
    memset that it launched itself, on any stream, carries the same number there; not every one
    has that key, and "correlation" is another number.
    µs: the GPU's time, the sum over those. calls: how often the operation launched something,
    however many kernels each time. Left out are operations that launched nothing (they called
    others, or made a view), and GPU work of no operation in the trace.
    """
    # 1. External id → the operation's name, from the events of category "cpu_op".
    # 2. Go over the GPU's work: find its operation, add up µs, collect the ids that launched.
    # 3. A dict in order of µs, the largest first.
    ### BEGIN SOLUTION
    names = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    us, ids = {}, {}
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            number = event["args"].get("External id")
            if number in names:
                name = names[number]
                us[name] = us.get(name, 0.0) + event["dur"]
                ids.setdefault(name, set()).add(number)
    return {name: (len(ids[name]), us[name]) for name in sorted(us, key=us.get, reverse=True)}
    ### END SOLUTION
