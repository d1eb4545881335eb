"""Exercise 7 of lab 09: two sharded modules in sequence against whole ones, and which weights have memory when."""

from functools import partial
from itertools import product
from math import inf

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import SCATTERED_SHAPE
from labs_helpers.course.verdict.messages.torch import INNER_SIZES, NO_MATRIX
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks import module_expected as expected
from labs_helpers.data_parallel.lab09.checks.hook_times import (
    ANEW,
    BEFORE,
    EARLY,
    FULL,
    Arrivals,
    causes_of,
    sent_early,
)
from labs_helpers.data_parallel.lab09.checks.kept import bytes_kept, expect_none_kept, hooks_of
from labs_helpers.data_parallel.lab09.checks.on_ranks import expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import causes, mean_shards, places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers
from labs_helpers.data_parallel.lab09.flat import flatten, held
from labs_helpers.data_parallel.lab09.freed_memory import watched_memory
from labs_helpers.data_parallel.lab09.shards import Layer
from labs_helpers.practice.process_groups import mark

RETURNED = (
    "PyTorch uses the return value of a forward hook as the output, and "
    "that of a pre-hook as the input, unless it is None"
)
ERRORS = (
    (
        r"takes \d positional arguments? but \d (was|were) given",
        "PyTorch calls hooks with the module and more arguments: def f(*_)",
    ),
    (NO_MATRIX, "keep the parameters as views of whole, and release only whole's memory"),
    (INNER_SIZES, RETURNED),
    (r"'NoneType' object is not callable", "pass the function itself to the hook, without parentheses"),
    (r"resize_\(\d+\):", "the storage must get its full size back: whole.nbytes"),
    (
        r"A view was created in no_grad|A view of a leaf",
        "use whole.data or torch.no_grad(), because autograd tracks this tensor",
    ),
    (r"must be Tensor, not|module output should be a Tensor", RETURNED),
    (r"does not require grad and does not", "the module must go on computing with its own parameters"),
    (SCATTERED_SHAPE, "pad the gradients to the size of whole, n elements"),
)
UPDATED = 0.75
SHARD = "whole was freed, and its new memory contains no weights: send shard, which keeps them"
OLD = "you gather the initial values, but the optimizer updates shard, so gather shard"
UNFILLED = (
    "the gather does not fill whole, or whole is freed before the module computes, for example by hooks on submodules"
)
PASSED = "the weights are freed before backward reads them: the module's backward pass ends with the last gradient"
PARAMETERS = (1, 12, 3), (1, 15, 5)  # elements of scale, weight, and bias; their gradients arrive in the order 0, 2, 1
ARRIVALS = "gradients are in order of arrival, or reversed, instead of the order of module.parameters()"
ADVICE = "print a line in each function and run the module forward and backward once. In which order do they run?"


def _layers() -> list[Layer]:
    return [Layer(4, 3, numbers(16, 1, whole=False)), Layer(3, 5, numbers(21, 7, whole=False))]


