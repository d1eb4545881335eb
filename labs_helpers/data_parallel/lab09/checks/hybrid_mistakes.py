"""What mistakes make of a step with shards inside a node and replicas between nodes."""

from __future__ import annotations

import torch


class Setting:
    """A step of SGD at rate lr. gradients: [rank][micro-batch]; at: the nodes. Candidates have an answer per rank."""

    def __init__(self, gradients, max_norm, at, lr) -> None:
        self.gradients, self.max_norm, self.lr, self.micro = gradients, max_norm, lr, len(gradients[0])
        self.node_of, self.place, self.shards = at
        self.nodes = len(gradients) // at.size
        self.sums = [sum(g.double() for g in own) for own in gradients]
        self.total = sum(self.sums)
        self.mean = self.total / (len(gradients) * self.micro)
        self.ranks = range(len(gradients))

    def of_node(self, r, sums):
        return sum(sums[o] for o in self.node_of[r])

    def factor(self, norm):
        return min(1.0, self.max_norm / (float(norm) + 1e-6))

    def norms(self):
        N, one = len(self.ranks), self.mean.norm()
        parts = [self.mean.chunk(self.shards)[self.place[r]] for r in self.ranks]

        def all_the_same(value):
            return [value for _ in self.ranks]

        def on_nodes(values):
            return [sum(values[o] for o in self.node_of[r]) for r in self.ranks]

        own, nodes, micro = [p.norm() for p in parts], self.nodes**0.5, self.micro
        yield "this rank's shard alone: no all-reduce of the squares", own
        yield "replicas have the same shard: their squares are added up once too often", all_the_same(one * nodes)
        yield "the squares are added up over the replicas, not over the shards", [p * nodes for p in own]
        largest = [max(own[o] for o in self.node_of[r]) for r in self.ranks]
        yield "the largest of the shards' norms; their squares are added up", largest
        yield "norms are added up; squares can be", on_nodes(own)
        yield "the square of the norm: the root is missing", all_the_same(one**2)
        yield "this is the norm after clipping; the one before is asked for", all_the_same(one.clamp(max=self.max_norm))
        for said, factor in self._means():
            yield said, all_the_same(one * factor)
        first = self.of_node(self.node_of[0][0], self.sums)
        yield "the gradient of one node, sent to the others", all_the_same((first / (N * micro)).norm())
        of_node = [self.of_node(r, self.sums).norm() / micro for r in self.ranks]
        yield "the gradient of this node alone", [norm / self.shards for norm in of_node]
        yield "the gradient of this node alone, divided by all ranks", [norm / N for norm in of_node]
        if micro > 1:
            for said, batch in (("the first micro-batch alone", 0), ("the last micro-batch alone", -1)):
                norm = sum(own[batch].double() for own in self.gradients).norm() / N
                yield said, all_the_same(norm)
                yield f"{said}, divided by all", all_the_same(norm / micro)

    def _means(self):
        """(sentence, factor) of gradients that are divided otherwise."""
        if self.micro > 1:
            yield "the sum over the micro-batches; the mean is asked for", float(self.micro)
            yield "neither divided by the ranks nor by the micro-batches", float(self.micro * len(self.ranks))
        yield "not divided by replica_group's ranks, or added up over them twice", float(self.nodes)
        yield "divided by replica_group's ranks, and not by shard_group's", float(self.shards)
        yield "the division by the ranks is missing, or its result is not used", float(len(self.ranks))
        yield "divided by the ranks twice", 1.0 / len(self.ranks)
        yield "divided by the node's ranks twice", 1.0 / self.shards

    def updates(self, before):
        """Of what a step makes of `before`, with a right norm."""

        def updated(gradients):
            """Of each rank's gradient the update of its shard, put together by an all-gather in its node."""
            own = [(before - self.lr * one).chunk(self.shards)[k] for one, k in zip(gradients, self.place, strict=True)]
            return [torch.cat([own[o] for o in self.node_of[r]]) for r in self.ranks]

        limit, mean, norm = self.max_norm, self.mean, float(self.mean.norm())
        factor = self.factor(norm)
        for said, gradient in (
            ("not clipped: the gradient is not scaled", mean),
            ("the 1e-6 belongs to the norm: max_norm / (norm + 1e-6)", min(1.0, limit / norm) * mean),
            ("the factor is never more than 1", limit / (norm + 1e-6) * mean),
            ("numbers are cut off one by one; it is the norm that is limited", mean.clamp(-limit, limit)),
            ("scaled to a norm of 1, whatever max_norm is", mean / norm),
            ("scaled twice", factor**2 * mean),
            ("stepped twice", 2 * factor * mean),
            ("updated with what the reduce-scatter left, before it was divided and scaled", self.total),
            *((said, factor * times * mean) for said, times in self._means()),
        ):
            yield said, updated([gradient for _ in self.ranks])
        own = [self.factor(mean.chunk(self.shards)[k].norm()) for k in self.place]
        yield "clipped by the norm of this rank's shard", updated([one * mean for one in own])
        drift = "the gradient of this node alone: replicas drift apart"
        yield drift, updated([self.of_node(r, self.sums) / (self.shards * self.micro) for r in self.ranks])
        yield "the gradient is gathered, not the parameters", [mean for _ in self.ranks]
        nothing = "no update: optimizer.step() is missing, or there is no shard.grad by then"
        yield nothing, [before for _ in self.ranks]
        alone = "every rank has its own shard's update alone: nothing is gathered, or before the step"
        right = updated([factor * mean for _ in self.ranks])
        yield alone, [self._with_part(before, *one) for one in zip(right, self.place, strict=True)]

    def _with_part(self, flat, other, k):
        """`flat` with its part k from `other`."""
        parts = list(flat.chunk(self.shards))
        return torch.cat([*parts[:k], other.chunk(self.shards)[k], *parts[k + 1 :]])
