"""Speculative decoding: a small draft model proposes tokens, and one pass of the target model verifies all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from labs_helpers.serving.acceptance import accept
from labs_helpers.serving.engine import Engine, Report
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.serving.passes import Passes, captured_step, most_blocks, rows_of
from labs_helpers.serving.request import Request
from labs_helpers.serving.sampling import probabilities
from labs_helpers.serving.scheduler import Plan
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import inverse, uniforms

TARGET, DRAFT, ACCEPTANCE = range(3)  # the purposes for which a token's index has a number of its own


class SpeculativeEngine(Engine):
    """An engine that computes several tokens of a request per step.

    draft: a model with the same vocabulary, and a context at least as long. Its cache has the same blocks as the
    target's, so one table serves both. proposals: K, the tokens proposed per request and step. The other options are
    those of Engine, but for `ahead`: the next pass depends on the number of accepted tokens. ValueError for a draft
    that does not fit.
    """

    def __init__(self, model: Transformer, draft: Transformer, proposals: int = 4, **options: Any) -> None:
        own, other = draft.config, model.config
        if own.vocabulary != other.vocabulary or own.context < other.context:
            raise ValueError(
                f"the draft has {own.vocabulary} tokens and a context of {own.context}, the target {other.vocabulary} "
                f"and {other.context}"
            )
        if proposals < 1:
            raise ValueError(f"proposals is {proposals}; at least one token is proposed")
        self.lookahead, self.further = proposals, {"numbers": 3 * (proposals + 1), "count": 1}
        super().__init__(model, **options | {"ahead": False})
        cache = PagedCache(draft, self.blocks.count, self.blocks.size)
        self.draft = Passes(draft, cache, self.scheduler.slots, graph=False)
        self.proposed = self.accepted = 0  # tokens so far
        self._found = torch.zeros(self.passes.inputs.rows, proposals + 2, dtype=torch.int64, device=self.passes.device)
        self._graphs: dict[tuple[int, bool], Callable[[], None]] = {}

    def _launch(self, plan: Plan) -> Callable[[], list[Report]]:
        new = self._speculate(plan) if plan.decodes else []
        plan.decodes = []
        self.draft.cache.copy(plan.copies)
        if plan.chunks:
            self.draft.features(plan.chunks)  # its cache holds the same positions
        others = super()._launch(plan)
        return lambda: new + others()

    def _speculate(self, plan: Plan) -> list[Report]:
        """Propose and verify tokens of the decoding requests. The plan has counted one token of each."""
        requests, K, inputs, graph = plan.decodes, self.lookahead, self.passes.inputs, self.passes.graph
        rows, counts = rows_of(plan.width), [min(K, request.remaining) for request in requests]
        filtered = any(request.how.top_k or request.how.top_p < 1 for request in requests)
        if graph and (rows, filtered) not in self._graphs:
            self._graphs[rows, filtered] = captured_step(inputs, partial(self._step, rows, None, filtered))
        numbers = [self._numbers(request) for request in requests]
        inputs.fill(requests, rows, {"numbers": numbers, "count": [[count] for count in counts]})
        if graph:
            self._graphs[rows, filtered]()
        else:
            self._step(rows, most_blocks(requests), filtered)
        reports = []
        for request, count, (*tokens, good) in zip(requests, counts, self._found.tolist(), strict=False):
            request.computed += good
            request.sampled += good
            self.proposed, self.accepted = self.proposed + count, self.accepted + good
            reports.append((request, tokens[: good + 1], request.computed))
        return reports

    def _step(self, rows: int, blocks: int | None, filtered: bool) -> None:
        """Store each row's tokens, and the number of accepted ones, in `_found`. filtered: some row has a top-k or a
        top-p. A row makes `count` proposals; its steps beyond are padding."""
        K, inputs, fields = self.lookahead, self.passes.inputs, self.passes.inputs.on_device
        table, start, count = fields["table"][:rows, :blocks], fields["length"][:rows, None], fields["count"][:rows]
        numbers = fields["numbers"][:rows].view(rows, 3, K + 1)
        how = [fields[name][:rows] for name in ("temperature", "top_k", "top_p")] if filtered else []
        how = how or [fields["temperature"][:rows]]
        steps = torch.arange(K + 1, device=table.device)
        exists = steps <= count
        at = torch.where(exists, start + steps, 0).int()
        tables = torch.where(exists[..., None], table[:, None], 0)  # (rows, K + 1, blocks)
        tokens, q = [inputs.tokens[fields["source"][:rows]]], []
        for step in range(K + 1):  # the last one only stores the keys and values of the last proposal
            logits = self.draft.logits(tokens[step], at[:, step].contiguous(), tables[:, step].contiguous())
            if step < K:
                q.append(torch.where(step < count, probabilities(logits, *how), 0))
                tokens.append(inverse(q[step], numbers[:, DRAFT, step]))
        given = torch.stack(tokens, 1)
        logits = self.passes.logits(given.flatten(), at.flatten(), tables.flatten(0, 1), together=True)
        p = probabilities(logits, *(column.repeat_interleave(K + 1) for column in how)).unflatten(0, (rows, K + 1))
        found, accepted = accept(
            p, torch.stack(q, 1), given[:, 1:], numbers[:, ACCEPTANCE, :K].to(p.dtype), numbers[:, TARGET].to(p.dtype)
        )
        self._found[:rows] = torch.cat([found, accepted[:, None]], 1)

    def _numbers(self, request: Request) -> Any:
        """Return the numbers of the request's next K + 1 tokens, for one purpose after the other. They depend on the
        seed and the token's index alone; proposals after a rejected one are lost, and so are their numbers."""
        at = np.arange(request.sampled - 1, request.sampled + self.lookahead)
        return np.concatenate([uniforms(request.seed, purpose, at) for purpose in (TARGET, DRAFT, ACCEPTANCE)])
