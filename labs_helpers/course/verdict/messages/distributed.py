"""Error messages of torch.distributed, as PyTorch and practice ranks say them."""

import re

NOT_A_TENSOR = r"Expected parameter `tensor` of type"
GATHERED_SHAPE = r"all_gather_into_tensor: output has shape"
SCATTERED_SHAPE = r"reduce_scatter_tensor: input has shape"
TOUCHED = r"^TouchedTooEarly[^\n]* changed"
SENT_AGAIN = "the same tensor is sent a second time while the first all-reduce of it is under way"
UNWAITED = "async_op=True returns at once, and the result is there only after wait(): keep every work and wait for each"
NAMES_OF_RANKS = (  # a row for labs whose answers are given a group
    r"^NameError: name '(rank|size|world_size)'",
    "dist.get_rank(group) and dist.get_world_size(group) know them",
)


def _of_sizes(match: re.Match) -> str:
    """Why a whole tensor is not as long as the ranks' parts together, of (whole, ranks, part)."""
    whole, ranks, part = map(int, match.groups())
    if part >= whole > 0 and ranks > 1:
        return "the whole tensor and this rank's part are exchanged: the part is the shorter one"
    if part and whole % part == 0 and whole // part > ranks:
        return (
            f"the whole is cut into {whole // part} parts, and the group has {ranks} ranks: dist.get_world_size(group)"
        )
    return PADDING


PADDING = (
    "the whole tensor is as long as the ranks' equal parts together: where the number of ranks does not divide it, "
    "padding comes first"
)
ERRORS = (
    (
        r"^NoGroup|^ValueError: Default process group has not been initialized",
        "group= is missing in a call of torch.distributed: without it the call goes to the default group",
    ),
    (r"^TouchedTooEarly[^\n]* second time", SENT_AGAIN),
    (
        TOUCHED,
        "between async_op=True and wait() the tensor belongs to the collective: divide, copy or free it before the "
        "call or after wait()",
    ),
    (r"^Mismatch: (broadcast: src|reduce: dst)", "all ranks have to name one and the same root"),
    (
        r"^ValueError: Must specify global_rank or group_rank",
        "a broadcast names whose tensor it is: group_src=0 (in the group) or src=0 (among all processes); reduce has "
        "group_dst= and dst=",
    ),
    (
        NOT_A_TENSOR + r"[^\n]*\n?[^\n]*NoneType",
        "p.grad is None: a parameter that is frozen, or that backward has not reached",
    ),
    (NOT_A_TENSOR, "a collective takes a tensor, not a number"),
    (
        r"(?s)^TypeError: .*Options.*<practice group",
        "after the tensor comes op: the group is passed by its name, group=group",
    ),
    (
        r"^TypeError: (all_reduce|broadcast)\(\) got an unexpected keyword",
        "the arguments are all_reduce(tensor, op, group, async_op) and broadcast(tensor, group=, group_src=)",
    ),
    (r"(?s)^TypeError: .*Options", "op= is one of dist.ReduceOp: SUM, AVG, MAX, MIN …"),
    (rf"(?:{GATHERED_SHAPE}|{SCATTERED_SHAPE}) \((\d+),\)\D*(\d+) ranks × \w+ \((\d+),\)", _of_sizes),
    (f"{GATHERED_SHAPE}|{SCATTERED_SHAPE}", PADDING),
    (
        r"^ValueError: Global rank \d+ is not part of group",
        "src= and dst= are ranks of all processes; group_src= and group_dst= are ranks in the group",
    ),
    (
        r"has no attribute '(wait|is_completed)'",
        "async_op=True returns a handle; without it the call itself waits, and returns None",
    ),
    (
        r"^ValueError: \w+: tensors must be contiguous",
        "a slice or a column has gaps, and collectives take one run of memory: .contiguous() copies it",
    ),
    (
        r"has no attribute '(all_reduce|broadcast|all_gather)'",
        "the functions are torch.distributed's: dist.all_reduce(tensor, group=group)",
    ),
)
