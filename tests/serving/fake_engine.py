"""An engine without a model: it counts, and writes letters; a test decides when it may take a step."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from labs_helpers.serving.request import FinishReason, Output
from labs_helpers.serving.status import QueueFull
from labs_helpers.serving.text import ByteTokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def text_of(count):
    """The text of `count` tokens."""
    return "".join(LETTERS[index % len(LETTERS)] for index in range(count))


@dataclass(frozen=True)
class Statistics:
    running: int
    waiting: int
    steps: int
    name: str = "not a number"


class FakeEngine:
    """Token i of every request is letter i, `piece` letters long. paced: has work only for as many steps as a test has
    allowed. fails_at: the step that raises `error`. wait: called in each step, as if the GPU computed."""

    tokenizer = ByteTokenizer()

    error: BaseException = RuntimeError("out of letters")

    def __init__(self, slots=1000, most_waiting=1000, most_tokens=2048, paced=False, piece=1, fails_at=None, wait=None):
        self.slots, self.most_waiting, self.most_tokens = slots, most_waiting, most_tokens
        self.piece, self.fails_at, self.wait = piece, fails_at, wait
        self.requests, self.waiting, self.steps = {}, deque(), 0
        self.cancelled, self.finished, self.threads = [], [], set()
        self.prompts, self.hows = {}, {}
        self.allowed = 0 if paced else float("inf")
        self.wake: Callable[[], None] = lambda: None  # the engine's thread, so that it asks again for work

    def allow(self, steps=float("inf")):
        """Let so many more steps run; by default all."""
        self.allowed += steps
        self.wake()

    def add(self, prompt, how):
        self.threads.add(threading.get_ident())
        if len(prompt) + how.max_tokens > self.most_tokens:
            raise ValueError(f"the prompt has {len(prompt)} tokens and max_tokens is {how.max_tokens}: too long")
        if len(self.waiting) >= self.most_waiting:
            raise QueueFull(f"{self.most_waiting} requests wait, which is the limit")
        number = len(self.prompts)
        self.prompts[number], self.hows[number] = tuple(prompt), how
        self.waiting.append(number)
        return number

    def cancel(self, request):
        self.threads.add(threading.get_ident())
        if request in self.waiting:
            self.waiting.remove(request)
        elif self.requests.pop(request, None) is None:
            return
        self.cancelled.append(request)

    def has_work(self):
        return self.allowed > 0 and bool(self.requests or self.waiting)

    def statistics(self):
        return Statistics(len(self.requests), len(self.waiting), self.steps)

    def step(self):
        self.threads.add(threading.get_ident())
        self.allowed -= 1
        if self.wait:
            self.wait()
        self.steps += 1
        if self.steps == self.fails_at:
            raise self.error
        while self.waiting and len(self.requests) < self.slots:
            self.requests[self.waiting.popleft()] = 0
        return [self._advance(number) for number in list(self.requests)]

    def _advance(self, number):
        index, how = self.requests[number], self.hows[number]
        text, finished = LETTERS[index % len(LETTERS)] * self.piece, None
        if text in how.stop:
            text, finished = "", FinishReason.STOP
        elif index + 1 == how.max_tokens:
            finished = FinishReason.LENGTH
        self.requests[number] = index + 1
        if finished:
            del self.requests[number]
            self.finished.append(number)
        return Output(number, (index,), text, finished, len(self.prompts[number]), index + 1, 0)
