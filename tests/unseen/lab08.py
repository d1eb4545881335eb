"""Answers to lab 08 that nobody had seen when its checks were written."""

from tests.unseen.answers import Answer

S, A, F, O = "same_start", "average_gradients", "flat_average", "overlapped"
M, B, E, U = "make_buckets", "bucketed", "exposed", "accumulated"

TOP_K = '''
import torch
import torch.distributed as dist

def top_k_mean(flat, residual, k, group):
    residual += flat
    positions = residual.abs().topk(k).indices
    values = residual[positions]
    residual[positions] = 0
    size = dist.get_world_size(group)
    positions = positions.int()
    all_values = [torch.empty_like(values) for _ in range(size)]
    all_positions = [torch.empty_like(positions) for _ in range(size)]
    dist.all_gather(all_values, values, group=group)
    dist.all_gather(all_positions, positions, group=group)
    flat.zero_()
    for theirs, where in zip(all_values, all_positions):
        flat.index_add_(0, where, theirs)
    flat /= size
'''

ANSWERS = [
    Answer(S, "no buffers", [("[*model.parameters(), *model.buffers()]", "model.parameters()")]),
    Answer(S, "state_dict", [("[*model.parameters(), *model.buffers()]", "model.state_dict().values()")]),
    Answer(S, "sends what has gaps", [("tensor.detach().contiguous()", "tensor.detach()")]),
    Answer(S, "nothing comes back from the copy", [("        tensor.detach().copy_(values)\n", "")]),
    Answer(S, "src is a rank of all", [("group_src=0", "src=0")]),
    Answer(S, "trained parameters alone", [("[*model.parameters(), *model.buffers()]", "[p for p in model.parameters() if p.requires_grad] + list(model.buffers())")]),
    Answer(S, "new memory", [("tensor.detach().copy_(values)", "tensor.data = values")]),
    Answer(S, "no group", [("dist.broadcast(values, group=group, group_src=0)", "dist.broadcast(values, src=0)")]),
    Answer(S, "rank 0 alone sends", [("        dist.broadcast(values", "        if dist.get_rank(group) == 0:\n            dist.broadcast(values")]),
    Answer(S, "a shared weight per layer", [("[*model.parameters(), *model.buffers()]", "[t for m in model.modules() for t in [*m.parameters(recurse=False), *m.buffers(recurse=False)]]")]),
    Answer(A, "sum", [("            parameter.grad /= dist.get_world_size(group)\n", "")]),
    Answer(A, "ranks of the job", [("dist.get_world_size(group)", "dist.get_world_size()")]),
    Answer(A, "skips what is unused", [("        if parameter.requires_grad:\n            if parameter.grad is None:\n                parameter.grad = torch.zeros_like(parameter)\n", "        if parameter.grad is not None:\n")]),
    Answer(A, "frozen ones too", [("if parameter.requires_grad:", "if True:")]),
    Answer(A, "no group", [("dist.all_reduce(parameter.grad, group=group)", "dist.all_reduce(parameter.grad)")]),
    Answer(A, "division dropped", [("parameter.grad /= dist.get_world_size(group)", "parameter.grad.div(dist.get_world_size(group))")]),
    Answer(A, "sends a copy", [("dist.all_reduce(parameter.grad, group=group)", "dist.all_reduce(parameter.grad.clone(), group=group)")]),
    Answer(A, "averages the parameters", [("dist.all_reduce(parameter.grad, group=group)", "dist.all_reduce(parameter.data, group=group)"), ("parameter.grad /= dist", "parameter.data /= dist")]),
    Answer(A, "the unused one sends and forgets", [("            if parameter.grad is None:\n                parameter.grad = torch.zeros_like(parameter)\n            dist.all_reduce(parameter.grad, group=group)\n", "            if parameter.grad is None:\n                dist.all_reduce(torch.zeros_like(parameter), group=group)\n                continue\n            dist.all_reduce(parameter.grad, group=group)\n")]),
    Answer(A, "divides before and after", [("            dist.all_reduce", "            parameter.grad /= dist.get_world_size(group)\n            dist.all_reduce")]),
    Answer(F, "one tensor of all dtypes", [("setdefault(parameter.dtype, [])", "setdefault(0, [])")]),
    Answer(F, "copies back", [("parameter.grad = part.view(parameter.shape)", "parameter.grad = part.view(parameter.shape).clone()")]),
    Answer(F, "sum", [("        flat /= dist.get_world_size(group)\n", "")]),
    Answer(F, "mean dropped", [("flat /= dist.get_world_size(group)", "mean = flat / dist.get_world_size(group)")]),
    Answer(F, "skips what is unused", [("        if parameter.requires_grad:", "        if parameter.grad is not None:")]),
    Answer(F, "frozen ones too", [("        if parameter.requires_grad:", "        if True:")]),
    Answer(F, "flat gradients", [("part.view(parameter.shape)", "part")]),
    Answer(F, "one message per gradient", [("        dist.all_reduce(flat, group=group)\n", "        for part in flat.split([p.numel() for p in parameters]):\n            dist.all_reduce(part, group=group)\n")]),
    Answer(F, "parts in reverse", [("zip(parameters, parts, strict=True)", "zip(reversed(parameters), parts, strict=True)")]),
    Answer(F, "returns inside the loop", [("            parameter.grad = part.view(parameter.shape)", "            parameter.grad = part.view(parameter.shape)\n        return")]),
    Answer(O, "no wait", [("            work.wait()\n", "")]),
    Answer(O, "handles stay", [("        under_way.clear()\n", "")]),
    Answer(O, "divides in the hook", [("        under_way.append((parameter, work))", "        parameter.grad /= dist.get_world_size(group)\n        under_way.append((parameter, work))"), ("            parameter.grad /= dist.get_world_size(group)\n        under_way.clear()", "        under_way.clear()")]),
    Answer(O, "blocks", [("work = dist.all_reduce(parameter.grad, group=group, async_op=True)", "work = dist.all_reduce(parameter.grad, group=group, async_op=True)\n        work.wait()")]),
    Answer(O, "async_op forgotten", [(", async_op=True)\n        under_way", ")\n        under_way")]),
    Answer(O, "frozen ones too", [("        if parameter.requires_grad:", "        if True:")]),
    Answer(O, "all in finish", [("        work = dist.all_reduce(parameter.grad, group=group, async_op=True)\n        under_way.append((parameter, work))", "        under_way.append(parameter)"), ("        for parameter, work in under_way:\n            work.wait()\n", "        for parameter in under_way:\n            dist.all_reduce(parameter.grad, group=group)\n")]),
    Answer(O, "the last one waits for all", [("            work.wait()\n            parameter.grad /=", "            under_way[-1][1].wait()\n            parameter.grad /=")]),
    Answer(O, "sends the parameter", [("dist.all_reduce(parameter.grad, group", "dist.all_reduce(parameter.data, group")]),
    Answer(O, "divides, then waits", [("            work.wait()\n            parameter.grad /= dist.get_world_size(group)", "            parameter.grad /= dist.get_world_size(group)\n            work.wait()")]),
    Answer(O, "zeroes the gradients at the end", [("        under_way.clear()", "        under_way.clear()\n        model.zero_grad()")]),
    Answer(M, "forward order", [("enumerate(reversed(parameters))", "enumerate(parameters)")]),
    Answer(M, "a small first bucket per dtype", [("bucket_bytes if buckets else first_bytes", "bucket_bytes if kind in filling else first_bytes"), ("filling[kind], room[kind] = [],", "room[kind], filling[kind] ="), ("else first_bytes\n", "else first_bytes, []\n")]),
    Answer(M, "mixes dtypes", [("kind = parameter.dtype", "kind = 0")]),
    Answer(M, "reverses the caller's list", [("    buckets, filling", "    parameters.reverse()\n    buckets, filling"), ("enumerate(reversed(parameters))", "enumerate(parameters)")]),
    Answer(M, "a full bucket does not fit", [("parameter.nbytes > room[kind]", "parameter.nbytes >= room[kind]")]),
    Answer(M, "in the order of their beginning", [("sorted(buckets, key=lambda bucket: arrival[bucket[-1]])", "buckets")]),
    Answer(M, "elements for bytes", [("room[kind] -= parameter.nbytes", "room[kind] -= parameter.numel()"), ("parameter.nbytes > room[kind]", "parameter.numel() > room[kind]")]),
    Answer(M, "by the first to arrive", [("arrival[bucket[-1]]", "arrival[bucket[0]]")]),
    Answer(M, "all with the first size", [("bucket_bytes if buckets else first_bytes", "first_bytes")]),
    Answer(M, "another dtype closes a bucket", [("            buckets.append(filling[kind])", "            buckets.append(filling[kind])\n            filling = {kind: filling[kind]}")]),
    Answer(B, "sends what is full", [("        while len(under_way) < len(buckets) and buckets[len(under_way)].missing == 0:\n            send(buckets[len(under_way)])", "        if bucket_of[parameter].missing == 0:\n            send(bucket_of[parameter])")]),
    Answer(B, "missing stays", [("            bucket.missing = len(bucket.parameters)\n", "")]),
    Answer(B, "unused ones keep the old mean", [("                view.zero_()", "                pass")]),
    Answer(B, "unused ones stay without", [("                view.zero_()\n            else:\n                view.copy_(parameter.grad)\n            parameter.grad = view", "                view.zero_()\n                continue\n            view.copy_(parameter.grad)\n            parameter.grad = view")]),
    Answer(B, "finish sends nothing", [("        for bucket in buckets[len(under_way) :]:\n            send(bucket)\n", ""), ("zip(buckets, under_way, strict=True)", "zip(buckets, under_way)")]),
    Answer(B, "no finally", [("        try:\n            yield\n        finally:\n            synchronize = True", "        yield\n        synchronize = True")]),
    Answer(B, "divides before it waits", [("            work.wait()\n            bucket.flat /= dist.get_world_size(group)", "            bucket.flat /= dist.get_world_size(group)\n            work.wait()")]),
    Answer(B, "gradients stay where they were", [("            parameter.grad = view\n", "")]),
    Answer(B, "handles stay", [("        under_way.clear()\n", "")]),
    Answer(B, "one bucket per arrival", [("        while len(under_way) <", "        if len(under_way) <")]),
    Answer(B, "sends in no_sync", [("        if not synchronize:\n            return\n", "")]),
    Answer(B, "counts in no_sync", [("        if not synchronize:\n            return\n        bucket_of[parameter].missing -= 1\n", "        bucket_of[parameter].missing -= 1\n        if not synchronize:\n            return\n")]),
    Answer(B, "the rest in reverse", [("in buckets[len(under_way) :]:", "in reversed(buckets[len(under_way) :]):")]),
    Answer(B, "adds to the view", [("view.copy_(parameter.grad)", "view.add_(parameter.grad)")]),
    Answer(E, "adds up messages", [("    return communicating, alone", "    return sum(b - a for a, b in communication), alone")]),
    Answer(E, "subtracts all compute", [("    return communicating, alone", "    return communicating, max(0.0, communicating - sum(b - a for a, b in compute))")]),
    Answer(E, "sorts the caller's lists", [("    moments = sorted(", "    compute.sort()\n    communication.sort()\n    moments = sorted(")]),
    Answer(E, "milliseconds", [("return communicating, alone", "return 1e3 * communicating, 1e3 * alone")]),
    Answer(E, "swapped", [("return communicating, alone", "return alone, communicating")]),
    Answer(E, "moments of messages alone", [("[*compute, *communication] for t", "communication for t")]),
    Answer(E, "the hidden part", [("            if not runs(compute", "            if runs(compute")]),
    Answer(E, "each message alone", [("    return communicating, alone", "    alone = sum((b - a) for a, b in communication if not any(c < b and a < d for c, d in compute))\n    return communicating, alone")]),
    Answer(E, "no messages", [("    communicating = alone = 0.0", "    first = min(communication)[0]\n    communicating = alone = 0.0 * first")]),
    Answer(U, "every micro-batch counts the same", [("(loss_of(batch) * len(batch) / samples).backward()", "(loss_of(batch) / len(micro_batches)).backward()"), ("(loss_of(last) * len(last) / samples).backward()", "(loss_of(last) / len(micro_batches)).backward()")]),
    Answer(U, "sends every time", [("        with no_sync():\n            (loss_of(batch)", "        if True:\n            (loss_of(batch)")]),
    Answer(U, "all within no_sync", [("    (loss_of(last) * len(last) / samples).backward()", "    with no_sync():\n        (loss_of(last) * len(last) / samples).backward()")]),
    Answer(U, "clips before the mean", [("    finish()\n    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)", "    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n    finish()\n    return norm")]),
    Answer(U, "the norm after", [("return torch.nn.utils.clip_grad_norm_(parameters, max_norm)", "torch.nn.utils.clip_grad_norm_(parameters, max_norm)\n    return torch.nn.utils.get_total_norm([p.grad for p in parameters])")]),
    Answer(U, "a forgotten division", [("(loss_of(last) * len(last) / samples)", "(loss_of(last) * len(last))")]),
    Answer(U, "each parameter on its own", [("return torch.nn.utils.clip_grad_norm_(parameters, max_norm)", "return max(torch.nn.utils.clip_grad_norm_([p], max_norm) for p in parameters)")]),
    Answer(U, "finishes every time", [("            (loss_of(batch) * len(batch) / samples).backward()\n", "            (loss_of(batch) * len(batch) / samples).backward()\n        finish()\n")]),
    Answer(U, "pops the last", [("    last = micro_batches[-1]", "    last = micro_batches.pop()")]),
    Answer(U, "clips by value", [("    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)", "    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])\n    torch.nn.utils.clip_grad_value_(parameters, max_norm)\n    return norm")]),
    Answer(U, "one large batch", [("    for batch in micro_batches[:-1]:\n        with no_sync():\n            (loss_of(batch) * len(batch) / samples).backward()\n    last = micro_batches[-1]\n    (loss_of(last) * len(last) / samples).backward()", "    loss_of(torch.cat(micro_batches)).backward()")]),
    # Right answers, written differently.
    Answer(S, "under no_grad", [("        values = tensor.detach().contiguous()\n        dist.broadcast(values, group=group, group_src=0)\n        tensor.detach().copy_(values)", "        values = tensor.data.clone(memory_format=torch.contiguous_format)\n        dist.broadcast(values, src=dist.get_global_rank(group, 0), group=group)\n        tensor.data.copy_(values)"), ("    for tensor in [", "    import torch\n\n    for tensor in [")], says=None),
    Answer(A, "divides first", [("            dist.all_reduce(parameter.grad, group=group)\n            parameter.grad /= dist.get_world_size(group)", "            parameter.grad.div_(group.size())\n            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM, group=group)")], says=None),
    Answer(F, "offsets", [("        parts = flat.split([p.numel() for p in parameters])\n        for parameter, part in zip(parameters, parts, strict=True):\n            parameter.grad = part.view(parameter.shape)", "        at = 0\n        for parameter in parameters:\n            parameter.grad = flat[at : at + parameter.numel()].view_as(parameter)\n            at += parameter.numel()")], says=None),
    Answer(O, "divides before it sends", [("        work = dist.all_reduce(", "        parameter.grad /= dist.get_world_size(group)\n        work = dist.all_reduce("), ("            work.wait()\n            parameter.grad /= dist.get_world_size(group)", "            work.wait()")], says=None),
    Answer(M, "by index", [("        arrival[parameter] = place", "        arrival[id(filling[kind])] = place"), ("arrival[bucket[-1]]", "arrival[id(bucket)]")], says=None),
    Answer(B, "pops the handles", [("        for bucket, work in zip(buckets, under_way, strict=True):\n            work.wait()\n            bucket.flat /= dist.get_world_size(group)", "        for bucket in buckets:\n            under_way.pop(0).wait()\n            bucket.flat.div_(dist.get_world_size(group))"), ("        under_way.clear()\n", "")], says=None),
    Answer(E, "merged lists", [("    return communicating, alone", "\n    def union(intervals):\n        total, reached = 0.0, float('-inf')\n        for a, b in sorted(intervals):\n            total, reached = total + max(0.0, b - max(a, reached)), max(reached, b)\n        return total\n\n    both = union([*compute, *communication])\n    return union(communication), both - union(compute)")], says=None),
    Answer(U, "weights the loss", [("            (loss_of(batch) * len(batch) / samples).backward()", "            loss_of(batch).backward(torch.tensor(len(batch) / samples))"), ("(loss_of(last) * len(last) / samples).backward()", "loss = loss_of(last)\n    (loss * (last.shape[0] / samples)).backward()")], says=None),
    Answer("top_k_mean", "largest, not of largest magnitude", [("residual.abs().topk", "residual.topk")], source=TOP_K),
    Answer("top_k_mean", "sends magnitudes", [("values = residual[positions]", "values = residual.abs()[positions]")], source=TOP_K),
    Answer("top_k_mean", "residual left out", [("    residual += flat\n", "    residual.copy_(flat)\n")], source=TOP_K),
    Answer("top_k_mean", "residual keeps what was sent", [("    residual[positions] = 0\n", "")], source=TOP_K),
    Answer("top_k_mean", "overwrites", [("flat.index_add_(0, where, theirs)", "flat[where.long()] = theirs")], source=TOP_K),
    Answer("top_k_mean", "sum", [("    flat /= size\n", "")], source=TOP_K),
    Answer("top_k_mean", "flat keeps its own gradients", [("    flat.zero_()\n", "")], source=TOP_K),
    Answer("top_k_mean", "positions in int64", [("    positions = positions.int()\n", "")], source=TOP_K),
    Answer("top_k_mean", "residual in a new tensor", [("    residual += flat\n", "    residual = residual + flat\n")], source=TOP_K),
    Answer("top_k_mean", "own entries first", [("    for theirs, where in zip(all_values, all_positions):", "    order = sorted(range(size), key=lambda r: (r - dist.get_rank(group)) % size)\n    for theirs, where in ((all_values[r], all_positions[r]) for r in order):")], source=TOP_K),
    Answer("top_k_mean", "mean over those who sent", [("    flat /= size\n", "    sent = torch.zeros_like(flat)\n    for where in all_positions:\n        sent.index_add_(0, where, torch.ones(k))\n    flat /= sent.clamp(min=1)\n")], source=TOP_K),
    Answer("top_k_mean", "from nothing", says=None, source=TOP_K),
    Answer("top_k_mean", "scatter_add", [("flat.index_add_(0, where, theirs)", "flat.scatter_add_(0, where.long(), theirs)")], says=None, source=TOP_K),
]
