"""Transfer exercise of lab 09: shards inside nodes and replicas between them; checks values and traffic per link."""

import weakref
from functools import partial

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import GATHERED_SHAPE, SCATTERED_SHAPE
from labs_helpers.data_parallel.lab09.checks.hybrid_mistakes import Setting
from labs_helpers.data_parallel.lab09.checks.on_ranks import alone, expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import Places, places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers
from labs_helpers.data_parallel.lab09.shards import step_once
from labs_helpers.practice.process_groups import second_group

ERRORS = (
    (r"has no len|object is not subscriptable", "gradients is an iterator: you can loop over it only once"),
    (SCATTERED_SHAPE, "reduce-scatter the gradient among the ranks of one node, shard_group"),
    (GATHERED_SHAPE, "gather whole from the shards of one node's ranks, shard_group"),
    (r"StopIteration", "there may be only one gradient"),
)
SGD, ADAMW = partial(torch.optim.SGD, lr=0.5), partial(torch.optim.AdamW, lr=0.1)
SLOW = "more than one shard per step crosses nodes: reduce inside the node first, and add the micro-batches there"
ADVICE = (
    "take 2 nodes of 2 ranks with one parameter per shard, and write down what each rank holds after each collective."
)
TABLE = (  # ranks per node, nodes, elements, micro-batches, max_norm, optimizer
    ("3 nodes of 4 ranks", 4, 3, 8, 1, 1e4, SGD),
    ("3 micro-batches", 2, 2, 8, 3, 1e4, SGD),
    ("clipped, 2 nodes of 3 ranks", 3, 2, 12, 2, 12.0, SGD),
    ("clipped, 3 nodes of 2 ranks, AdamW", 2, 3, 8, 2, 9.0, ADAMW),
    ("one node of 3 ranks, a norm close to zero", 3, 1, 6, 2, 1e-6, SGD),
    ("3 nodes of one rank: data parallelism", 1, 3, 4, 2, 7.0, SGD),
)


@exercise("09/10", "transfer: shards inside a node", points=50, minutes=40)
def hybrid_step(student):
    step_once()
    of_norm, of_whole = RankTensors("norm", ADVICE), RankTensors("whole", ADVICE)
    for title, shards, nodes, n, micro, max_norm, optimizer in TABLE:
        ranks = shards * nodes
        # Neighbors share a node. The second case uses a different order, so that rank and place differ.
        order = list(range(ranks)) if title != "3 micro-batches" else [2, 0, 3, 1]
        inside = [order[i * shards : (i + 1) * shards] for i in range(nodes)]
        at = places(ranks, inside)
        scale = 1e-7 if max_norm < 1e-3 else 1.0
        whole = scale * numbers(n, 7)
        gradients = [
            [[scale * numbers(n, 1000 * s + 31 * r + k) for k in range(micro)] for r in range(ranks)] for s in (0, 1)
        ]
        peers = [[node[k] for node in inside] for k in at.place]
        own = [(whole, [g[r] for g in gradients], peers[r], max_norm, optimizer) for r in range(ranks)]
        run = on_ranks(title, student, _call, own, errors=ERRORS, groups=inside)
        settings = [Setting(given, max_norm, at, SGD.keywords["lr"]) for given in gradients]
        clipped = [one.factor(one.mean.norm()) * one.mean for one in settings]
        before, *right = alone(whole, clipped, optimizer)
        for step, setting in enumerate(settings):
            case = f"{title}, step {step + 1}"
            norms, wholes, left = zip(*(steps[step] for steps in run.results), strict=True)
            norm = [setting.mean.norm()] * ranks
            of_norm.expect(case, norms, norm, setting.norms, none="return the norm")
            causes = partial(setting.updates, before) if optimizer is SGD else tuple
            of_whole.expect(case, wholes, [right[step]] * ranks, causes)
            if any(left):
                said = f"rank {left.index(True)}'s shard.grad is not None after the step"
                raise Wrong(case, said, cause="optimizer.zero_grad()")
            before = right[step]
        _expect_links(title, run, at, nodes, n, micro)
        crosses = f"{n // shards} of {n} numbers per step cross between nodes" if nodes > 1 else "nothing crosses"
        batches = f"{micro} micro-batch{'es' * (micro > 1)}"
        yield f"{title}, {batches}: {crosses}; norm {float(settings[0].mean.norm()):.4g}"


def _call(student, group, whole, gradients, peers, max_norm, make):
    replicas = second_group(group, peers)
    whole = whole.clone()
    shard = nn.Parameter(whole.chunk(group.size())[group.rank()])
    optimizer, steps = make([shard]), []
    for own in gradients:
        norm = student(whole, _one_by_one(own), optimizer, shard, max_norm, group, replicas)
        norm = norm.detach().clone() if isinstance(norm, torch.Tensor) else norm
        steps.append((norm, whole.clone(), shard.grad is not None))
    return steps


def _one_by_one(gradients):
    """Yield copies of the gradients. Raise Wrong if more than one exists when the next is requested."""
    there = []
    for one in gradients:
        fresh = one.clone()
        there.append(weakref.ref(fresh))
        yield fresh
        del fresh  # the caller's loop variable still holds the last one until the next arrives
        if (kept := sum(ref() is not None for ref in there)) > 1:
            cause = "reduce each gradient to its shard, and release it before you take the next"
            raise Wrong("", f"keeps {kept} whole gradients at a time", cause=cause)


def _expect_links(case: str, run, at: Places, nodes: int, n: int, micro: int) -> None:
    """Check the traffic: one all-reduce of a shard per step between nodes, and no more than necessary inside."""
    shard = ("all-reduce", n // at.size)

    def crosses(rank, others):
        return not set(others) <= set(at.of_rank[rank])

    def across(made):
        if micro > 1 and made == [shard] * 2 * micro:
            return "you send every micro-batch between nodes, but you can add them inside a node first"
        if ("all-reduce", 1) in made:
            return "replicas hold the same shard and the same norm, so nothing remains to add between nodes"
        return SLOW if any(size > n // at.size for _, size in made) else ""

    def local(made):
        if ("all-reduce", n) in made:
            return "an all-reduce gives the whole gradient to every rank, but a rank needs only its shard"
        once = sorted([("reduce-scatter", n), *rest] * 2)
        return "you add whole gradients first, which requires memory for one more whole gradient" * (
            sorted(made) == once
        )

    rest = [("all-gather", n), ("all-reduce", 1)]
    expect_sent(f"{case}, between nodes", run, [shard] * (2 * (nodes > 1)), across, crosses)
    inside = ([("reduce-scatter", n)] * micro + rest) * (2 * (at.size > 1))
    expect_sent(f"{case}, inside a node", run, inside, local, lambda *one: not crosses(*one))
