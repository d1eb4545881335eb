"""Exercise 11 of lab 09: the gathers under way, and the tensors with memory, while each module computes."""

from functools import partial

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.on_ranks import DTYPES, expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers
from labs_helpers.data_parallel.lab09.flat import flatten
from labs_helpers.data_parallel.lab09.freed_memory import watched_memory
from labs_helpers.data_parallel.lab09.shards import Layer, shard_of
from labs_helpers.practice.process_groups import mark

WIDTHS = 4, 2, 6, 3, 9  # input and output widths of the modules; no two modules have the same size, padded or not
ERRORS = (
    (rf"{DTYPES}|output is torch", "shards may be float32 while whole is bfloat16: send them in whole's dtype"),
    (
        r"takes \d positional arguments? but \d (was|were) given",
        "PyTorch calls hooks with the module and more arguments: def f(*_)",
    ),
    (r"^KeyError: \d", "you wait for a gather that was never started, or that you already waited for"),
    (
        r"^IndexError",
        "no module follows the last one forward or the first one backward, where the next module is number − 1",
    ),
    (r"'NoneType' object is not callable", "return finish itself, not its result"),
)
OLD = "you gather the initial values, but the optimizer updates the shards"
NAN = "the module computes with memory that is freed, or whose gather you have not waited for"
GONE = (
    "call resize_(whole.nbytes) before the gather, and keep the last "
    "module's whole from its forward to its backward pass"
)
LATE = "before a module computes, start the all-gather of the next module and no other"
SYNCHRONOUS = (
    "async_op=True starts a collective and continues; without it, the call itself waits",
    "you wait for the next module's gather immediately: call wait() when that module begins",
)
PASSED = (
    "free a module's whole after its forward pass, except the last, and in backward when the module before it begins"
)
OVER = "finish() is over"
ADVICE = "for 3 modules and one step, write down in order: start 0, wait 0, start 1, forward 0, free 0 …"