@exercise("09/7", "shard the parameters of a module", points=20, minutes=25, reference=exercises.shard_module)
def shard_module(student):
    of_output = RankTensors("output", nan=UNFILLED)
    of_module = [RankTensors(f"shard.grad of module {m}", ADVICE, PASSED) for m in (0, 1)]
    for title, ranks, steps, groups in (
        ("2 ranks, one pass", 2, 1, None),
        ("3 ranks, two passes that add up, an update between", 3, 2, None),
        ("two groups of 2 ranks", 4, 1, [[2, 0], [1, 3]]),
        ("one rank, two passes", 1, 2, None),
    ):
        at = places(ranks, groups)
        size = at.size
        inputs = [
            [numbers(8, 20 + 5 * k + rank, whole=False).view(2, 4) for k in range(steps)] for rank in range(ranks)
        ]
        with watched_memory() as watched:
            early: list[str] = []
            call, errors = partial(_call, watched, early), (*causes_of(early, FULL, BEFORE, EARLY, ANEW), *ERRORS)
            run = on_ranks(title, student, call, [(own,) for own in inputs], errors=errors, groups=groups)
        outputs, gradients, starts = zip(*(_alone(own) for own in inputs), strict=True)
        stale = [_alone(own, updated=1.0)[0] for own in inputs]
        sizes = [-(-len(start) // size) * size for start in starts[0]]
        for m, start in enumerate(starts[0]):
            expected.expect_shards(title, [result["shards"][m] for result in run.results], start, at)
        expected.expect_when(title, run, ranks, size)
        for k in range(steps):
            case = f"{title}, pass {k + 1}" if steps > 1 else title
            states = [result["passes"][k] for result in run.results]
            old, right = [(OLD, [own[k] for own in stale])], [own[k] for own in outputs]
            found = [state["output"] for state in states]
            if any(out.isnan().any() for out in found) and any(
                map(_sends_freed, run.results, map(run.of, range(ranks)))
            ):
                raise Wrong(case, "the output is NaN because the all-gather sends a part of whole", cause=SHARD)
            of_output.expect(case, found, right, lambda old=old: old)
            for m, sizes_of in enumerate(PARAMETERS):
                own = [[g[i][m] for i in range(k + 1)] for g in gradients]
                right = mean_shards([sum(one) for one in own], at)
                found = [state["grads"][m] for state in states]
                mistakes = partial(causes, own, at, sizes_of, ARRIVALS, ((0, 2, 1), (2, 1, 0)))
                if any(sent_early(run, rank, m, sizes[m]) for rank in range(ranks)):
                    cause = FULL if states[0]["late"] and not states[0]["each"] else EARLY
                    mistakes = partial(list, [(cause, found)])
                none = "store the reduce-scatter's result in shard.grad"
                of_module[m].expect(case, found, right, mistakes, none=none)
                for rank, state in enumerate(states):
                    if state["left"][m]:
                        said = f"rank {rank}: a parameter still has its whole .grad after backward"
                        raise Wrong(case, said, cause="set p.grad = None to release a gradient")
        wanted = [(kind, n) for n in sizes for kind in ("all-gather", "all-gather", "reduce-scatter")]
        expect_sent(title, run, wanted * (steps * (size > 1)), lambda made, steps=steps: expected.cost(made, steps))
        for rank, m in product(range(ranks), (0, 1)):
            passes = [(state["views"][m], state["kept"][m]) for state in run.results[rank]["passes"]]
            limit = 4 * sizes[m] if size > 1 else inf
            expect_none_kept(title, rank, *map(max, zip(*passes, strict=True)), limit)
        yield (
            f"{title}: between uses each rank keeps {sum(sizes) // size} of "
            f"{sum(len(one) for one in starts[0])} numbers"
        )


def _sends_freed(result, calls) -> bool:
    """Return whether the input of one of a rank's all-gathers shares the memory of a whole."""
    gathers = (call.address for call in calls if "gather" in call.name)
    return any(start <= address < end for address in gathers for start, end in result["memory"])


def _call(watched, early, student, group, inputs):
    layers = _layers()
    arrivals = Arrivals(layers, group)
    wholes = [flatten(layer.parameters(), group.size()) for layer in layers]
    memory = [whole.untyped_storage() for whole in wholes]
    list(map(watched.watch, wholes))

    def alive():
        return [one.nbytes() > 0 for one in memory]

    shards = [student(layer, whole, group) for layer, whole in zip(layers, wholes, strict=True)]
    for one, whole in zip(shards, memory, strict=True):
        expected.expect_parameter(one, whole)
    result = {"memory": [(x.data_ptr(), x.data_ptr() + x.nbytes) for x in wholes]}
    result |= {"shards": [one.detach().clone() for one in shards], "passes": []}
    expected.expect_freed(alive(), "made")
    for m, layer in enumerate(layers):
        layer.seen = lambda m=m, layer=layer: expected.expect_whole(alive(), m, layer)
    for x in inputs:
        state = {}
        mark(group, "forward begins")
        out = layers[1](layers[0](x))
        mark(group, "forward ends")
        state["output"] = out.detach().clone()
        expected.expect_freed(alive(), "between")
        mark(group, "backward begins")
        arrivals.begin()
        try:
            out.square().sum().backward()
        except Exception as error:
            if why := arrivals.why(error):
                early.append(why)
            raise
        mark(group, "backward ends")
        state["late"] = any(one._backward_hooks for layer in layers for one in layer.modules())
        expected.expect_freed(alive(), "late" if state["late"] else "behind")
        state["each"] = any(len(p._post_accumulate_grad_hooks) > 1 for layer in layers for p in layer.parameters())
        state["views"] = [one.grad is not None and held([one.grad]) > one.nbytes for one in shards]
        state["grads"] = [one.grad.clone() if one.grad is not None else None for one in shards]
        state["kept"] = [
            bytes_kept(hooks_of(layer.parameters(), *layer.modules()), wholes, layer.parameters(), [one, one.grad])
            for layer, one in zip(layers, shards, strict=True)
        ]
        state["left"] = [any(p.grad is not None for p in layer.parameters()) for layer in layers]
        result["passes"].append(state)
        with torch.no_grad():  # the work of an optimizer
            for one in shards:
                one.mul_(UPDATED)
    return result


def _alone(inputs, updated=UPDATED):
    """Return (outputs, [pass][module] → flat gradient, flat parameters) of one process on one rank's inputs."""
    layers = _layers()
    start = [torch.cat([p.detach().reshape(-1) for p in layer.parameters()]) for layer in layers]
    outputs, gradients = [], []
    for x in inputs:
        for layer in layers:
            layer.zero_grad()
        out = layers[1](layers[0](x))
        out.square().sum().backward()
        outputs.append(out.detach())
        gradients.append([torch.cat([p.grad.reshape(-1) for p in layer.parameters()]) for layer in layers])
        with torch.no_grad():
            for p in (p for layer in layers for p in layer.parameters()):
                p.mul_(updated)
    return outputs, gradients, start
