"""The transfer exercise of lab 09: shards inside nodes, replicas between them; values, and bytes per link."""

from functools import partial

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import GATHERED_SHAPE, SCATTERED_SHAPE
from labs_helpers.data_parallel.lab09.checks.hybrid_mistakes import Setting
from labs_helpers.data_parallel.lab09.checks.on_ranks import KINDS, on_ranks, step_once
from labs_helpers.data_parallel.lab09.checks.tensors import OnEachRank, numbers
from labs_helpers.practice.process_groups import second_group

ERRORS = (
    (
        r"object of type '.*' has no len|object is not subscriptable",
        "gradients is an iterator: it can be gone through once",
    ),
    (SCATTERED_SHAPE, "the gradient is cut among the ranks of a node, shard_group's"),
    (GATHERED_SHAPE, "whole has the shards of one node's ranks, shard_group's"),
    (r"StopIteration", "there may be one gradient alone"),
)
SGD, ADAMW = partial(torch.optim.SGD, lr=0.5), partial(torch.optim.AdamW, lr=0.1)
SLOW = "nodes are sent more than one shard per step: reduce inside the node first, and add up the micro-batches there"
ADVICE = "2 nodes of 2 ranks, one parameter per shard: write down what each rank holds after each collective."


@exercise("09/10", "transfer: shards inside a node", points=50, minutes=40)
def hybrid_step(student):
    step_once()
    of_norm, of_whole = OnEachRank("norm", ADVICE), OnEachRank("whole", ADVICE)
    for title, shards, nodes, n, micro, max_norm, optimizer in (
        ("3 nodes of 4 ranks", 4, 3, 8, 1, 1e4, SGD),
        ("3 micro-batches", 2, 2, 8, 3, 1e4, SGD),
        ("clipped, 2 nodes of 3 ranks", 3, 2, 12, 2, 12.0, SGD),
        ("clipped, 3 nodes of 2 ranks, AdamW", 2, 3, 8, 2, 9.0, ADAMW),
        ("one node of 3 ranks, a norm of nearly nothing", 3, 1, 6, 2, 1e-6, SGD),
        ("3 nodes of one rank: data parallelism", 1, 3, 4, 2, 7.0, SGD),
    ):
        ranks = shards * nodes
        # Neighbours share a node; in the second case the order is another, so that rank and place differ.
        order = list(range(ranks)) if title != "3 micro-batches" else [2, 0, 3, 1]
        inside = [order[i * shards : (i + 1) * shards] for i in range(nodes)]
        between = [[node[k] for node in inside] for k in range(shards)]
        scale = 1e-7 if max_norm < 1e-3 else 1.0
        whole = scale * numbers(n, 7)
        gradients = [
            [[scale * numbers(n, 1000 * s + 31 * r + k) for k in range(micro)] for r in range(ranks)] for s in (0, 1)
        ]
        own = [
            (whole, [g[r] for g in gradients], next(b for b in between if r in b), max_norm, optimizer)
            for r in range(ranks)
        ]
        run = on_ranks(title, student, _call, own, errors=ERRORS, groups=inside)
        node_of = [next(node for node in inside if r in node) for r in range(ranks)]
        place = [node.index(r) for r, node in enumerate(node_of)]
        peers = [next(b for b in between if r in b) for r in range(ranks)]
        right = _alone(whole, gradients, max_norm, optimizer)
        before = whole.double()
        for step in (0, 1):
            case = f"{title}, step {step + 1}"
            found = [result["steps"][step] for result in run.results]
            norms, wholes = [one[0] for one in found], [one[1] for one in found]
            setting = Setting(
                before, gradients[step], max_norm, node_of, peers, place, shards, nodes, micro, SGD.keywords["lr"]
            )
            of_norm.expect(case, norms, [right[step][0]] * ranks, setting.norms)
            if optimizer is SGD:
                of_whole.expect(case, wholes, [right[step][1]] * ranks, setting.updates)
            else:
                OnEachRank("whole", ADVICE).expect(case, wholes, [right[step][1]] * ranks)
            for rank, one in enumerate(found):
                if one[2]:
                    raise Wrong(
                        case, f"rank {rank}'s shard.grad is there after the step", cause="optimizer.zero_grad()"
                    )
            before = right[step][1]
        for rank, result in enumerate(run.results):
            if result["kept"] > 1:
                said = f"rank {rank} keeps {result['kept']} whole gradients at a time"
                raise Wrong(title, said, cause="each is reduced to its shard, and let go of, before the next one comes")
        _expect_links(title, run, inside, between, n, micro)
        crosses = f"{n // shards} numbers per step cross between nodes, of {n}" if nodes > 1 else "nothing crosses"
        yield f"{title}, {micro} micro-batch{'es' * (micro > 1)}: {crosses}; norm {float(right[0][0]):.4g}"


