"""Decide what the next forward pass computes: which requests decode, and which part of which prompts. No tensors here.

In-flight batching: a request joins as soon as a slot and blocks are free, and leaves when it ends (Yu et al., Orca,
2022). Prompts are computed in chunks, so that a long one does not hold up the decoding requests (Agrawal et al.,
Sarathi-Serve, 2024). Static batching, for comparison: the next batch begins when all requests of one have ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.request import Request


@dataclass(frozen=True)
class Chunk:
    """Positions [start, stop) of a request, whose tokens are known. samples: the last one's logits choose a token."""

    request: Request
    start: int
    stop: int
    samples: bool


@dataclass
class Plan:
    """One pass: first the copies of blocks, (from, to), then a token for each request of `decodes`, then the chunks.

    width: the rows to compute for `decodes`; a static batch keeps its width when some of its requests have ended.
    """

    copies: list[tuple[int, int]] = field(default_factory=list)
    decodes: list[Request] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    preempted: list[Request] = field(default_factory=list)
    width: int = 0

    def __bool__(self) -> bool:
        return bool(self.decodes or self.chunks)

    @property
    def tokens(self) -> int:
        """The number of tokens whose features the pass computes, without padding."""
        return len(self.decodes) + sum(chunk.stop - chunk.start for chunk in self.chunks)


class Scheduler:
    """First come, first served. Nobody starves: every pass takes the oldest request further, because only younger ones
    are preempted for its blocks.

    slots: the most requests at a time. budget: the most tokens per pass; decoding requests come first. static: see
    above. lookahead: further positions per decoding request, for the proposals of a draft model; they count in the
    budget. ValueError for a budget that does not let every slot decode.
    """

    def __init__(self, blocks: Blocks, slots: int, budget: int, static: bool = False, lookahead: int = 0) -> None:
        if slots < 1 or budget < slots * (1 + lookahead):
            least = f"{slots} slots, at least 1, of {1 + lookahead} each"
            raise ValueError(f"the budget is {budget} tokens per pass; it has to hold those of {least}")
        self.blocks, self.slots, self.budget, self.static, self.lookahead = blocks, slots, budget, static, lookahead
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}  # by number, and so by age; all are older than those who wait
        self.width = 0  # of the static batch

    def add(self, request: Request) -> None:
        """Append a request. ValueError if the cache could not hold it, even alone."""
        if (needed := self.blocks.needed(request.longest)) > self.blocks.count:
            raise ValueError(
                f"the prompt of {request.prompt_tokens} tokens and max_tokens of {request.how.max_tokens} take "
                f"{needed} blocks of {self.blocks.size} positions, and the cache has {self.blocks.count}"
            )
        self.waiting.append(request)

    def remove(self, request: Request) -> None:
        """Forget a request, and release its blocks at once: launched passes that still use them run before later ones
        overwrite them. Nothing happens if it is not here."""
        if self.running.pop(request.id, None) is None and request in self.waiting:
            self.waiting.remove(request)
        self.blocks.release(request.table)

    def schedule(self) -> Plan:
        """Return the next pass, and count its tokens as computed and sampled; an empty plan if nothing can be done."""
        plan = Plan()
        for request in [request for request in self.running.values() if request.remaining == 0]:
            self.remove(request)  # its last token is being sampled
        opens = not self.running  # a new static batch
        if opens:
            self.width = 0
        left = self.budget
        prefilling = any(not request.decoding for request in self.running.values())
        if not (self.static and prefilling):  # a static batch decodes when all its prompts are computed
            left -= self._decode(plan)
        for request in self.running.values():
            if left and not request.decoding:
                left -= self._chunk(plan, request, left)
        # A request that this pass preempted may not return in it: its last token may not be known yet.
        while self.waiting and len(self.running) < self.slots and not plan.preempted:
            if not (opens if self.static else left):
                break
            request = self.waiting[0]
            admitted = self.blocks.admit(request.tokens, spare=len(self.running))
            if admitted is None:
                break
            self.running[request.id] = self.waiting.popleft()
            request.table, request.computed = admitted.table, admitted.computed
            if request.cached_tokens is None:
                request.cached_tokens = admitted.computed
            if admitted.copy:
                plan.copies.append(admitted.copy)
            if left:
                left -= self._chunk(plan, request, left)
            self.width += self.static
        plan.width = max(len(plan.decodes), self.width if plan.decodes else 0)
        return plan

    def _decode(self, plan: Plan) -> int:
        """Plan a token for every decoding request, oldest first, and return the tokens of the budget."""
        for request in list(self.running.values()):
            if request.decoding and self._has_room(request, plan):
                plan.decodes.append(request)
                request.computed += 1
                request.sampled += 1
        return len(plan.decodes) * (1 + self.lookahead)

    def _has_room(self, request: Request, plan: Plan) -> bool:
        """Extend a request's table for its next positions. If no block is free, preempt the youngest request, which may
        be this one; False if it is. A preempted request computes its positions again later."""
        positions = request.computed + 1 + min(self.lookahead, request.remaining - 1)
        while request.id in self.running and not self.blocks.extend(request.table, positions):
            _, youngest = self.running.popitem()
            self.blocks.release(youngest.table)
            youngest.computed, youngest.decoding = 0, False
            self.waiting.appendleft(youngest)
            plan.preempted.append(youngest)
        return request.id in self.running

    def _chunk(self, plan: Plan, request: Request, left: int) -> int:
        """Plan up to `left` of a request's tokens, and return their number."""
        start = request.computed
        stop = min(request.length, start + left)
        samples = stop == request.length
        plan.chunks.append(Chunk(request, start, stop, samples))
        request.computed = stop
        if samples:
            request.sampled += 1
            request.decoding = True
        return stop - start
