"""Test the scheduler over random workloads: nothing is lost, everything ends, the budget holds, nobody starves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.request import FinishReason, Request, SamplingParameters
from labs_helpers.serving.scheduler import Scheduler


class Run:
    """An engine whose model is a function of the tokens so far. A position of a block holds the tokens up to it.

    It checks every plan. ahead: the next pass is planned before the last one's tokens are known.
    """

    def __init__(self, scheduler, ahead):
        self.scheduler, self.ahead, self.held, self.flying, self.requests, self.passes = scheduler, ahead, {}, [], [], 0
        self.truth = {}  # of each request: the prompt, and all tokens that it will generate

    def add(self, prompt, count):
        request = Request(len(self.requests), len(prompt), SamplingParameters(max_tokens=count), list(prompt))
        self.scheduler.add(request)
        self.requests.append(request)
        whole = list(prompt)
        for _ in range(count):
            whole.append((sum(whole) + len(whole)) % 2)
        self.truth[request.id] = whole

    def step(self):
        scheduler, size = self.scheduler, self.scheduler.blocks.size
        plan = scheduler.schedule()
        self.passes += bool(plan)
        assert plan.tokens + scheduler.lookahead * len(plan.decodes) <= scheduler.budget
        assert len(plan.decodes) <= plan.width <= scheduler.slots
        for source, target in plan.copies:
            for offset in range(size):
                self.held[target, offset] = self.held[source, offset]
        parts = [(request, request.computed - 1, request.computed, True) for request in plan.decodes]
        parts += [(chunk.request, chunk.start, chunk.stop, chunk.samples) for chunk in plan.chunks]
        assert len({request.id for request, *_ in parts}) == len(parts)
        for request, start, stop, _ in parts:
            truth, blocks = self.truth[request.id], request.table.blocks
            assert start < stop
            for position in range(stop):
                block, offset = blocks[position // size], position % size
                if position >= start:
                    assert scheduler.blocks.writable(block)
                    self.held[block, offset] = truth[: position + 1]
                assert self.held[block, offset] == truth[: position + 1]
        launched = [(request, stop, samples) for request, _, stop, samples in parts]
        if not self.ahead:
            self.flying, launched = launched, []
        for request, stop, samples in self.flying:
            self.report(request, stop, samples)
        self.flying = launched
        return plan

    def report(self, request, stop, samples):
        if request.finished:
            return
        if samples:
            request.tokens.append(self.truth[request.id][len(request.tokens)])
        self.scheduler.blocks.commit(request.table, request.tokens, stop)
        if len(request.tokens) == len(self.truth[request.id]):
            request.finished = FinishReason.LENGTH
            self.scheduler.remove(request)

    def cancel(self, request):
        if not request.finished:
            request.finished = FinishReason.CANCELLED
            self.scheduler.remove(request)

    @property
    def unfinished(self):
        return [request for request in self.requests if not request.finished]


lengths = st.one_of(st.just(1), st.integers(1, 12))
prompts = st.one_of(st.lists(st.integers(0, 1), min_size=1, max_size=12), st.sampled_from([[0] * 8, [0] * 12, [1, 0]]))


@settings(max_examples=300)
@given(
    work=st.lists(st.tuples(prompts, lengths, st.integers(0, 5)), min_size=1, max_size=14),
    slots=st.integers(1, 5),
    more=st.integers(0, 9),
    size=st.integers(1, 5),
    spare=st.integers(0, 20),
    static=st.booleans(),
    ahead=st.booleans(),
    sharing=st.booleans(),
    cancelled=st.sets(st.integers(0, 13), max_size=4),
)
def test_any_workload(work, slots, more, size, spare, static, ahead, sharing, cancelled):
    """Each request arrives some passes after the one before it; the cancelled ones leave after as many."""
    largest = max(-(-(len(prompt) + count - 1) // size) for prompt, count, _ in work)
    scheduler = Scheduler(Blocks(largest + spare, size, sharing), slots, slots + more, static)
    run, plans = Run(scheduler, ahead), 0
    for number, (prompt, count, wait) in enumerate(work):
        run.add(prompt, count)
        for _ in range(wait):
            progress(run)
        if number in cancelled:
            run.cancel(run.requests[number])
            assert run.requests[number].table.blocks == []
    while run.unfinished:
        progress(run)
        plans += 1
        assert plans < 2000
    for request in run.requests:
        assert request.finished is FinishReason.CANCELLED or request.tokens == run.truth[request.id]
    assert not run.step() and not run.step()
    assert scheduler.blocks.free == scheduler.blocks.count and not scheduler.running and not scheduler.waiting


def progress(run):
    """Make a step, in which the oldest request that still needs a pass gets further."""
    waits = [request for request in run.unfinished if request.remaining]
    before = waits and (waits[0].sampled, waits[0].computed)
    plan = run.step()
    if waits and not (run.scheduler.static and plan):  # a static batch's other requests come first
        assert (waits[0].sampled, waits[0].computed) > before
        assert waits[0] not in plan.preempted


def drained(run):
    while run.unfinished:
        run.step()
    return run


def test_decoding_goes_on_while_a_long_prompt_is_computed_in_chunks():
    run = Run(Scheduler(Blocks(100, 4), 4, 5), ahead=True)
    run.add([1, 0], 20)
    run.step()
    run.add([1] * 20, 3)
    plans = [run.step() for _ in range(5)]
    assert [len(plan.decodes) for plan in plans] == [1] * 5
    assert [(c.start, c.stop) for plan in plans for c in plan.chunks] == [(i, i + 4) for i in range(0, 20, 4)]


def test_the_youngest_request_is_preempted_and_computes_the_same_again():
    run = Run(Scheduler(Blocks(6, 2, sharing=False), 3, 50), ahead=True)
    for _ in range(3):
        run.add([1, 0], 8)
    preempted = []
    while run.unfinished:
        preempted += [request.id for request in run.step().preempted]
    assert preempted[0] == 2 and 0 not in preempted
    assert all(request.tokens == run.truth[request.id] for request in run.requests)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_static_batch_waits_for_its_longest_request_and_keeps_its_width(ahead):
    counts, static, in_flight = [3, 9, 2, 5], *(Run(Scheduler(Blocks(99, 4), 2, 50, s), ahead) for s in (True, False))
    for run in (static, in_flight):
        for count in counts:
            run.add([1, 0, 1], count)
    widths = []
    while static.unfinished:
        if (plan := static.step()).decodes:
            widths.append(plan.width)
    assert static.passes == 9 + 5 and widths == [2] * (8 + 4)
    # The second slot computes 9 tokens, and the first one 3 and 2; the last request takes the first that is free.
    assert drained(in_flight).passes == 10


def test_requests_with_equal_prompts_share_what_an_earlier_pass_computed():
    run = Run(Scheduler(Blocks(20, 2), 3, 50), ahead=False)
    for _ in range(3):
        run.add([1, 0, 1, 1, 0, 1], 2)
        run.step()
    assert [request.cached_tokens for request in run.requests] == [0, 5, 5]


def test_what_can_never_run_is_refused():
    for slots, budget, lookahead in ((0, 1, 0), (3, 2, 0), (3, 5, 1)):
        with pytest.raises(ValueError, match="the budget is"):
            Scheduler(Blocks(4, 4), slots, budget, lookahead=lookahead)
    scheduler = Scheduler(Blocks(4, 4), 1, 9)
    scheduler.add(Request(0, 8, SamplingParameters(max_tokens=9), [1] * 8))
    with pytest.raises(ValueError, match="take 5 blocks of 4 positions, and the cache has 4"):
        scheduler.add(Request(1, 8, SamplingParameters(max_tokens=10), [1] * 8))
