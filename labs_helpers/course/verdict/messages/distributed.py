"""Error messages of torch.distributed, from PyTorch or from practice ranks."""

import re

NOT_A_TENSOR = r"Expected parameter `tensor` of type"
GATHERED_SHAPE = r"all_gather_into_tensor: output has shape"
SCATTERED_SHAPE = r"reduce_scatter_tensor: input has shape"
TOUCHED = r"^TouchedTooEarly[^\n]* changed"
SENT_AGAIN = "the same tensor is sent a second time while the first all-reduce is still running"
UNWAITED = (
    "async_op=True returns before the collective has finished: keep every work handle, and call wait() on each "
    "before you use the result"
)
NAMES_OF_RANKS = (  # a row for labs whose functions take a group
    r"^NameError: name '(rank|size|world_size)'",
    "call dist.get_rank(group) and dist.get_world_size(group)",
)


def _of_sizes(match: re.Match) -> str:
    """Explain why a whole tensor is not as long as the ranks' parts together; the match gives (whole, ranks, part)."""
    whole, ranks, part = map(int, match.groups())
    if part >= whole > 0 and ranks > 1:
        return "the whole tensor and this rank's part are swapped: the part is the shorter one"
    if part and whole % part == 0 and whole // part > ranks:
        return (
            f"the tensor is cut into {whole // part} parts, but the group has {ranks} ranks: use "
            "dist.get_world_size(group)"
        )
    return PADDING


PADDING = (
    "the whole tensor must be as long as the ranks' equal parts together: pad it first if its length is not a "
    "multiple of the number of ranks"
)
ERRORS = (
    (
        r"^NoGroup|^ValueError: Default process group has not been initialized",
        "group= is missing in a call of torch.distributed: without it, the call uses the default group",
    ),
    (r"^TouchedTooEarly[^\n]* second time", SENT_AGAIN),
    (
        TOUCHED,
        "between async_op=True and wait() the tensor belongs to the collective: divide, copy or free it before "
        "the call or after wait()",
    ),
    (r"^Mismatch: (broadcast: src|reduce: dst)", "all ranks must name the same root"),
    (
        r"^ValueError: Must specify global_rank or group_rank",
        "broadcast needs the rank that sends: group_src=0 (a rank in the group) or src=0 (a rank among all "
        "processes); reduce takes group_dst= and dst=",
    ),
    (
        NOT_A_TENSOR + r"[^\n]*\n?[^\n]*NoneType",
        "p.grad is None: the parameter is frozen, or backward has not reached it",
    ),
    (NOT_A_TENSOR, "a collective takes a tensor, not a number"),
    (
        r"(?s)^TypeError: .*Options.*<practice group",
        "the second positional argument is op; pass the group by name, group=group",
    ),
    (
        r"^TypeError: (all_reduce|broadcast)\(\) got an unexpected keyword",
        "the arguments are all_reduce(tensor, op, group, async_op) and broadcast(tensor, group=, group_src=)",
    ),
    (r"(?s)^TypeError: .*Options", "op= takes a dist.ReduceOp: SUM, AVG, MAX, MIN …"),
    (rf"(?:{GATHERED_SHAPE}|{SCATTERED_SHAPE}) \((\d+),\)\D*(\d+) ranks × \w+ \((\d+),\)", _of_sizes),
    (f"{GATHERED_SHAPE}|{SCATTERED_SHAPE}", PADDING),
    (
        r"^ValueError: Global rank \d+ is not part of group",
        "src= and dst= are ranks among all processes; group_src= and group_dst= are ranks in the group",
    ),
    (
        r"has no attribute '(wait|is_completed)'",
        "async_op=True returns a handle; without it, the call itself waits and returns None",
    ),
    (
        r"^ValueError: \w+: tensors must be contiguous",
        "a slice or a column has gaps in memory, but collectives need contiguous tensors: .contiguous() makes a "
        "copy without gaps",
    ),
    (
        r"has no attribute '(all_reduce|broadcast|all_gather)'",
        "collectives are functions of torch.distributed: dist.all_reduce(tensor, group=group)",
    ),
)
