"""What a sharded module has to hold, and when: its shard, and weights that are whole only while it computes."""

import numpy as np
from torch import nn

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference
from labs_helpers.data_parallel.lab09.shards import cut

LATER = "until the module's next use; it is gathered in each forward and each backward pass"
AT = {
    "made": ("when shard_module returns", "nothing has been used yet: free it at the end"),
    "between": ("between forward and backward", "a forward hook frees it"),
    "other": ("while the other module computes", "a forward hook frees it, before the next module begins"),
    "behind": ("after backward", "once the last gradient has arrived, the weights have done their work"),
}
COMPUTES = "a module computes"
NO_MEMORY = (
    "it is gathered, but whole has no memory when the module computes: resize_(whole.nbytes) comes before the "
    "gather, and free after the module"
)
AFTERWARDS = (
    "register_full_backward_hook is called after the module's backward: what it gathers stays; a pre hook is before"
)


def _not_a_copy(difference: Difference) -> str:
    ((mine, right),) = difference.pairs
    if mine.shape != right.shape:
        return ""
    return "it is copied before whole is freed" if np.isnan(mine).any() else "its values are not whole's"


def expect_parameter(shard, whole) -> None:
    """Raise Wrong unless the shard is a parameter with memory of its own. whole: the storage that it is a part of."""
    if not isinstance(shard, nn.Parameter):
        kind = "None" if shard is None else f"a {type(shard).__name__}"
        cause = "a return is missing" if shard is None else "an optimizer takes nn.Parameter(…) of it"
        raise Wrong("", f"returned {kind}; an nn.Parameter is asked for", cause=cause)
    if shard.untyped_storage().data_ptr() == whole.data_ptr():
        cause = "a slice of whole has whole's memory, which is freed; .clone() copies it first"
        raise Wrong("", "returned a shard that is a view of whole", cause=cause)


def expect_shards(case: str, rank: int, result, start, place: int, size: int) -> None:
    shards = Comparison(f"rank {rank}'s shard", otherwise=(_not_a_copy,))
    for m, one in enumerate(result["shards"]):
        right = cut(start[m], size)
        others = [("it is another rank's part", part) for i, part in enumerate(right) if i not in (0, place)]
        first = ("every rank has the first part; its own is dist.get_rank(group)'s", right[0])
        shards.expect(case, one, right[place], lambda first=first, others=others: [first, *others])
    expect_gone(case, rank, result["made"], "made")


def expect_gone(case: str, rank: int, alive, when: str, which=(0, 1)) -> None:
    for m in which:
        if alive[m]:
            said, cause = AT[when]
            raise Wrong(case, f"rank {rank}: module {m}'s whole has its memory {said}", cause=cause)


def expect_whole_when(case: str, rank: int, state, run) -> None:
    for m, when in ((0, "first"), (1, "second")):
        if not state[when][m]:
            called = run.started_between(rank, "forward begins", COMPUTES)
            cause = "a forward pre-hook gathers it" if m or not called else NO_MEMORY
            raise Wrong(case, f"rank {rank}: module {m} computes, and whole has no memory", cause=cause)
    expect_gone(case, rank, state["second"], "other", (0,))
    expect_gone(case, rank, state["between"], "between")
    if state["late"] and any(state["behind"]):
        raise Wrong(case, f"rank {rank}: whole has its memory after backward", cause=AFTERWARDS)
    expect_gone(case, rank, state["behind"], "behind")


def expect_when(case: str, run, ranks: int, size: int) -> None:
    for rank in range(ranks if size > 1 else 0):
        for phase in ("forward", "backward"):
            names = [c.name for c in run.started_between(rank, f"{phase} begins", f"{phase} ends")]
            if not any("gather" in name for name in names):
                hook = "full_backward" if phase == "backward" else phase
                cause = f"register_{hook}_pre_hook(gather), and gather gathers each time"
                found = f"rank {rank}: nothing is gathered in the {phase} pass; whole has no memory {LATER}"
                raise Wrong(case, found, cause=cause)


def cost(made: list, steps: int) -> str:
    if sum(kind == "all-gather" for kind, _ in made) > 4 * steps:
        return "gathered more often than once forward and once backward"
    return ""