@exercise("09/11", "gather one module ahead", points=15, minutes=25, reference=exercises.gather_ahead)
def gather_ahead(student):
    of_output, of_gradient = RankTensors("output", ADVICE, NAN), RankTensors("gradients", ADVICE, NAN)
    for title, ranks, count, steps, dtype, groups in (
        ("3 modules on 2 ranks", 2, 3, 1, torch.float32, None),
        ("4 modules on 3 ranks, two steps, an update between", 3, 4, 2, torch.float32, None),
        ("bfloat16 modules, float32 shards, two steps", 2, 3, 2, torch.bfloat16, None),
        ("one module, two groups of 2 ranks", 4, 1, 2, torch.float32, [[2, 0], [1, 3]]),
    ):
        size = places(ranks, groups).size
        inputs = [[numbers(8, 9 * rank + k, whole=False).view(2, 4) for k in range(steps)] for rank in range(ranks)]
        with watched_memory() as watched:
            given = [(count, dtype, own) for own in inputs]
            run = on_ranks(title, student, partial(_call, watched), given, errors=ERRORS, groups=groups)
        rows = [_alone(count, dtype, own) for own in inputs]
        stale = [_alone(count, dtype, own, updated=1.0) for own in inputs]
        for k in range(steps):
            case = f"{title}, step {k + 1}" if steps > 1 else title
            for what, comparison in enumerate((of_output, of_gradient)):
                found, right, old = ([own[k][what] for own in some] for some in (run.results, rows, stale))
                comparison.expect(case, found, right, lambda old=old: [(OLD, old)], dtype)
        sizes = [-(-n // size) * size for n in _elements(count)]
        for rank in range(ranks):
            _expect_ahead(title, run, rank, sizes)
        wanted = [("all-gather", n) for n in (*sizes, *sizes[:-1])] * steps
        expect_sent(title, run, wanted, partial(_cost, len(wanted), steps))
        yield f"{title}: {len(wanted)} all-gathers, {count - 1 or 'none'} of {count} modules' ahead in each pass"


def _layers(count: int) -> list[Layer]:
    shapes = zip(WIDTHS[:count], WIDTHS[1:], strict=False)
    return [Layer(i, o, numbers(1 + o * (i + 1), 7 * m + 1, whole=False)) for m, (i, o) in enumerate(shapes)]


def _elements(count: int) -> list[int]:
    return [sum(p.numel() for p in layer.parameters()) for layer in _layers(count)]


def _flat(tensors) -> torch.Tensor:
    return torch.cat([x.detach().reshape(-1) for x in tensors])


def _call(watched, student, group, count, dtype, inputs):
    """Return the output and all gradients after each step, and check on the way which wholes have memory."""
    layers = _layers(count)
    masters = [nn.Parameter(shard_of(group, _flat(layer.parameters()))) for layer in layers]
    wholes = [flatten(layer.to(dtype).parameters(), group.size()) for layer in layers]
    for whole in wholes:
        watched.watch(whole)
        whole.untyped_storage().resize_(0)
    finish = student(list(layers), list(wholes), list(masters), group)

    def look(when: str, *wanted: int) -> None:
        """Raise Wrong unless the first of `wanted`, and none outside `wanted`, has memory."""
        mark(group, when)
        for m, whole in enumerate(wholes):
            if watched.alive(whole) and m not in wanted:
                early = len(wanted) > 1 and (m - wanted[0]) * (wanted[1] - wanted[0]) > 0
                cause = (
                    "finish() must free the module that backward reaches last"
                    if when == OVER
                    else LATE
                    if early
                    else PASSED
                )
                raise Wrong("", f"has memory in module {m}'s whole: {when}", cause=cause)
            if m in wanted[:1] and not watched.alive(whole):
                raise Wrong("", f"has no memory in module {m}'s whole: {when}", cause=GONE)

    for m, layer in enumerate(layers):
        layer.seen, layer.passed = partial(look, f"forward {m}", m, m + 1), partial(look, f"backward {m}", m, m - 1)
    found = []
    for x in inputs:
        out = x.to(dtype)
        for layer in layers:
            out = layer(out)
        look("the forward pass is over", count - 1)
        out.float().square().sum().backward()
        gradients = _flat(p.grad for layer in layers for p in layer.parameters())
        finish()
        look(OVER)
        found.append((out.detach().clone(), gradients))
        for layer, shard in zip(layers, masters, strict=True):
            layer.zero_grad()
            shard.data.mul_(0.75)  # the work of an optimizer
    return found


def _alone(count, dtype, inputs, updated=0.75):
    """Return `_call`'s results for one rank's inputs, computed in one process."""
    found, layers = [], _layers(count)
    for k, x in enumerate(inputs):
        out, parameters = x.to(dtype), []
        for layer in layers:
            whole = Layer(layer.linear.in_features, layer.linear.out_features, numbers(99, 1))
            for p, master in zip(whole.parameters(), layer.parameters(), strict=True):
                p.data = master.data * updated**k
            out, parameters = whole.to(dtype)(out), [*parameters, *whole.parameters()]
        out.float().square().sum().backward()
        found.append((out.detach(), _flat(p.grad for p in parameters)))
    return found


def _expect_ahead(case: str, run, rank: int, sizes: list[int]) -> None:
    """Raise Wrong unless only the next module's gather is under way while each module computes."""
    here: list[int] = []  # gathers under way
    over: list[int] = []  # gathers waited for since the previous module computed
    for event in (event for event in run.log if event.rank == rank):
        if event.call is not None and event.call.elements in sizes:
            number = sizes.index(event.call.elements)
            if event.what == "start":
                here.append(number)
            elif event.what == "done" and number in here:
                here.remove(number)
                over.append(number)
        elif event.call is None and event.what[-1].isdigit():
            phase, m = event.what.split()
            following = int(m) + (1 if phase == "forward" else -1)
            if here != [following] * (0 <= following < len(sizes)):
                cause = SYNCHRONOUS[any(c.asynchronous for c in run.of(rank))] if following in over else LATE
                said = f"as module {m} computes {phase}, the gathers under way are those of {here or 'no module'}"
                raise Wrong(case, f"rank {rank}: {said}; expected only module {following}'s", cause=cause)
            over.clear()


def _cost(wanted: int, steps: int, made: list) -> str:
    return "keep the last module's weights for its backward pass" * (len(made) == wanted + steps)
