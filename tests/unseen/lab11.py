"""Answers to lab 11 that were written without knowledge of its checks."""

from tests.unseen.answers import Answer

PARTS = '''
from itertools import pairwise
def time_of_parts(spans, length):
    order = ["forward", "backward", "optimizer", "data", "communication"]
    edges = {0, length}
    for part in spans:
        for start, stop in spans[part]:
            edges.add(min(start, length))
            edges.add(min(stop, length))
    out = {part: 0.0 for part in order}
    out["idle"] = 0.0
    for a, b in pairwise(sorted(edges)):
        for part in order:
            if any(s <= a and b <= e for s, e in spans.get(part, [])):
                out[part] += b - a
                break
        else:
            out["idle"] += b - a
    return out
'''
ORDER = '"forward", "backward", "optimizer", "data", "communication"]'
UNIONS = '''
def time_of_parts(spans, length):
    def total(*parts):
        found, end = 0, 0
        for a, b in sorted(span for part in parts for span in spans.get(part, [])):
            a, b = max(a, end), min(b, length)
            if a < b:
                found, end = found + b - a, b
        return found
    compute = ("forward", "backward", "optimizer")
    out = {part: total(part) for part in compute}
    out["data"] = total(*compute, "data") - total(*compute)
    out["communication"] = total(*compute, "data", "communication") - total(*compute, "data")
    return out | {"idle": length - sum(out.values())}
'''
SWEEP = '''
def time_of_parts(spans, length):
    rank = {"forward": 0, "backward": 1, "optimizer": 2, "data": 3, "communication": 4}
    events = []
    for part, listed in spans.items():
        for start, stop in listed:
            if start < length:
                events += [(start, 1, part), (min(stop, length), -1, part)]
    active, result, now = dict.fromkeys(rank, 0), dict.fromkeys([*rank, "idle"], 0), 0
    for t, change, part in sorted(events, key=lambda event: event[0]) + [(length, 0, "data")]:
        result[next((p for p in rank if active[p] > 0), "idle")] += t - now
        now = t
        active[part] += change
    return result
'''
WHOLE_MS = '''
def time_of_parts(spans, length):
    out = dict.fromkeys(["data", "forward", "backward", "optimizer", "communication", "idle"], 0)
    for t in range(int(length)):
        for part in ["forward", "backward", "optimizer", "data", "communication"]:
            if any(s <= t < e for s, e in spans.get(part, [])):
                out[part] += 1
                break
        else:
            out["idle"] += 1
    return out
'''
COSTS = '''
def cost_by_elimination(measure):
    whole = min(measure())
    quiet = min(measure(communication=False))
    same = min(measure(loading=False))
    double = min(measure(batch=2))
    return {"communication": max(0.0, whole - quiet), "data": max(0.0, whole - same), "fixed": max(0.0, 2 * whole - double)}
'''
FITTED = '''
import numpy as np
def cost_by_elimination(measure):
    whole, quiet, same, big = [np.min(measure(*given)) for given in [(), (False,), (True, False), (True, True, 3)]]
    slope, fixed = np.polyfit([1, 3], [whole, big], 1)
    return dict(zip(["communication", "data", "fixed"], np.maximum(0, [whole - quiet, whole - same, fixed])))
'''
STRAGGLER = '''
from statistics import mean
def find_straggler(begun, finished):
    waits = [mean(f - b for b, f in zip(bs, fs)) for bs, fs in zip(begun, finished)]
    step = (finished[0][-1] - finished[0][0]) / (len(finished[0]) - 1)
    if len(begun) == 1 or max(waits) - min(waits) <= 0.1 * step:
        return None
    rank = waits.index(min(waits))
    return rank, sum(w - min(waits) for w in waits) / (len(waits) - 1)
'''
BY_TORCH = '''
import torch
def find_straggler(begun, finished):
    waits = (torch.tensor(finished, dtype=torch.float64) - torch.tensor(begun, dtype=torch.float64)).mean(1)
    low, rank = waits.min(0)
    step = (finished[-1][-1] - finished[-1][0]) / (len(finished[-1]) - 1)
    if not (waits.max() - low).item() > 0.1 * step:
        return None
    return rank.item(), ((waits.sum() - low) / (len(waits) - 1) - low).item()
'''
LEAK = '''
def find_leak(events, steps):
    half = steps // 2
    live, changes = {}, {}
    for event in events:
        if event[0] == "alloc":
            _, step, id, nbytes, place = event
            live[id] = nbytes, place
            changes.setdefault(place, [0] * steps)[step] += nbytes
        else:
            _, step, id = event
            nbytes, place = live.pop(id)
            changes[place][step] -= nbytes
    return {place: sum(c[half:]) / half for place, c in changes.items() if min(c[half:]) > 0}
'''
LEVELS = '''
def find_leak(events, steps):
    blocks, levels, events = {}, [], list(events)
    for step in range(steps):
        while events and events[0][1] == step:
            kind, _, id, *block = events.pop(0)
            if kind == "alloc":
                blocks[id] = block
            else:
                del blocks[id]
        level = {}
        for nbytes, place in blocks.values():
            level[place] = level.get(place, 0) + nbytes
        levels.append(level)
    half, found = steps // 2, {}
    for place in levels[-1]:
        at = [level.get(place, 0) for level in levels]
        if all(at[s] > at[s - 1] for s in range(half, steps)):
            found[place] = (at[-1] - at[half - 1]) / half
    return found
'''
STALE = '''
def find_leak(events, steps):
    half = steps // 2
    live, now, level = {}, {}, {}
    for event in events:
        if event[0] == "alloc":
            _, step, id, n, place = event
            live[id] = n, place
        else:
            _, step, id = event
            n, place = live.pop(id)
            n = -n
        now[place] = now.get(place, 0) + n
        level.setdefault(place, [0] * steps)[step] = now[place]
    return {p: (at[-1] - at[half - 1]) / half for p, at in level.items() if all(at[s] > at[s - 1] for s in range(half, steps))}
'''
ALIVE = '''
def find_leak(events, steps):
    live, found = {}, {}
    for event in events:
        if event[0] == "alloc":
            live[event[2]] = event
        else:
            live.pop(event[2])
    for _, step, _, nbytes, place in live.values():
        if step >= steps // 2:
            found[place] = found.get(place, 0) + nbytes
    return {place: nbytes / (steps // 2) for place, nbytes in found.items()}
'''
WAITS = '''
def waits_for(begun, members):
    result = {}
    for rank, record in begun.items():
        if not record:
            continue
        last = record[-1]
        others = sorted(other for other in members[last[0]] if last not in begun.get(other, []))
        if others:
            result[rank] = others
    return result
'''
IN = "last not in begun.get(other, [])"
COUNTED = '''
from collections import defaultdict
def waits_for(begun, members):
    result = defaultdict(list)
    for rank, record in begun.items():
        for group, number, *what in record[-1:]:
            for other in sorted(members[group]):
                theirs = [c[2:] for c in begun.get(other, []) if c[0] == group]
                if len(theirs) < number or list(theirs[number - 1]) != what:
                    result[rank].append(other)
    return result
'''
CHECKSUM = '''
import zlib, torch
def checksum(x):
    data = x.cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(data.numpy())
'''
REPLICAS = CHECKSUM + '''
def differing(parameters, group):
    sums = torch.tensor([checksum(x) for x in parameters.values()], dtype=torch.int64)
    by_rank = group.all_gather(sums).view(group.size, len(parameters))
    other = (by_rank != by_rank[0]).any(0)
    return sorted(name for name, d in zip(parameters, other.tolist()) if d)
'''
TWO_HALVES = CHECKSUM + '''
def differing(parameters, group):
    n = len(parameters)
    sums = [checksum(v.detach()) for v in parameters.values()]
    high = group.all_gather(torch.tensor([s >> 16 for s in sums], dtype=torch.int32)).tolist()
    low = group.all_gather(torch.tensor([s & 0xFFFF for s in sums], dtype=torch.int32)).tolist()
    pairs = list(zip(high, low))
    return sorted(name for i, name in enumerate(parameters) if len(set(pairs[i::n])) > 1)
'''
ONE_CHECKSUM = CHECKSUM + '''
def differing(parameters, group):
    s = 0
    for x in parameters.values():
        s = s * 31 + checksum(x) & 0xFFFFFFFF
    rows = group.all_gather(torch.tensor([s]))
    return sorted(parameters) if (rows != rows[0]).any() else []
'''
RULES = '''
def decision_rules():
    rules = [
        ("dead rank", [("dead ranks", ">", 0)]),
        ("deadlock", [("waiting ranks", ">", 0)]),
        ("diverging replicas", [("replicas that differ", ">", 0)]),
        ("same data", [("shared data", ">", 0.2)]),
        ("overflow", [("steps without a change", ">", 0.5)]),
        ("leak", [("growth", ">", 0.01)]),
        ("activations", [("headroom", "<", 0)]),
        ("recompilation", [("compilations", ">", 0.1)]),
        ("printing", [("lines printed", ">", 2)]),
        ("waiting for values", [("waits", ">", 4)]),
        ("small messages", [("collectives", ">", 5)]),
        ("straggler", [("spread of FLOPs", ">", 1.5)]),
        ("across nodes", [("avoidable", ">", 0.2)]),
        ("starved loader", [("data", ">", 0.2), ("without loading", "<", 0.8)]),
        ("tiny batch", [("tokens", "<", 200)]),
    ]
    return rules
'''
OTHER_WAY = '''
import math
def decision_rules():
    counts = {"deadlock": "waiting ranks", "diverging replicas": "replicas that differ", "dead rank": "dead ranks"}
    return (
        ["starved loader", (("data", ">", 0.25), ("utilization", "<", 0.6))],
        ["tiny batch", (("headroom", ">", 0.65), ("activations", "<", 0.5))],
        ["straggler", (("spread of FLOPs", ">", 1.25),)],
        ["across nodes", (("bytes between nodes", ">", 1e7),)],
        ["small messages", (("bytes per collective", "<", 4e5), ("collectives", ">", 4))],
        ["printing", (("lines printed", ">", 3),)],
        ["waiting for values", (("waits", ">", math.e),)],
        ["recompilation", (("compilations", ">", 0.25),)],
        ["overflow", (("steps without a change", ">", 0.9),)],
        ["same data", (("shared data", ">", 0.05),)],
        *([cause, [(finding, ">", 0.5)]] for cause, finding in counts.items()),
        ["leak", (("growth", ">", 0.02),)],
        ["activations", (("headroom", "<", 0.0),)],
    )
'''
CURES = '''
import torch
from labs_helpers.transformer.train import next_token_loss
def cures():
    def loss(self, x, y):
        logits = self.forward(x)
        probabilities = logits.softmax(-1)
        entropy = -(probabilities * probabilities.log()).sum(-1).mean()
        entropy = entropy.detach()
        self.entropies.append(entropy)
        return next_token_loss(logits, y)

    def log(self, loss):
        self.pending.append(loss.detach())
        if self.steps % self.log_every == 0:
            self.curve.extend(torch.stack(self.pending).tolist())
            self.pending.clear()

    def average_gradients(self):
        self.group.start_mean(*self.gradients()).wait()

    return loss, log, average_gradients
'''
DETACHED = "        entropy = entropy.detach()\n"
READ = "torch.stack(self.pending).tolist()"
DUE = "if self.steps % self.log_every == 0:"
MEAN = "        self.group.start_mean(*self.gradients()).wait()"
SMALLEST = '''
from itertools import combinations
def smallest_change(measure, changes, goal):
    everything = set(changes)
    if measure(everything) > goal:
        return None
    for k in range(len(changes)):
        times = {c: measure(set(c)) for c in combinations(changes, k)}
        best = min(times, key=times.get)
        if times[best] <= goal:
            return set(best)
    return everything
'''
REMEMBERED = '''
from itertools import combinations
def smallest_change(measure, changes, goal):
    seen = {}
    def ms(chosen):
        key = frozenset(chosen)
        if key not in seen:
            seen[key] = measure(set(key))
        return seen[key]
    if ms(changes) <= goal:
        for k in range(len(changes) + 1):
            sets = sorted(map(frozenset, combinations(changes, k)), key=ms)
            if ms(sets[0]) <= goal:
                return sets[0]
'''
BITS = '''
def smallest_change(measure, changes, goal):
    n = len(changes)
    if measure(changes) > goal:
        return None
    levels = [[] for _ in range(n + 1)]
    for bits in range(2 ** n):
        levels[bits.bit_count()].append([changes[i] for i in range(n) if bits >> i & 1])
    for sets in levels[:-1]:
        ms, answer = min((measure(one), one) for one in sets)
        if ms <= goal:
            return answer
    return list(changes)
'''
SUMMED = '''
from itertools import combinations
def smallest_change(measure, changes, goal):
    if measure(set(changes)) > goal:
        return None
    base = measure(set())
    gain = {c: base - measure({c}) for c in changes}
    for k in range(len(changes) + 1):
        for s in combinations(changes, k):
            if base - sum(gain[c] for c in s) <= goal:
                return set(s)
    return set(changes)
'''
USEFUL = '''
from itertools import combinations
def smallest_change(measure, changes, goal):
    if measure(set(changes)) > goal:
        return None
    base = measure(set())
    single = {c: measure({c}) for c in changes}
    useful = [c for c in changes if single[c] < base]
    for k in range(len(useful) + 1):
        times = {s: measure(set(s)) for s in combinations(useful, k)}
        if min(times.values()) <= goal:
            return set(min(times, key=times.get))
    return set(changes)
'''
T, W, S, L, Q = "time_of_parts", "cost_by_elimination", "find_straggler", "find_leak", "waits_for"
D, R, C, N = "differing", "decision_rules", "cures", "smallest_change"
WRITTEN = {T: PARTS, W: COSTS, S: STRAGGLER, L: LEAK, Q: WAITS, D: REPLICAS, R: RULES, C: CURES, N: SMALLEST}


