"""Expectations on a sharded module: its shard, and weights that have memory only while it computes."""

import numpy as np
from torch import nn

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import Places
from labs_helpers.data_parallel.lab09.shards import cut

LATER = "until its next use, for which each forward and each backward pass gathers it again"
AT = {
    "made": (
        "when shard_module returns",
        "call free() at the end too, and let it release the memory with whole.untyped_storage().resize_(0)",
    ),
    "between": ("between forward and backward", "a forward hook must free it"),
    "other": ("while the other module computes", "a forward hook must free it before the next module begins"),
    "late": (
        "after backward",
        "register_full_backward_hook runs after the module's backward, so "
        "what it gathers stays; a pre-hook runs before",
    ),
    "behind": ("after backward", "the weights are no longer needed after the last gradient"),
}
NO_MEMORY = (
    "it is gathered, but whole has no memory when the module computes: call resize_(whole.nbytes) before the "
    "gather, and free after the module"
)


def _not_a_copy(difference: Difference) -> str:
    if any(mine.shape != right.shape for mine, right in difference.pairs):
        return ""
    nan = any(np.isnan(mine).any() for mine, _ in difference.pairs)
    return "copy it before you free whole" if nan else "its values differ from whole's"


def expect_parameter(shard, whole) -> None:
    """Raise Wrong unless the shard is a parameter with its own memory. whole: the storage that it is a part of."""
    if not isinstance(shard, nn.Parameter):
        kind = "None" if shard is None else f"a {type(shard).__name__}"
        cause = "a return is missing" if shard is None else "wrap it in nn.Parameter(…) for the optimizer"
        raise Wrong("", f"returned {kind}; expected an nn.Parameter", cause=cause)
    if shard.untyped_storage().data_ptr() == whole.data_ptr():
        cause = "a slice of whole shares whole's memory, which you free; copy it first with .clone()"
        raise Wrong("", "returned a shard that is a view of whole", cause=cause)


def expect_shards(case: str, shards: list, start, at: Places) -> None:
    """Compare each rank's shard with its part of the flat parameters `start`."""
    parts = cut(start, at.size)
    causes = [("every rank has the first part; use the part of dist.get_rank(group)", [parts[0] for _ in at.place])]
    for shift in range(1, at.size):
        causes.append(("this is another rank's part", [parts[place - shift] for place in at.place]))
    comparison = Comparison("rank {0}'s shard", otherwise=(_not_a_copy,))
    comparison.expect(case, shards, [parts[place] for place in at.place], lambda: causes)


def expect_freed(alive, when: str, modules=(0, 1)) -> None:
    """Raise Wrong if the whole of one of the modules has memory."""
    for m in modules:
        if alive[m]:
            said, cause = AT[when]
            raise Wrong("", f"has memory in module {m}'s whole {said}", cause=cause)


def expect_whole(alive, m: int, layer: nn.Module) -> None:
    """Raise Wrong if a module computes without memory for its parameters, or the previous one still has memory."""
    if not alive[m]:
        cause = NO_MEMORY if layer._forward_pre_hooks else "a forward pre-hook must gather it"
        raise Wrong("", f"computes module {m} while whole has no memory", cause=cause)
    expect_freed(alive, "other", range(m))


def expect_when(case: str, run, ranks: int, size: int) -> None:
    for rank in range(ranks if size > 1 else 0):
        for phase in ("forward", "backward"):
            names = [c.name for c in run.started_between(rank, f"{phase} begins", f"{phase} ends")]
            if not any("gather" in name for name in names):
                hook = "full_backward" if phase == "backward" else phase
                cause = f"register gather with register_{hook}_pre_hook, and let it gather every time"
                found = f"rank {rank} gathers nothing in the {phase} pass; whole has no memory {LATER}"
                raise Wrong(case, found, cause=cause)


def cost(made: list, steps: int) -> str:
    gathers = [kind for kind, _ in made].count("all-gather")
    return "gathers more often than once forward and once backward" * (gathers > 4 * steps)
