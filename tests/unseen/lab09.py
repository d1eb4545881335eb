"""Answers to lab 09 that nobody had seen when its checks were written."""

from tests.unseen.answers import Answer

ST, P, G, Z, SE = "states_in_bytes", "shard_pieces", "sharded_groups", "zero1_step", "sent_per_step"
R, M, A, T, C, K = "reduce_in_backward", "shard_module", "gather_ahead", "tokens_to_hide", "clip_shards", "checkpoint"

HYBRID = '''
import torch
import torch.distributed as dist

def hybrid_step(whole, gradients, optimizer, shard, max_norm, shard_group, replica_group):
    size, nodes = dist.get_world_size(shard_group), dist.get_world_size(replica_group)
    mean, count = torch.zeros_like(shard.data), 0
    for gradient in gradients:
        mine = torch.empty_like(shard.data)
        dist.reduce_scatter_tensor(mine, gradient, group=shard_group)
        mean += mine
        count += 1
        del gradient
    dist.all_reduce(mean, group=replica_group)
    mean /= count * size * nodes
    square = mean.float().square().sum()
    dist.all_reduce(square, group=shard_group)
    norm = square.sqrt()
    mean *= (max_norm / (norm + 1e-6)).clamp(max=1.0)
    shard.grad = mean
    optimizer.step()
    shard.grad = None
    dist.all_gather_into_tensor(whole, shard.detach(), group=shard_group)
    return norm
'''

