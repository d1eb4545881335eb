"""Answers to lab 10 that were written without knowledge of its checks."""

from tests.unseen.answers import Answer

S, N, G, F, B = "stage_spans", "naive_step", "gpipe_order", "one_f_one_b_order", "bubble_and_stashes"

GREEDY = '''
def stage_spans(costs, stages):
    average = sum(costs) / stages
    spans, start, total = [], 0, 0
    for i, cost in enumerate(costs):
        total += cost
        if total >= average and len(spans) < stages - 1:
            spans.append((start, i + 1))
            start, total = i + 1, 0
    spans.append((start, len(costs)))
    return spans
'''
SPLIT = '''
import numpy
def stage_spans(costs, stages):
    parts = numpy.array_split(range(len(costs)), stages)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]
'''
SEARCH = '''
def stage_spans(costs, stages):
    def cut(limit):
        spans, start, total = [], 0, 0
        for i, cost in enumerate(costs):
            left = stages - len(spans) - 1
            if i > start and left and (total + cost > limit or len(costs) - i <= left):
                spans.append((start, i))
                start, total = i, 0
            total += cost
        spans.append((start, len(costs)))
        return spans
    low, high = max(costs), sum(costs)
    for _ in range(60):
        middle = (low + high) / 2
        if max(sum(costs[a:b]) for a, b in cut(middle)) <= middle:
            high = middle
        else:
            low = middle
    return cut(high)
'''
STEP = '''
import torch
def naive_step(stage, group, inputs, targets, loss_of, shape):
    first, last, m = group.rank == 0, group.rank == group.size - 1, len(inputs)
    losses = []
    for i in range(m):
        if first:
            x = inputs[i]
        else:
            x = torch.zeros(shape, requires_grad=True)
            group.receive(x.data, group.rank - 1)
        y = stage(x)
        if last:
            loss = loss_of(y, targets[i])
            losses.append(loss.item())
            (loss / m).backward()
        else:
            group.send(y.data, group.rank + 1)
            gradient = torch.zeros(shape)
            group.receive(gradient, group.rank + 1)
            torch.autograd.backward([y], [gradient])
        if not first:
            group.send(x.grad, group.rank - 1)
    return sum(losses) / m if last else None
'''

ANSWERS = [
    Answer(S, "greedy", source=GREEDY, says="each stage is filled in turn until it holds the average"),
    Answer(S, "numpy's equal parts", source=SPLIT, says="every stage has the same number of parts"),
    Answer(S, "binary search for the limit", source=SEARCH, says=None),
    Answer(S, "one part for each later stage forgotten", [("count - left + 2", "count + 1")], says="no part is left for a later stage"),
    Answer(S, "the sum in place of the maximum", [("max(sum(costs[start:stop]), cost)", "sum(costs[start:stop]) + cost")]),
    Answer(S, "the last part never counted", [("return sum(costs[start:]), ", "return sum(costs[start:-1]), ")], says="the output, is not counted"),
    Answer(N, "another style", source=STEP, says=None),
    Answer(N, "no division", source=STEP.replace("(loss / m).backward()", "loss.backward()"), says="not divided by the number of micro-batches"),
    Answer(N, "no gradient of the input", source=STEP.replace(", requires_grad=True", ""), says="came before the stage used this very x"),
    Answer(N, "a sum", source=STEP.replace("sum(losses) / m", "sum(losses)"), says="the sum of the losses"),
    Answer(N, "returned in the loop", source=STEP.replace("    return sum", "        return sum")),
    Answer(N, "sends the gradient of its output", source=STEP.replace("group.send(x.grad,", "group.send(x.grad if last else gradient,"), says="send x.grad"),
    Answer(N, "all ranks divide", source=STEP.replace("group.send(x.grad,", "group.send(x.grad / m,"), says="already divided"),
    Answer(N, "wrong neighbor", source=STEP.replace("group.receive(gradient, group.rank + 1)", "group.receive(gradient, group.rank - 1)")),
    Answer(N, "receives into the whole batch", source=STEP.replace("torch.zeros(shape, requires", "torch.zeros((m, *shape), requires"), says=""),
    Answer(G, "reversed", [('[(kind, i) for kind in "FB" for i in range(micro_batches)]', '[("F", i) for i in range(micro_batches)] + [("B", i) for i in reversed(range(micro_batches))]')], says="start with the last micro-batch"),
    Answer(G, "a generator", [('[(kind, i) for kind in "FB" for i in range(micro_batches)]', '((kind, i) for kind in "FB" for i in range(micro_batches))')], says="is not a list"),
    Answer(G, "names of the stages", [("(kind, i)", "(kind, rank, i)")], says="an entry looks like"),
    Answer(F, "GPipe", [("min(ranks - rank - 1, micro_batches)", "micro_batches")], says="GPipe's order"),
    Answer(F, "one too many", [("ranks - rank - 1", "ranks - rank")], says="one forward pass too long"),
    Answer(F, "counts up", [("ranks - rank - 1", "rank")], says="counts the ranks before this one"),
    Answer(F, "pairs the same micro-batch", [('("B", k)]', '("B", warm_up + k)]')]),
    Answer(F, "no end", [(' + [("B", i) for i in range(micro_batches - warm_up, micro_batches)]', "")], says="the backward passes at the end are missing"),
    Answer(B, "over the useful time", [("wait / (work + wait)", "wait / work")], says="bubble over the useful time"),
    Answer(B, "1F1B has less", [("return wait / (work + wait)", 'wait = wait / 2 if schedule == "1F1B" else wait\n    return wait / (work + wait)')], says="1F1B does not shrink the bubble"),
    Answer(B, "GPipe's stashes everywhere", [('"1F1B": ranks', '"1F1B": micro_batches')], says="does not hold a stash of every micro-batch"),
    Answer(B, "no last stash", [("ranks + 1,", "ranks,")], says="the warm-up alone"),
    Answer(B, "a rounded share", [("wait / (work + wait)", "round(wait / (work + wait), 2)")]),
]
