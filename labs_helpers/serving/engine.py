"""Generate for many requests at once: one model, one paged cache, one scheduler, and a step that moves all of them.

    engine = Engine(load_byte_model(), slots=8)
    request = engine.add(engine.tokenizer.encode("In the beginning"), SamplingParameters(max_tokens=50))
    while engine.has_work():
        for output in engine.step():
            print(output.text, end="")

A step launches the next pass before it reads the tokens of the last one, so that the GPU does not wait for Python.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch

from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.layer_graphs import MOST, STEP, padded
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.serving.passes import Passes
from labs_helpers.serving.request import FinishReason, Output, Request, SamplingParameters
from labs_helpers.serving.scheduler import Plan, Scheduler
from labs_helpers.serving.status import Limits, QueueFull, Statistics
from labs_helpers.serving.text import ByteTokenizer, TextStream
from labs_helpers.transformer.decode_operations import Operations
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import uniforms

Report = tuple[Request, list[int], int]  # the new tokens, and the positions that are computed with them


class Engine:
    """Not thread-safe: one thread calls all methods.

    blocks: of the cache, with block_size positions each. slots: the most requests at a time. budget: the most tokens
    per pass. static: batches that end together. ahead: see above. sharing: of equal prefixes. most_waiting: see Limits.
    tokenizer: None for a vocabulary of other tokens than bytes; texts are '' then. seed: of the seeds that requests
    leave open. operations, graph: see `Passes`. ValueError for numbers that do not fit.
    """

    lookahead = 0  # and `further` inputs, for speculation
    further: Mapping[str, int] = MappingProxyType({})

    def __init__(
        self,
        model: Transformer,
        *,
        blocks: int = 512,
        block_size: int = 16,
        slots: int = 8,
        budget: int = 512,
        static: bool = False,
        ahead: bool = True,
        sharing: bool = True,
        most_waiting: int = 1024,
        tokenizer: ByteTokenizer | None = None,
        seed: int = 0,
        operations: Operations | None = None,
        graph: bool | None = None,
    ) -> None:
        self.model, self.ahead = model, ahead
        self.tokenizer = ByteTokenizer() if model.config.vocabulary == ByteTokenizer.vocabulary else tokenizer
        self.limits = Limits(model.config.context, most_waiting)
        self.blocks = Blocks(blocks, block_size, sharing)
        self.scheduler = Scheduler(self.blocks, slots, budget, static, self.lookahead)
        self.cache = PagedCache(model, blocks, block_size)
        self.passes = Passes(model, self.cache, slots, operations, graph, self.further)
        self._seeds, self._requests, self._added = random.Random(seed), dict[int, Request](), 0
        self._flying: Callable[[], list[Report]] | None = None
        self._cancelled: list[Output] = []
        self._steps = self._preemptions = self._prompt = self._shared = self._generated = 0

    def add(self, prompt: Sequence[int], how: SamplingParameters) -> int:
        """Queue a request, and return its number. ValueError for a prompt that is empty, has unknown tokens, or is too
        long for the context or the cache with its max_tokens; QueueFull if too many wait."""
        vocabulary, prompt = self.model.config.vocabulary, list(prompt)
        if not prompt:
            raise ValueError("the prompt is empty; it needs at least one token")
        if wrong := [token for token in prompt if not 0 <= token < vocabulary]:
            raise ValueError(f"the prompt has token {wrong[0]}, and the vocabulary 0 to {vocabulary - 1}")
        if len(prompt) + how.max_tokens > self.limits.most_tokens:
            raise ValueError(
                f"the prompt of {len(prompt)} tokens and max_tokens of {how.max_tokens} are more than the "
                f"{self.limits.most_tokens} tokens of the context"
            )
        if how.stop and self.tokenizer is None:
            raise ValueError("stop needs text, and this engine has no tokenizer")
        if len(self.scheduler.waiting) >= self.limits.most_waiting:
            raise QueueFull(f"{len(self.scheduler.waiting)} requests are waiting, as many as allowed")
        seed = self._seeds.getrandbits(63) if how.seed is None else how.seed
        numbers = uniforms(seed, 0, np.arange(how.max_tokens)).tolist()
        text = None if self.tokenizer is None else TextStream(self.tokenizer, how.stop)
        request = Request(self._added, len(prompt), how, prompt, text, seed, numbers)
        self.scheduler.add(request)
        self._added += 1
        self._requests[request.id] = request
        return request.id

    def cancel(self, request: int) -> None:
        """End a request. Its blocks are free at once, and the next step reports it. Nothing happens if it has ended."""
        if found := self._requests.pop(request, None):
            found.finished = FinishReason.CANCELLED
            self.scheduler.remove(found)
            self._cancelled.append(found.output())

    def has_work(self) -> bool:
        """Return True if a step would do or report something."""
        return bool(self._requests or self._flying or self._cancelled)

    @torch.no_grad()
    def step(self) -> list[Output]:
        """Launch the next pass, and report the previous one; without `ahead`, the same one."""
        plan = self.scheduler.schedule()
        self._steps += bool(plan)
        launched = self._launch(plan) if plan else None
        self._preemptions += len(plan.preempted)
        if not self.ahead:
            self._flying, launched = launched, None
        reports = self._flying() if self._flying else []
        self._flying, outputs, self._cancelled = launched, self._cancelled, []
        return outputs + [output for report in reports if (output := self._report(*report))]

    def statistics(self) -> Statistics:
        """Return the numbers for monitoring."""
        running, free = list(self.scheduler.running.values()), self.blocks.free
        filled = sum(request.computed for request in running) / self.blocks.size
        return Statistics(
            len(running), len(self.scheduler.waiting), self.blocks.count - free, free, self.blocks.cached, filled,
            self._steps, self._preemptions, self._prompt, self._shared, self._generated,
        )  # fmt: skip

    @torch.no_grad()
    def prepare(self) -> None:
        """Capture all CUDA graphs now, which takes seconds, and not at the first step with each number of rows."""
        rows, layers = self.passes.inputs.rows, self.passes.layers
        while rows and self.passes.graph:
            self.passes.step(rows)
            rows //= 2
        if layers:
            for rows in range(STEP, min(padded(self.scheduler.budget), MOST) + 1, STEP):
                layers.prepare(rows)

    def _launch(self, plan: Plan) -> Callable[[], list[Report]]:
        """Queue a pass, and return a function that waits for its tokens."""
        passes, inputs = self.passes, self.passes.inputs
        self.cache.copy(plan.copies)
        if plan.decodes:
            passes.decode(plan.decodes, plan.width)
        if plan.chunks:
            passes.chunks(plan.chunks)
        places = [(request, row, request.computed) for row, request in enumerate(plan.decodes)]
        row = inputs.rows
        for chunk in plan.chunks:
            places.append((chunk.request, row if chunk.samples else -1, chunk.stop))
            row += chunk.samples
        for request, row, _ in places:
            request.row = row
        result, done = inputs.fetch(), None
        if passes.device.type == "cuda":
            done = torch.cuda.Event()
            done.record()

        def reports() -> list[Report]:
            if done:
                done.synchronize()
            tokens = result.tolist()
            return [(request, [tokens[row]] if row >= 0 else [], stop) for request, row, stop in places]

        return reports

    def _report(self, request: Request, tokens: list[int], computed: int) -> Output | None:
        """Take note of a request's new tokens, and return its output; None if there are none, or it has ended."""
        if request.finished:
            return None
        if len(request.tokens) == request.prompt_tokens and tokens:
            self._prompt += request.prompt_tokens
            self._shared += request.cached_tokens or 0
        text, new = "", 0
        for token in tokens:
            request.tokens.append(token)
            new += 1
            last = len(request.tokens) == request.prompt_tokens + request.how.max_tokens
            if request.text:
                text += request.text.feed(token) + (request.text.end() if last else "")
            if request.text and request.text.stopped:
                request.finished = FinishReason.STOP
            elif last:
                request.finished = FinishReason.LENGTH
            if request.finished:
                break
        self._generated += new
        self.blocks.commit(request.table, request.tokens, min(computed, len(request.tokens)))
        if request.finished:
            self.scheduler.remove(request)
            del self._requests[request.id]
        return request.output(tokens[:new], text) if new else None