ANSWERS = [
    Answer(ST, "no master weights", [("(2, 2, 12)", "(2, 2, 8)")]),
    Answer(ST, "ZeRO-1 divides the gradients", [('"ZeRO-1": (parameters, gradients, optimizer / ranks)', '"ZeRO-1": (parameters, gradients / ranks, optimizer)')]),
    Answer(ST, "ZeRO-3 keeps the gradients", [("(parameters / ranks, gradients / ranks, optimizer / ranks)", "(parameters / ranks, gradients, optimizer / ranks)")]),
    Answer(ST, "autocast has 16-bit gradients", [("(4, 4, 8)", "(4, 2, 8)")]),
    Answer(ST, "bf16 with float32 moments", [("(2, 2, 4)", "(2, 2, 8)")]),
    Answer(ST, "DDP divides by the ranks", [('"DDP": (parameters, gradients, optimizer)', '"DDP": (parameters / ranks, gradients / ranks, optimizer / ranks)')]),
    Answer(ST, "a master among the parameters", [("(2, 2, 12)", "(6, 2, 8)")]),
    Answer(P, "rounds down", [("-(-sum(numels) // world_size)", "sum(numels) // world_size")]),
    Answer(P, "counted from the shard", [("pieces.append((number, begin, end))", "pieces.append((number, begin + start - first, end + start - first))")]),
    Answer(P, "counted in flat memory", [("pieces.append((number, begin, end))", "pieces.append((number, begin + start, end + start))")]),
    Answer(P, "the last element is end", [("pieces.append((number, begin, end))", "pieces.append((number, begin, end - 1))")]),
    Answer(P, "empty pieces", [("        if begin < end:\n            pieces.append", "        if begin <= end:\n            pieces.append")]),
    Answer(P, "padding belongs to the last", [("    return shard_numel, pieces", "    if pieces and pieces[-1][0] == len(numels) - 1:\n        number, begin, end = pieces[-1]\n        pieces[-1] = (number, begin, begin + shard_numel - sum(e - b for _, b, e in pieces[:-1]))\n    return shard_numel, pieces")]),
    Answer(P, "one more for everybody", [("-(-sum(numels) // world_size)", "sum(numels) // world_size + 1")]),
    Answer(P, "from 0 in every parameter", [("max(first - start, 0)", "0")]),
    Answer(G, "copies", [("shard[at : at + end - begin])", "shard[at : at + end - begin].clone())")]),
    Answer(G, "begin and end in the shard", [("shard[at : at + end - begin]", "shard[begin:end]")]),
    Answer(G, "empty groups left out", [("        param_groups.append({**group, \"params\": mine})", "        if mine:\n            param_groups.append({**group, \"params\": mine})")]),
    Answer(G, "changes groups", [("        param_groups.append({**group, \"params\": mine})", "        group[\"params\"] = mine\n        param_groups.append(group)")]),
    Answer(G, "options lost", [('{**group, "params": mine}', '{"params": mine}')]),
    Answer(G, "plain views", [("nn.Parameter(shard[at : at + end - begin])", "shard[at : at + end - begin]")]),
    Answer(G, "the place does not move", [("        at += end - begin\n", "")]),
    Answer(G, "pieces in the order of the shard, by place", [("[tensor_of[number] for number in group[\"params\"] if number in tensor_of]", "[tensors[number] for number in group[\"params\"] if number < len(tensors)]")]),
    Answer(Z, "sum", [("gradient / size, group", "gradient, group")]),
    Answer(Z, "all-reduce, then a part", [("    mine = torch.empty_like(gradient[: whole.numel() // size])\n    dist.reduce_scatter_tensor(mine, gradient / size, group=group)\n", "    dist.all_reduce(gradient, group=group)\n    mine = gradient.chunk(size)[rank] / size\n")]),
    Answer(Z, "gradients stay", [("    optimizer.zero_grad()\n", "")]),
    Answer(Z, "zeros for None", [("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)")]),
    Answer(Z, "no gather", [("    dist.all_gather_into_tensor(whole, shard, group=group)\n", "")]),
    Answer(Z, "the place does not move", [("        at += tensor.numel()\n", "")]),
    Answer(Z, "number among all ranks", [("dist.get_rank(group), dist", "dist.get_rank(), dist")]),
    Answer(Z, "gathers before the step", [("    optimizer.step()\n    optimizer.zero_grad()\n    shard = whole.chunk(size)[rank]\n    dist.all_gather_into_tensor(whole, shard, group=group)", "    shard = whole.chunk(size)[rank]\n    dist.all_gather_into_tensor(whole, shard, group=group)\n    optimizer.step()\n    optimizer.zero_grad()")]),
    Answer(Z, "no group in the gather", [("(whole, shard, group=group)", "(whole, shard)")]),
    Answer(Z, "gathers the gradient", [("(whole, shard, group=group)", "(whole, mine, group=group)")]),
    Answer(SE, "whole tensors", [("share = (ranks - 1) / ranks", "share = 1")]),
    Answer(SE, "an all-reduce sends once", [('"DDP": 2 * G', '"DDP": G')]),
    Answer(SE, "ZeRO-2 once a step", [("K * G + P", "G + P")]),
    Answer(SE, "ZeRO-2 gathers every time", [('"ZeRO-2": K * G + P', '"ZeRO-2": K * (G + P)')]),
    Answer(SE, "ZeRO-3 gathers once per pass", [("K * (2 * P + G)", "K * (P + G)")]),
    Answer(SE, "ZeRO-3 keeps gradients over passes", [("K * (2 * P + G)", "K * 2 * P + G")]),
    Answer(SE, "to all other ranks", [("(ranks - 1) / ranks", "ranks - 1")]),
    Answer(SE, "DDP every time", [('"DDP": 2 * G', '"DDP": 2 * K * G')]),
    Answer(SE, "gathers of gradients' bytes", [("parameter_bytes * share", "gradient_bytes * share")]),
    Answer(R, "the count stays", [("        missing[number] = len(buckets[number])\n", "")]),
    Answer(R, "one count for all", [("missing[number] -= 1\n        if missing[number] > 0", "missing[0] -= 1\n        if missing[0] > 0")]),
    Answer(R, "no division", [(".to(mine.dtype) / size", ".to(mine.dtype)")]),
    Answer(R, "gradients stay", [("        for p in buckets[number]:\n            p.grad = None\n", "")]),
    Answer(R, "averages in the parameters' dtype", [(".to(mine.dtype) / size", " / size"), ("        work = dist", "        flat = flat.to(mine.dtype)\n        work = dist")]),
    Answer(R, "no padding", [("        flat = torch.nn.functional.pad(flat, (0, size * mine.numel() - flat.numel()))\n", "")]),
    Answer(R, "overwrites", [("mine if shard.grad is None else shard.grad + mine", "mine")]),
    Answer(R, "no wait", [("            work.wait()\n", "")]),
    Answer(R, "started stays", [("        started.clear()\n", "")]),
    Answer(R, "waits at once", [("        started.append((shards[number], mine, work))", "        work.wait()\n        started.append((shards[number], mine, work))")]),
    Answer(R, "one shard for all", [("started.append((shards[number], mine, work))", "started.append((shards[0], mine, work))")]),
    Answer(R, "order of arrival", [("    missing = [len(bucket) for bucket in buckets]\n", "    missing = [len(bucket) for bucket in buckets]\n    came = [[] for _ in buckets]\n"), ("        missing[number] -= 1\n", "        missing[number] -= 1\n        came[number].append(parameter)\n"), ("for p in buckets[number]]).to", "for p in came[number]]).to"), ("        for p in buckets[number]:\n            p.grad = None\n", "        for p in buckets[number]:\n            p.grad = None\n        came[number].clear()\n")]),
    Answer(R, "padding in front", [("(0, size * mine.numel() - flat.numel())", "(size * mine.numel() - flat.numel(), 0)")]),
    Answer(M, "a view of the whole", [("whole.chunk(size)[rank].clone()", "whole.chunk(size)[rank]")]),
    Answer(M, "not freed after forward", [("    module.register_forward_hook(free)\n", "")]),
    Answer(M, "not gathered for backward", [("    module.register_full_backward_pre_hook(gather)\n", "")]),
    Answer(M, "here stays", [("        here.clear()\n", "")]),
    Answer(M, "no mean", [("for p in parameters]) / size", "for p in parameters])")]),
    Answer(M, "overwrites", [("mine if shard.grad is None else shard.grad + mine", "mine")]),
    Answer(M, "whole gradients stay", [("        for p in parameters:\n            p.grad = None\n        free()", "        free()")]),
    Answer(M, "whole until the first forward pass", [("        p.register_post_accumulate_grad_hook(arrived)\n    free()", "        p.register_post_accumulate_grad_hook(arrived)")]),
    Answer(M, "not freed after backward", [("            p.grad = None\n        free()", "            p.grad = None")]),
    Answer(M, "resized to elements", [("resize_(whole.nbytes)", "resize_(whole.numel())")]),
    Answer(M, "sends at the first gradient", [("        if len(here) < len(parameters):\n            return\n        here.clear()", "        if len(here) > 1:\n            here.clear() if len(here) == len(parameters) else None\n            return")]),
    Answer(M, "no group in the gather", [("shard.detach(), group=group)", "shard.detach())")]),
    Answer(A, "shards in float32", [("shards[number].detach().to(whole.dtype)", "shards[number].detach()")]),
    Answer(A, "no prefetch", [("        if number == 0:\n            start(0)\n        started.pop(number).wait()\n        if number < last:\n            start(number + 1)", "        start(number)\n        started.pop(number).wait()")]),
    Answer(A, "waits for the next at once", [("            start(number + 1)\n", "            start(number + 1)\n            started[number + 1].wait()\n")]),
    Answer(A, "frees the last as well", [("        if number < last:\n            wholes[number].untyped_storage().resize_(0)", "        wholes[number].untyped_storage().resize_(0)")]),
    Answer(A, "never frees in backward", [("            wholes[number + 1].untyped_storage().resize_(0)\n", "")]),
    Answer(A, "backward fetches the wrong neighbour", [("            start(number - 1)", "            start(number + 1)")]),
    Answer(A, "finish does nothing", [("        wholes[0].untyped_storage().resize_(0)", "        pass")]),
    Answer(A, "no memory before the gather", [("        whole.untyped_storage().resize_(whole.nbytes)\n", "")]),
    Answer(A, "does not wait in backward", [("            started.pop(number).wait()\n        if number > 0", "            started.pop(number)\n        if number > 0")]),
    Answer(A, "not async", [(", group=group, async_op=True)", ", group=group)"), ("        started.pop(number).wait()\n        if number < last:", "        if number < last:"), ("            started.pop(number).wait()\n        if number > 0", "        if number > 0")]),
    Answer(T, "backward computes twice", [("(4 / achieved)", "(2 / achieved)")]),
    Answer(T, "no share", [("share = (ranks - 1) / ranks", "share = 1.0")]),
    Answer(T, "two gathers forward", [("share * parameter_bytes / busbw / (2", "2 * share * parameter_bytes / busbw / (2")]),
    Answer(T, "gradients alone in backward", [("share * (parameter_bytes + gradient_bytes)", "share * gradient_bytes")]),
    Answer(T, "an all-reduce of gradients", [("(parameter_bytes + gradient_bytes)", "(parameter_bytes + 2 * gradient_bytes)")]),
    Answer(T, "swapped", [("return forward, backward", "return backward, forward")]),
    Answer(T, "upside down", [("return forward, backward", "return 1 / forward, 1 / backward")]),
    Answer(C, "norms add up", [("shard.float().square().sum() for shard", "shard.float().norm() for shard"), ("norm = squares.sqrt()", "norm = squares")]),
    Answer(C, "squares in bfloat16", [("shard.float().square().sum()", "shard.square().sum().float()")]),
    Answer(C, "scales up as well", [(".clamp(max=1.0)", "")]),
    Answer(C, "its own norm", [("    dist.all_reduce(squares, group=group)\n", "")]),
    Answer(C, "an all-reduce per shard", [("    squares = torch.stack([shard.float().square().sum() for shard in shards]).sum()\n    dist.all_reduce(squares, group=group)\n", "    squares = torch.zeros(())\n    for shard in shards:\n        square = shard.float().square().sum()\n        dist.all_reduce(square, group=group)\n        squares = squares + square\n")]),
    Answer(C, "new tensors", [("shard.mul_(factor)", "shard = shard * factor")]),
    Answer(C, "the norm after", [("    return norm", "    return norm * factor")]),
    Answer(C, "no group", [("dist.all_reduce(squares, group=group)", "dist.all_reduce(squares)")]),
    Answer(C, "root before the sum", [("    dist.all_reduce(squares, group=group)\n    norm = squares.sqrt()", "    norm = squares.sqrt()\n    dist.all_reduce(norm, group=group)")]),
    Answer(K, "padding saved", [("return whole[:numel].clone()", "return whole")]),
    Answer(K, "the step gathered too", [("gather(value) if value.shape == shard.shape else value.clone()", "gather(value.reshape(-1))")]),
    Answer(K, "own part alone", [('"parameters": gather(shard)', '"parameters": shard.detach().clone()')]),
    Answer(K, "the step is shared", [("if value.shape == shard.shape else value.clone()", "if value.shape == shard.shape else value")]),
    Answer(K, "a new parameter", [('shard.data.copy_(part(state["parameters"]))', 'shard.data = part(state["parameters"])')]),
    Answer(K, "moments not loaded", [("        optimizer.state[shard] = {\n            name: part(value) if value.ndim == 1 else value.clone()\n            for name, value in state[\"optimizer\"].items()\n        }\n", "")]),
    Answer(K, "parts of the saved length", [("            padded = torch.nn.functional.pad(whole, (0, size * shard.numel() - numel))\n            return padded.chunk(size)[rank].clone()", "            return whole.chunk(size)[rank].clone()")]),
    Answer(K, "rank of all", [("dist.get_rank(group), dist", "dist.get_rank(), dist")]),
    Answer(K, "loads what it was given, unshared never", [("else value.clone()\n            for name, value in state", "else value\n            for name, value in state")]),
    Answer(K, "rank 0 alone saves", [('        return {"parameters": gather(shard), "optimizer": state}', '        saved = {"parameters": gather(shard), "optimizer": state}\n        return saved if rank == 0 else None')]),
    # Right answers, written differently.
    Answer(ST, "by divisors", [("    return {\n        \"DDP\"", "    rows = {}\n    for number, stage in enumerate((\"DDP\", \"ZeRO-1\", \"ZeRO-2\", \"ZeRO-3\")):\n        parts = (parameters, gradients, optimizer)\n        rows[stage] = tuple(part / (ranks if place >= 3 - number else 1) for place, part in enumerate(parts))\n    if rows:\n        return rows\n    return {\n        \"DDP\"")], says=None),
    Answer(P, "ranges", [("-(-sum(numels) // world_size)", "(sum(numels) + world_size - 1) // world_size"), ("        begin, end = max(first - start, 0), min(last - start, numel)\n        if begin < end:\n            pieces.append((number, begin, end))", "        common = range(max(first, start), min(last, start + numel))\n        if len(common):\n            pieces.append((number, common.start - start, common.stop - start))")], says=None),
    Answer(G, "narrow", [("nn.Parameter(shard[at : at + end - begin])", "nn.Parameter(shard.detach().narrow(0, at, end - begin))"), ('param_groups.append({**group, "params": mine})', 'new = dict(group)\n        new["params"] = mine\n        param_groups.append(new)')], says=None),
    Answer(Z, "in place, then split", [("gradient / size, group", "gradient.div_(size), group"), ("    at = 0\n    for tensor in tensors:\n        tensor.grad = mine[at : at + tensor.numel()]\n        at += tensor.numel()\n", "    sizes = [tensor.numel() for tensor in tensors]\n    parts = mine[: sum(sizes)].split(sizes)\n    for tensor, part in zip(tensors, parts):\n        tensor.grad = part.view_as(tensor)\n"), ("    optimizer.zero_grad()", "    for tensor in tensors:\n        tensor.grad = None")], says=None),
    Answer(SE, "bytes first", [('"ZeRO-3": K * (2 * P + G)', '"ZeRO-3": K * P + K * P + K * G'), ("(ranks - 1) / ranks", "1 - 1 / ranks")], says=None),
    Answer(R, "sets of who is missing", [("missing = [len(bucket) for bucket in buckets]", "missing = [{id(p) for p in bucket} for bucket in buckets]"), ("        missing[number] -= 1\n        if missing[number] > 0:\n            return\n        missing[number] = len(buckets[number])", "        missing[number].discard(id(parameter))\n        if missing[number]:\n            return\n        missing[number].update(id(p) for p in buckets[number])"), ("            shard.grad = mine if shard.grad is None else shard.grad + mine", "            if shard.grad is None:\n                shard.grad = torch.zeros_like(shard)\n            shard.grad += mine")], says=None),
    Answer(M, "writes into one flat tensor", [("        flat = torch.cat([p.grad.reshape(-1) for p in parameters]) / size\n        flat = nn.functional.pad(flat, (0, whole.numel() - flat.numel()))", "        flat, at = torch.zeros(whole.shape, dtype=whole.dtype), 0\n        for p in parameters:\n            flat[at : at + p.numel()] = p.grad.flatten()\n            at += p.numel()\n        flat /= size")], says=None),
    Answer(A, "asks what is started", [("        if number == 0:\n            start(0)\n        started.pop(number).wait()\n        if number < last", "        if number not in started:\n            start(number)\n        started[number].wait()\n        del started[number]\n        if number < last")], says=None),
    Answer(T, "simplified", [("share * parameter_bytes / busbw / (2 / achieved)", "achieved * (ranks - 1) * parameter_bytes / (2 * busbw * ranks)")], says=None),
    Answer(C, "a sum of floats", [("torch.stack([shard.float().square().sum() for shard in shards]).sum()", "sum((shard.float() ** 2).sum() for shard in shards)"), ("(max_norm / (norm + 1e-6)).clamp(max=1.0)", "min(1.0, float(max_norm / (norm + 1e-6)))")], says=None),
    Answer(K, "a list of parts", [("            whole = part.new_empty(size * part.numel())\n            dist.all_gather_into_tensor(whole, part.detach(), group=group)\n            return whole[:numel].clone()", "            parts = [torch.empty_like(part) for _ in range(size)]\n            dist.all_gather(parts, part.detach(), group=group)\n            return torch.cat(parts).detach()[:numel].clone()")], says=None),
    Answer("hybrid_step", "divides by the node alone", [("count * size * nodes", "count * size")], source=HYBRID),
    Answer("hybrid_step", "micro-batches forgotten", [("count * size * nodes", "size * nodes")], source=HYBRID),
    Answer("hybrid_step", "crosses nodes per micro-batch", [("        mean += mine\n", "        dist.all_reduce(mine, group=replica_group)\n        mean += mine\n"), ("    dist.all_reduce(mean, group=replica_group)\n", "")], source=HYBRID),
    Answer("hybrid_step", "squares over both groups", [("    norm = square.sqrt()\n", "    dist.all_reduce(square, group=replica_group)\n    norm = square.sqrt()\n")], source=HYBRID),
    Answer("hybrid_step", "the norm of its shard", [("    dist.all_reduce(square, group=shard_group)\n", "")], source=HYBRID),
    Answer("hybrid_step", "the norm before the nodes have met", [("    dist.all_reduce(mean, group=replica_group)\n    mean /=", "    mean /="), ("    norm = square.sqrt()\n", "    norm = square.sqrt()\n    dist.all_reduce(mean, group=replica_group)\n")], source=HYBRID),
    Answer("hybrid_step", "gradient stays", [("    shard.grad = None\n", "")], source=HYBRID),
    Answer("hybrid_step", "nodes never meet", [("    dist.all_reduce(mean, group=replica_group)\n", "")], source=HYBRID),
    Answer("hybrid_step", "scales up", [(".clamp(max=1.0)", "")], source=HYBRID),
    Answer("hybrid_step", "all gradients in a list", [("    for gradient in gradients:", "    for gradient in list(gradients):")], source=HYBRID),
    Answer("hybrid_step", "groups swapped", [("    size, nodes =", "    shard_group, replica_group = replica_group, shard_group\n    size, nodes =")], source=HYBRID),
    Answer("hybrid_step", "no gather", [("    dist.all_gather_into_tensor(whole, shard.detach(), group=shard_group)\n", "")], source=HYBRID),
    Answer("hybrid_step", "the last micro-batch alone", [("        mean += mine\n", "        mean = mine\n")], source=HYBRID),
    Answer("hybrid_step", "from nothing", says=None, source=HYBRID),
    Answer("hybrid_step", "divides each gradient", [("gradient, group=shard_group)\n        mean", "gradient / (size * nodes), group=shard_group)\n        mean"), ("count * size * nodes", "count")], says=None, source=HYBRID),
]
