"""Why ranks that call collectives fail: (pattern, cause) pairs of error messages, and sentences for the rest."""

ONE_RANK = "some ranks call it and others do not: it stands in an if, or behind a return, that not all ranks reach"
UNWAITED = "async_op=True returns at once, and the result is there only after wait(): keep every work and wait for each"
OF_PROCESS_GROUPS = (  # errors of torch.distributed
    (
        r"^NoGroup|^ValueError: Default process group has not been initialized",
        "group= is missing in a call of torch.distributed: without it the call goes to the default group",
    ),
    (
        r"^TouchedTooEarly",
        "between async_op=True and wait() the tensor belongs to the collective: divide, copy or free it before the "
        "call or after wait()",
    ),
    (r"^Mismatch: rank \d+ calls", "which collective comes next depends on the rank"),
    (r"^Mismatch: broadcast: src|^Mismatch: reduce: dst", "all ranks have to name one and the same root"),
    (r"^Mismatch: \w+: elements", "the tensors differ in size between ranks"),
    (r"^Mismatch: \w+: (dtype|op)", "all ranks have to give one dtype, and the same op="),
    (
        r"^ValueError: Must specify global_rank or group_rank",
        "a broadcast names whose tensor it is: group_src=0 (in the group) or src=0 (among all processes); reduce has "
        "group_dst= and dst=",
    ),
    (
        r"^TypeError: Invalid function argument[^\n]*\n?[^\n]*NoneType",
        "p.grad is None: a parameter that is frozen, or that backward has not reached",
    ),
    (
        r"(?s)^TypeError: .*Options.*<practice group",
        "after the tensor comes op: the group is passed by its name, group=group",
    ),
    (r"(?s)^TypeError: .*Options", "op= is one of dist.ReduceOp: SUM, AVG, MAX, MIN …"),
    (
        r"^RuntimeError: (all_gather_into|reduce_scatter)_tensor: \w+ has shape",
        "the whole tensor is as long as the ranks' equal parts together: where the number of ranks does not divide it, "
        "padding comes first",
    ),
    (
        r"^ValueError: Global rank \d+ is not part of group",
        "src= and dst= are ranks of all processes; group_src= and group_dst= are ranks in the group",
    ),
    (
        r"^AttributeError: 'NoneType' object has no attribute 'wait'",
        "without async_op=True a collective waits by itself and returns None",
    ),
    (r"^ValueError: \w+: tensors must be contiguous", "a slice or a column: collectives take one run of memory"),
    (
        r"^RuntimeError: a (view of a )?leaf Variable that requires grad",
        "parameters are changed in place within torch.no_grad() only",
    ),
)