def _call(student, group, whole, gradients, peers, max_norm, make):
    replicas = second_group(group, peers)
    whole = whole.clone()
    shard = nn.Parameter(whole.chunk(group.size())[group.rank()])
    optimizer, steps, kept = make([shard]), [], 0
    for own in gradients:
        counter = _Counted(own)
        norm = student(whole, iter(counter), optimizer, shard, max_norm, group, replicas)
        kept = max(kept, counter.most)
        norm = norm.detach().clone() if isinstance(norm, torch.Tensor) else norm
        steps.append((norm, whole.clone(), shard.grad is not None))
    return {"steps": steps, "kept": kept}


class _Counted:
    """Gradients one by one, and how many of them were there at the same time at most."""

    def __init__(self, gradients) -> None:
        self.gradients, self.most, self.there = gradients, 0, []

    def __iter__(self):
        import weakref

        for one in self.gradients:
            fresh = one.clone()
            self.there.append(weakref.ref(fresh))
            yield fresh
            del fresh
            # The loop's own variable still holds the last one: it goes as the next comes.
            self.most = max(self.most, sum(ref() is not None for ref in self.there))


def _alone(whole, gradients, max_norm: float, make):
    """(norm, parameters) behind each step, of one process in float64."""
    p = nn.Parameter(whole.double())
    optimizer, found = make([p]), []
    for own in gradients:
        mean = torch.stack([g.double() for of_rank in own for g in of_rank]).mean(0)
        norm = mean.norm()
        p.grad = mean * min(1.0, max_norm / (float(norm) + 1e-6))
        optimizer.step()
        found.append((norm, p.detach().clone()))
    return found


def _expect_links(case: str, run, inside, between, n: int, micro: int) -> None:
    """The values are right. Between nodes one all-reduce of a shard per step; inside, no more than is needed."""
    shards, nodes, steps = len(inside[0]), len(between[0]), 2
    for rank in range(len(run.results)):
        node = next(one for one in inside if rank in one)
        made = [(KINDS.get(c.name, c.name), c.elements, tuple(c.ranks)) for c in run.of(rank) if len(c.ranks) > 1]
        across = [(kind, size) for kind, size, ranks in made if not set(ranks) <= set(node)]
        local = sorted((kind, size) for kind, size, ranks in made if set(ranks) <= set(node))
        wanted = [("all-reduce", n // shards)] * (steps * (nodes > 1))
        if across != wanted:
            said = ", ".join(f"{kind} of {size}" for kind, size in across[:4]) or "nothing"
            found = f"the values are right, but rank {rank} sends between nodes: {said} …; one all-reduce of "
            found += f"{n // shards} per step is enough"
            often = len(across) == steps * micro and micro > 1 and all(size == n // shards for _, size in across)
            once_more = [one for one in across if one == ("all-reduce", 1)]
            cause = (
                "every micro-batch is sent between the nodes; inside a node they can be added up first" if often else ""
            )
            if once_more and not often:
                cause = "replicas have the same shard and the same norm: nothing is left to be added up between nodes"
            elif any(size > n // shards for _, size in across):
                cause = SLOW
            raise Wrong(case, found, cause=cause)
        right = [("reduce-scatter", n)] * (micro * steps) + [("all-gather", n), ("all-reduce", 1)] * steps
        if local != sorted(right if shards > 1 else []):
            once = [("reduce-scatter", n), ("all-gather", n), ("all-reduce", 1)] * steps
            said = ", ".join(f"{kind} of {size}" for kind, size in local[:5])
            enough = f"{micro} reduce-scatters of {n}, an all-gather of {n} and an all-reduce of 1 per step"
            cause = (
                "whole gradients are added up first, so that one more whole is kept" if local == sorted(once) else ""
            )
            if ("all-reduce", n) in local:
                cause = "an all-reduce gives the whole to all; of the gradient a rank needs its shard"
            raise Wrong(
                case, f"the values are right, but rank {rank} sends in its node: {said} …; {enough} do it", cause=cause
            )