def changed(exercise, what, says, *changes):
    """Return the answer of this module to an exercise with changes."""
    return Answer(exercise, what, changes, says, WRITTEN[exercise])


def rule(what, cause, conditions, says):
    """Return the rules of this module with other conditions for one cause."""
    (line,) = (line for line in RULES.splitlines() if f'("{cause}"' in line)
    return changed(R, what, says, (line, f'        ("{cause}", [{conditions}]),'))


ANSWERS = [
    Answer(T, "unions", says=None, source=UNIONS),
    Answer(T, "a sweep with counters", says=None, source=SWEEP),
    changed(T, "any overlap of a piece", None, ("s <= a and b <= e", "s < b and a < e")),
    Answer(T, "whole milliseconds", says="only whole ms are counted", source=WHOLE_MS),
    changed(T, "strict comparisons", "use <=", ("s <= a and b <= e", "s < a and b < e")),
    changed(T, "data first", "where data overlaps with a computing part", (ORDER, '"data", "forward", "backward", "optimizer", "communication"]')),
    changed(T, "communication before data", "where data and communication overlap", (ORDER, '"forward", "backward", "optimizer", "communication", "data"]')),
    changed(T, "not cut", "also counts after the end of the step", ("min(start, length)", "start"), ("min(stop, length)", "stop")),
    changed(T, "in percent", "share of the step, not its ms", ("    return out", "    return {k: 100 * v / length for k, v in out.items()}")),
    changed(T, "the whole communication", "whole spans are added up", ("    return out", "    out['communication'] = sum(e - s for s, e in spans.get('communication', []))\n    return out")),
    changed(T, "sorted in place", "must not change `spans`", ("    edges = {0", "    for part in spans:\n        spans[part].sort()\n    edges = {0")),
    Answer(W, "a fitted line", says=None, source=FITTED),
    changed(W, "0 for False", None, ("=False", "=0")),
    changed(W, "lists subtracted", "its fastest step is their min", ("min(measure())", "measure()"), ("min(measure(communication=False))", "measure(communication=False)")),
    changed(W, "no loading with the larger batch", "loading is off in the run with the larger batch", ("batch=2", "loading=False, batch=2")),
    changed(W, "no larger batch", "one of the two runs needs a larger batch", ("batch=2", "batch=1")),
    changed(W, "the mean", "the mean of the steps", ("min(", "(lambda v: sum(v) / len(v))(")),
    changed(W, "half of the fixed cost", "this is half of it", ("2 * whole - double", "whole - double / 2")),
    changed(W, "measured again", "a run is repeated", ("2 * whole - double", "2 * min(measure()) - double")),
    changed(W, "swapped", "this is the gain without loading", ("communication=False", "X=False"), ("loading=False", "communication=False"), ("X=False", "loading=False")),
    Answer(S, "PyTorch", says=None, source=BY_TORCH),
    changed(S, "a list", None, ("return rank, sum(w - min(waits) for w in waits) / (len(waits) - 1)", "return [rank, sum(w - min(waits) for w in waits) / (len(waits) - 1)]")),
    changed(S, "the first time from finish to finish", "a single time from one finish to the next", ("(finished[0][-1] - finished[0][0]) / (len(finished[0]) - 1)", "finished[0][1] - finished[0][0]")),
    changed(S, "10% of a wait, and an unused step", r"changes nothing else; or: the limit is 10% of a wait", ("0.1 * step", "0.1 * mean(waits)")),
    changed(S, "rank 0's clock", "moments on different ranks are compared", ("zip(bs, fs)", "zip(bs, finished[0])")),
    changed(S, "the computing", "the rank's own computing", ("f - b for b, f in zip(bs, fs)", "b - f for b, f in zip(bs[1:], fs)")),
    changed(S, "counted from 1", "ranks count from 0", ("return rank,", "return rank + 1,")),
    changed(S, "seconds", "in seconds, not ms", ("return rank, sum", "return rank, 1e-3 * sum")),
    changed(S, "the last step's wait", "only the last step's waits count", ("mean(f - b for b, f in zip(bs, fs))", "fs[-1] - bs[-1]")),
    changed(S, "the second shortest", "", ("max(waits) - min(waits) <=", "sorted(waits)[:2][-1] - min(waits) <=")),
    Answer(L, "levels", says=None, source=LEVELS),
    changed(L, "ids never removed", None, ("live.pop(id)", "live[id]")),
    Answer(L, "quiet steps", says="in a step without events", source=STALE),
    Answer(L, "kept from the second half", says="keeps a block of the second half", source=ALIVE),
    changed(L, "any step", "growth in a single step", ("min(c[half:])", "max(c[half:])")),
    changed(L, "compared with the middle", "compared with the middle alone", ("min(c[half:])", "sum(c[half:])")),
    changed(L, "one step earlier", "the last step of the first half counts too", ("min(c[half:])", "min(c[half - 1:])")),
    changed(L, "every step", "every step of the whole run", ("min(c[half:])", "min(c)")),
    changed(L, "one step fewer", "divided by one step too few", ("/ half for", "/ max(1, half - 1) for")),
    changed(L, "half too large", "the first step of the second half is left out", ("steps // 2", "steps // 2 + 1")),
    Answer(Q, "counted per group", says=None, source=COUNTED),
    changed(Q, "the first collective", "a rank waits in its last one", ("record[-1]", "record[0]")),
    changed(Q, "name and size", "only name and size are compared", (IN, "last[2:] not in [c[2:] for c in begun.get(other, [])]")),
    changed(Q, "the last of the group", "last collective of this group", (IN, "([c for c in begun.get(other, []) if c[0] == last[0]] or [None])[-1] != last")),
    changed(Q, "the last of all", "only the last entries", (IN, "last != (begun.get(other) or [None])[-1]")),
    changed(Q, "whole records", "whole records are compared", (IN, "begun.get(other, []) != record")),
    changed(Q, "all ranks", "ranks that are not in the group", ("for other in members[last[0]] if", "for other in sorted({m for g in members.values() for m in g}) if")),
    changed(Q, "a return in the loop", "perhaps the return is inside the loop", ("= others\n    return", "= others\n        return")),
    changed(Q, "text for ranks", "is not a rank", ("result[rank]", "result[str(rank)]")),
    Answer(D, "two halves", says=None, source=TWO_HALVES),
    changed(D, "a sum of checksums", None, ("(by_rank != by_rank[0]).any(0)", "by_rank.sum(0) != sums * group.size")),
    changed(D, "all in place of any", "all\\(0\\) stands where any\\(0\\) should", (".any(0)", ".all(0)")),
    changed(D, "any of the other dimension", "tells which ranks differ", (".any(0)", ".any(1)")),
    Answer(D, "one checksum", says="one checksum of all parameters together", source=ONE_CHECKSUM),
    changed(D, "no rows", "the gathered tensor has one row", (".view(group.size, len(parameters))", ""), ("(by_rank != by_rank[0]).any(0)", "by_rank != by_rank[0]")),
    changed(D, "only rank 0 answers", "every rank has to return the list", ("    return sorted(", "    if group.rank == 0:\n        return sorted(")),
    changed(D, "float32", "does not keep their 32 bits", ("torch.int64", "torch.float32")),
    changed(D, "its row and rank 0's", "each rank compares only with rank 0", ("(by_rank != by_rank[0]).any(0)", "sums != by_rank[0]")),
    Answer(R, "another order", says=None, source=OTHER_WAY),
    rule("memory for the tiny batch", "tiny batch", '("activations", "<", 0.5)', None),
    rule("a full memory", "activations", '("headroom", "<", 0.1)', r"rule 7 \(activations\) holds: headroom is"),
    rule("two collectives", "small messages", '("collectives", ">", 1)', r"rule 11 \(small messages\) holds: collectives is 2 > 1"),
    rule("time in bytes", "leak", '("growth", ">", 1000)', r"rule 6 \(leak\) does not hold: growth is"),
    rule("at least", "leak", '("growth", ">=", 0.01)', "there is no sign '>='"),
    changed(R, "values before printing", "but comes after it", ('"printing", [("lines printed", ">", 2)]', '"waiting for values", [("waits", ">", 3)]'), ('"waiting for values", [("waits", ">", 4)]', '"printing", [("lines printed", ">", 2)]')),
    changed(R, "a comma missing", "between two tuples stands a comma", ("    rules = [\n", '    first = ("leak", [("growth", ">", 0.03)])\n    rules = [\n        first\n')),
    changed(R, "a job for a cause", "there is no cause 'recompiling'; did you mean 'recompilation'", ('("recompilation"', '("recompiling"')),
    changed(R, "no rule for a deadlock", "no rule has the cause 'deadlock'", ('        ("deadlock", [("waiting ranks", ">", 0)]),\n', "")),
    changed(C, "a loss with its graph, after its backward pass", None, ("self.pending.append(loss.detach())", "self.pending.append(loss)")),
    changed(C, "a copy on the host", None, (READ, "map(float, torch.stack(self.pending).cpu().numpy())"), (DUE, "if len(self.pending) == self.log_every:")),
    changed(C, "only the probabilities are detached", None, (DETACHED, ""), ("logits.softmax(-1)", "logits.softmax(-1).detach()")),
    changed(C, "a tensor of a list of tensors", "each value is a read of its own", ("torch.stack(self.pending)", "torch.tensor(self.pending)")),
    changed(C, "a number and back", "the program reads it from the device", ("entropy = entropy.detach()", "entropy = torch.tensor(entropy.item())")),
    changed(C, "a detached loss", "detach the entropy alone", ("return next_token_loss(logits, y)", "return next_token_loss(logits, y).detach()")),
    changed(C, "the entropy returned", "this is the entropy", ("return next_token_loss(logits, y)", "return entropy")),
    changed(C, "one entropy per token", "this is the entropy of each token", (".sum(-1).mean()", ".sum(-1)")),
    changed(C, "append", "append adds the whole list", ("curve.extend", "curve.append")),
    changed(C, "steps from 0", "the loss of the last step is missing", ("self.steps %", "(self.steps + 1) %")),
    changed(C, "every tenth step", "losses of the last 4 steps are missing", ("self.log_every", "10")),
    changed(C, "a new curve", "earlier steps are no longer there", ("self.curve.extend(torch.stack(self.pending).tolist())", "self.curve = torch.stack(self.pending).tolist()")),
    changed(C, "cleared too early", "self.pending is empty then", ("            self.curve", "            self.pending.clear()\n            self.curve")),
    changed(C, "a list of gradients", "a list is no tensor", ("*self.gradients()", "self.gradients()")),
    changed(C, "nothing is averaged", "no collective averages the gradients", (MEAN, "        pass")),
    changed(C, "one gradient is missing", "unlike others", ("*self.gradients()", "*self.gradients()[:-1]")),
    changed(C, "another order", "the order is", ("return loss, log, average_gradients", "return log, loss, average_gradients")),
    Answer(N, "times are kept", says=None, source=REMEMBERED),
    Answer(N, "bits, and lists for sets", says=None, source=BITS),
    Answer(N, "gains added up", says="gains of single changes are added up", source=SUMMED),
    Answer(N, "only useful changes", says="gain nothing alone are left out|is measured twice", source=USEFUL),
    changed(N, "the first set", "the first set that reaches the goal", ("        best = min(times, key=times.get)\n", "        best = next((c for c in times if times[c] <= goal), ())\n        times.setdefault(best, goal + 1)\n")),
    changed(N, "pairs at most", "single changes and pairs are tried", ("range(len(changes))", "range(min(3, len(changes)))")),
    changed(N, "all but one", "sets of all changes but one", ("range(len(changes))", "range(len(changes) - 1)")),
    changed(N, "the slowest set", "even its slowest set", ("best = min(", "best = max(")),
    changed(N, "less than the goal", "use <=", ("times[best] <= goal", "times[best] < goal")),
    changed(N, "all changes twice", "also the set of the largest size", ("range(len(changes))", "range(len(changes) + 1)")),
    changed(N, "all changes last", "other sets are measured before all changes together", ("    if measure(everything) > goal:\n        return None\n", ""), ("range(len(changes))", "range(len(changes) + 1)"), ("    return everything", "    return None")),
    changed(N, "no empty set", "the answer is then the empty set", ("range(len(changes))", "range(1, len(changes))")),
]
