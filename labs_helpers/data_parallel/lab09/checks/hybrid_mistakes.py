"""What mistakes make of a step with shards inside a node and replicas between nodes."""

from __future__ import annotations

import torch


class Setting:
    """A step of SGD at rate lr. gradients: [rank][micro-batch]; at: the nodes. Candidates have an answer per rank."""

    def __init__(self, gradients, max_norm, at, lr) -> None:
        self.max_norm, self.lr, self.micro = max_norm, lr, len(gradients[0])
        self.node_of, self.place, self.shards = at
        self.nodes = len(gradients) // at.size
        self.sums = [sum(g.double() for g in own) for own in gradients]
        self.last = [own[-1].double() for own in gradients]
        self.first = [own[0].double() for own in gradients]
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
            yield "the first micro-batch alone", all_the_same(sum(self.first).norm() / N)
            yield "the first micro-batch alone", all_the_same(sum(self.first).norm() / N / micro)
            yield "the last micro-batch alone", all_the_same(sum(self.last).norm() / N)
            yield "the last micro-batch alone, divided by all", all_the_same(sum(self.last).norm() / N / micro)

    def _means(self):
        """(sentence, factor) of gradients that are divided otherwise."""
        if self.micro > 1:
            yield "the sum over the micro-batches; the mean is asked for", float(self.micro)
            yield "neither divided by the ranks nor by the micro-batches", float(self.micro * len(self.ranks))
        yield "not divided by replica_group's ranks, or added up over them twice", float(self.nodes)
        yield "divided by replica_group's ranks, and not by shard_group's", float(self.shards)
        yield "divided by the micro-batches, and not by the ranks", float(len(self.ranks))
        yield "divided by the ranks twice", 1.0 / len(self.ranks)
        yield "divided by the node's ranks twice", 1.0 / self.shards

    def _by_its_own(self, r):
        """Each rank's shard scaled by a factor of its own."""
        return self.mean * self.factor(self.mean.chunk(self.shards)[self.place[r]].norm())

    def updates(self, before):
        """Of what a step makes of `before`, with a right norm."""
        lr = self.lr
        factor = self.factor(self.mean.norm())

        def updated(gradient_of):
            own = [(before - lr * gradient_of(r)).chunk(self.shards)[self.place[r]] for r in self.ranks]
            return [torch.cat([own[o] for o in self.node_of[r]]) for r in self.ranks]

        mean, norm = self.mean, float(self.mean.norm())
        right = updated(lambda r: factor * mean)
        yield "not clipped: the gradient is not scaled", updated(lambda r: mean)
        without = min(1.0, self.max_norm / norm)
        yield "the 1e-6 belongs to the norm: max_norm / (norm + 1e-6)", updated(lambda r: without * mean)
        yield "the factor is never more than 1", updated(lambda r: self.max_norm / (norm + 1e-6) * mean)
        cut_off = mean.clamp(-self.max_norm, self.max_norm)
        yield "numbers are cut off one by one; it is the norm that is limited", updated(lambda r: cut_off)
        yield "stepped twice", updated(lambda r: 2 * factor * mean)
        yield "scaled to a norm of 1, whatever max_norm is", updated(lambda r: mean / norm)
        yield "clipped by the norm of this rank's shard", updated(self._by_its_own)
        yield "the gradient is gathered, not the parameters", [mean for _ in self.ranks]
        yield "scaled twice", updated(lambda r: factor**2 * mean)
        nothing = "no update: optimizer.step() is missing, or there is no shard.grad by then"
        yield nothing, [before for _ in self.ranks]
        early = "updated with what the reduce-scatter left, before it was divided and scaled"
        yield early, updated(lambda r: self.total)
        yield "every rank has its own shard's update alone: nothing is gathered, or before the step", [
            torch.cat([(right[r] if o == r else before).chunk(self.shards)[i]
                       for i, o in enumerate(self.node_of[r])]) for r in self.ranks
        ]  # fmt: skip
        drift = "the gradient of this node alone: replicas drift apart"
        yield drift, updated(lambda r: self.of_node(r, self.sums) / (self.shards * self.micro))
        for said, times in self._means():
            yield said, updated(lambda r, times=times: factor * times * self.mean)
