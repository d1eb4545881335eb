"""Results of mistakes in a step with shards inside a node and replicas between nodes."""

from __future__ import annotations

import torch


class Setting:
    """A step of SGD at rate lr. gradients: [rank][micro-batch]; at: the nodes. Candidates have one answer per rank."""

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
        yield "the norm covers only this rank's shard: the all-reduce of the squares is missing", own
        yield "replicas hold the same shard, so their squares are added more than once", all_the_same(one * nodes)
        yield "the squares are added over the replicas instead of the shards", [p * nodes for p in own]
        largest = [max(own[o] for o in self.node_of[r]) for r in self.ranks]
        yield "this is the largest norm of the shards; add their squares instead", largest
        yield "you add norms; add squares instead", on_nodes(own)
        yield "this is the square of the norm: the root is missing", all_the_same(one**2)
        yield "this is the norm after clipping; return the one before", all_the_same(one.clamp(max=self.max_norm))
        for said, factor in self._means():
            yield said, all_the_same(one * factor)
        first = self.of_node(self.node_of[0][0], self.sums)
        yield "the gradient of one node is sent to the others", all_the_same((first / (N * micro)).norm())
        of_node = [self.of_node(r, self.sums).norm() / micro for r in self.ranks]
        yield "this is the gradient of this node alone", [norm / self.shards for norm in of_node]
        yield "this is the gradient of this node alone, divided by all ranks", [norm / N for norm in of_node]
        if micro > 1:
            for said, batch in (("only the first micro-batch counts", 0), ("only the last micro-batch counts", -1)):
                norm = sum(own[batch].double() for own in self.gradients).norm() / N
                yield said, all_the_same(norm)
                yield f"{said}, divided by the number of micro-batches", all_the_same(norm / micro)

    def _means(self):
        """Yield (sentence, factor) for each wrong division."""
        if self.micro > 1:
            yield "the sum over the micro-batches is used instead of the mean", float(self.micro)
            yield (
                "neither divided by the number of ranks nor by the number of micro-batches",
                float(self.micro * len(self.ranks)),
            )
        yield "not divided by the size of replica_group, or added over it twice", float(self.nodes)
        yield "divided by the size of replica_group, but not of shard_group", float(self.shards)
        yield "the division by the number of ranks is missing, or its result is not used", float(len(self.ranks))
        yield "divided by the number of ranks twice", 1.0 / len(self.ranks)
        yield "divided by the size of the node twice", 1.0 / self.shards

    def updates(self, before):
        """Yield the results of mistakes in a step from `before` that returns the right norm."""

        def updated(gradients):
            """Return each rank's whole after updating its shard and an all-gather in its node."""
            own = [(before - self.lr * one).chunk(self.shards)[k] for one, k in zip(gradients, self.place, strict=True)]
            return [torch.cat([own[o] for o in self.node_of[r]]) for r in self.ranks]

        limit, mean, norm = self.max_norm, self.mean, float(self.mean.norm())
        factor = self.factor(norm)
        for said, gradient in (
            ("not clipped: the gradient is not scaled", mean),
            ("the 1e-6 is missing: max_norm / (norm + 1e-6)", min(1.0, limit / norm) * mean),
            ("the factor must not exceed 1", limit / (norm + 1e-6) * mean),
            ("each number is clipped separately, but the norm must be limited", mean.clamp(-limit, limit)),
            ("scaled to a norm of 1 instead of max_norm", mean / norm),
            ("scaled twice", factor**2 * mean),
            ("stepped twice", 2 * factor * mean),
            ("updated with the reduce-scatter's result before it was divided and scaled", self.total),
            *((said, factor * times * mean) for said, times in self._means()),
        ):
            yield said, updated([gradient for _ in self.ranks])
        own = [self.factor(mean.chunk(self.shards)[k].norm()) for k in self.place]
        yield "clipped by the norm of this rank's shard", updated([one * mean for one in own])
        drift = "updated with the gradient of this node alone, so replicas drift apart"
        yield drift, updated([self.of_node(r, self.sums) / (self.shards * self.micro) for r in self.ranks])
        yield "the gradient is gathered instead of the parameters", [mean for _ in self.ranks]
        nothing = "nothing is updated: optimizer.step() is missing, or shard.grad is None when it runs"
        yield nothing, [before for _ in self.ranks]
        alone = "every rank has only its own shard's update: the gather is missing, or runs before the step"
        right = updated([factor * mean for _ in self.ranks])
        yield alone, [self._with_part(before, *one) for one in zip(right, self.place, strict=True)]

    def _with_part(self, flat, other, k):
        """Return `flat` with its part k replaced by that of `other`."""
        parts = list(flat.chunk(self.shards))
        return torch.cat([*parts[:k], other.chunk(self.shards)[k], *parts[k + 1 :]])
