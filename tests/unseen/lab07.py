"""Answers to lab 07 that nobody had seen when its checks were written."""

from tests.unseen.answers import Answer

T, I, D, F, X = "trace_shapes", "get_info", "split_data", "naive_collect_forward_input", "naive_collect_backward_x"
C, R, O, S, A = "column_parallel_linear", "row_parallel_linear", "conjugate_operators", "communication_share", "average_gradients"

CROSS = '''
import torch

def parallel_cross_entropy(logits, targets, group):
    part = logits.shape[-1]
    first = group.rank * part
    top = group.all_reduce(logits.amax(-1), "max")
    shifted = (logits - top[..., None]).exp()
    total = group.all_reduce(shifted.sum(-1))
    local = targets - first
    here = (local >= 0) & (local < part)
    local = local.clamp(0, part - 1)[..., None]
    right = logits.gather(-1, local).squeeze(-1) * here
    right = group.all_reduce(right)
    loss = (total.log() + top - right).mean()
    grad = shifted / total[..., None]
    grad = grad.scatter_add(-1, local, -here.to(grad.dtype)[..., None])
    return loss, grad / targets.numel()
'''

ANSWERS = [
    Answer(T, "fc_o in columns", [('shapes["fc_o"] = (slice_, (part, width), whole)', 'shapes["fc_o"] = (slice_, (width, part), slice_)')]),
    Answer(T, "naive takes the slice", [("    return shapes", '    shapes["fc_o, naive"] = (slice_, (width, part), slice_)\n    return shapes')]),
    Answer(T, "nn.Linear's order", [("(whole, (width, part), slice_)", "(whole, (part, width), slice_)"), ("(slice_, (part, width), whole)", "(slice_, (width, part), whole)")]),
    Answer(T, "true division", [("part = width // mp_size", "part = width / mp_size")]),
    Answer(T, "naive is missing", [('"fc_v", "fc_o, naive")', '"fc_v")')]),
    Answer(T, "naive's output is collected", [("    return shapes", '    shapes["fc_o, naive"] = (whole, (width, part), whole)\n    return shapes')]),
    Answer(T, "fc_o gives a slice", [("(slice_, (part, width), whole)", "(slice_, (part, width), slice_)")]),
    Answer(T, "batch divided as well", [("slice_ = (batch, length, width), (batch, length, part)", "slice_ = (batch // mp_size, length, width), (batch // mp_size, length, part)")]),
    Answer(I, "indices swapped", [("rank % mp_size, rank // mp_size", "rank // mp_size, rank % mp_size")]),
    Answer(I, "dp_idx runs fastest", [("rank % mp_size, rank // mp_size", "rank // dp_size, rank % dp_size")]),
    Answer(I, "colors swapped", [("color=dp_idx, key=mp_idx", "color=mp_idx, key=dp_idx"), ("dp_comm = comm.Split(color=mp_idx, key=dp_idx)", "dp_comm = comm.Split(color=dp_idx, key=mp_idx)")]),
    Answer(I, "keys swapped with colors by position", [("Split(color=dp_idx, key=mp_idx)", "Split(mp_idx, dp_idx)")]),
    Answer(I, "keys run backwards", [("key=mp_idx)", "key=-mp_idx)")]),
    Answer(I, "looks at the other dimension", [('split_dim = in_dim if fc_layer == "fc_o" else out_dim', "split_dim = out_dim")]),
    Answer(I, "raises after it has split", [("    if split_dim % mp_size:\n        raise ValueError(f\"mp_size {mp_size} does not divide the {split_dim} of {fc_layer}\")\n", ""), ("    part = split_dim // mp_size", "    if split_dim % mp_size:\n        raise ValueError(f\"{mp_size} does not divide {split_dim}\")\n    part = split_dim // mp_size")]),
    Answer(I, "rank 0 alone raises", [("    if mp_size * dp_size != comm.Get_size():", "    if rank == 0 and mp_size * dp_size != comm.Get_size():")]),
    Answer(I, "any name is a layer", [('    if fc_layer not in ("fc_q", "fc_k", "fc_v", "fc_o"):\n        raise ValueError(f"fc_layer is {fc_layer!r}, not fc_q, fc_k, fc_v or fc_o")\n', "")]),
    Answer(I, "assert", [('        raise ValueError(f"{mp_size} × {dp_size} is not {comm.Get_size()} ranks")', '        raise AssertionError("sizes")')]),
    Answer(I, "both dimensions divided", [("(part, out_dim) if", "(part, out_dim // mp_size) if"), ("else (in_dim, part)", "else (in_dim // mp_size, part)")]),
    Answer(I, "one communicator for both", [("comm.Split(color=mp_idx, key=dp_idx)", "mp_comm")]),
    Answer(D, "the place in the model", [("rank // mp_size, n", "rank % mp_size, n")]),
    Answer(D, "a part per rank", [("dp_idx, part = rank // mp_size, n // dp_size", "dp_idx, part = rank, n // (mp_size * dp_size)")]),
    Answer(D, "every dp_size-th sample", [("slice(dp_idx * part, (dp_idx + 1) * part)", "slice(dp_idx, None, dp_size)")]),
    Answer(D, "divides silently", [('    if n % dp_size:\n        raise ValueError(f"dp_size {dp_size} does not divide {n} samples")\n', "")]),
    Answer(D, "dp_size in place of mp_size", [("rank // mp_size, n", "rank // dp_size, n")]),
    Answer(D, "labels of everybody", [("x_train[mine], y_train[mine]", "x_train[mine], y_train")]),
    Answer(D, "without the last sample", [("(dp_idx + 1) * part)", "(dp_idx + 1) * part - 1)")]),
    Answer(D, "asks mp_size", [("if n % dp_size:", "if n % mp_size:")]),
    Answer(F, "reshapes what arrived", [("np.concatenate(list(parts), axis=2)", "parts.reshape(*x.shape[:2], -1)")]),
    Answer(F, "along the length", [("axis=2", "axis=1")]),
    Answer(F, "sends what has gaps", [("np.ascontiguousarray(x)", "x")]),
    Answer(F, "float64", [("(mp_size, *x.shape), x.dtype)", "(mp_size, *x.shape))")]),
    Answer(F, "a new axis", [("np.concatenate(list(parts), axis=2)", "np.stack(list(parts), axis=2)")]),
    Answer(F, "last rank first", [("list(parts)", "list(parts[::-1])")]),
    Answer(F, "all parts, not joined", [("np.concatenate(list(parts), axis=2)", "parts")]),
    Answer(F, "interleaved", [("np.concatenate(list(parts), axis=2)", "parts.transpose(1, 2, 3, 0).reshape(*x.shape[:2], -1)")]),
    Answer(F, "a second collective for the shape", [("    mp_comm.Allgather(np", "    widths = np.empty(mp_size, np.int64)\n    mp_comm.Allgather(np.array([x.shape[2]]), widths)\n    mp_comm.Allgather(np")]),
    Answer(X, "cuts the rows", [("grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)", "grad_x")]),
    Answer(X, "sends a view", [("np.ascontiguousarray(blocks)", "blocks")]),
    Answer(X, "batch and length swapped", [("transpose(2, 0, 1, 3)", "transpose(2, 1, 0, 3)")]),
    Answer(X, "the mean", [("    return mine", "    return mine / mp_size")]),
    Answer(X, "every mp_size-th feature", [("mp_size, features // mp_size).transpose(2, 0, 1, 3)", "features // mp_size, mp_size).transpose(3, 0, 1, 2)")]),
    Answer(X, "float64", [("features // mp_size), grad_x.dtype)", "features // mp_size))")]),
    Answer(X, "its own slice, not added up", [("    mp_comm.Reduce_scatter_block(np.ascontiguousarray(blocks), mine)\n", "    mine[...] = blocks[mp_comm.Get_rank()]\n")]),
    Answer(X, "in the caller's array", [("    batch, length, features = grad_x.shape\n", "    batch, length, features = grad_x.shape\n    grad_x /= mp_size\n")]),
    Answer(C, "no all-reduce", [("group.all_reduce(grad_out @ weight.T)", "grad_out @ weight.T")]),
    Answer(C, "adds the slices of grad_out up", [("group.all_reduce(grad_out @ weight.T)", "group.all_reduce(grad_out) @ weight.T")]),
    Answer(C, "sends the weight's gradient too", [("x.flatten(0, 1).T @ grad_out.flatten(0, 1)", "group.all_reduce(x.flatten(0, 1).T @ grad_out.flatten(0, 1))")]),
    Answer(C, "bias summed over the batch alone", [("grad_out.sum((0, 1))", "grad_out.sum(0)")]),
    Answer(C, "no bias", [("x @ weight + bias", "x @ weight")]),
    Answer(C, "the mean of grad_x", [("group.all_reduce(grad_out @ weight.T)", "group.all_reduce(grad_out @ weight.T) / group.size")]),
    Answer(C, "weight's gradient transposed", [("x.flatten(0, 1).T @ grad_out.flatten(0, 1)", "grad_out.flatten(0, 1).T @ x.flatten(0, 1)")]),
    Answer(C, "collects the output", [("out = x @ weight + bias", "out = group.all_gather(x @ weight + bias, 2)")]),
    Answer(C, "a part of grad_x", [("group.all_reduce(grad_out @ weight.T)", "group.reduce_scatter(grad_out @ weight.T, 2)")]),
    Answer(C, "order of results", [("return grad_x, grad_weight, grad_bias", "return grad_weight, grad_x, grad_bias")]),
    Answer(R, "bias before the sum", [("group.all_reduce(x @ weight) + bias", "group.all_reduce(x @ weight + bias)")]),
    Answer(R, "no sum", [("group.all_reduce(x @ weight) + bias", "x @ weight + bias")]),
    Answer(R, "grad_x all-reduced", [("grad_out @ weight.T", "group.all_reduce(grad_out @ weight.T)")]),
    Answer(R, "bias's gradient divided", [("grad_out.sum((0, 1))", "grad_out.sum((0, 1)) / group.size")]),
    Answer(R, "bias's mean over samples", [("grad_out.sum((0, 1))", "grad_out.mean((0, 1))")]),
    Answer(R, "bias on rank 0 alone, after the sum", [("out = group.all_reduce(x @ weight) + bias", "out = group.all_reduce(x @ weight)\n    if group.rank == 0:\n        out = out + bias")]),
    Answer(R, "the mean of the products", [("group.all_reduce(x @ weight) + bias", "group.all_reduce(x @ weight) / group.size + bias")]),
    Answer(R, "collects", [("group.all_reduce(x @ weight) + bias", "group.all_gather(x @ weight, 2) + bias")]),
    Answer(R, "weight not transposed", [("grad_out @ weight.T", "grad_out @ weight")]),
    Answer(O, "f sends nothing back", [("else group.all_reduce(grad)\n", "else grad\n")]),
    Answer(O, "g sends back", [("if sequence_parallel else grad\n", "if sequence_parallel else group.all_reduce(grad)\n")]),
    Answer(O, "along the batch", [("group.all_gather(x, 1)", "group.all_gather(x, 0)"), ("group.reduce_scatter(x, 1)", "group.reduce_scatter(x, 0)"), ("group.reduce_scatter(grad, 1)", "group.reduce_scatter(grad, 0)"), ("group.all_gather(grad, 1)", "group.all_gather(grad, 0)")]),
    Answer(O, "f's backward keeps its own part", [("group.reduce_scatter(grad, 1)", "grad.chunk(group.size, 1)[group.rank]")]),
    Answer(O, "swapped", [("return F.apply, G.apply", "return G.apply, F.apply")]),
    Answer(O, "classes", [("return F.apply, G.apply", "return F, G")]),
    Answer(O, "all-reduce, then a part", [("group.reduce_scatter(x, 1)", "group.all_reduce(x).chunk(group.size, 1)[group.rank].contiguous()")]),
    Answer(O, "mean in f's backward", [("else group.all_reduce(grad)\n", "else group.all_reduce(grad) / group.size\n")]),
    Answer(O, "g's backward leaves the part", [("return group.all_gather(grad, 1) if sequence_parallel else grad", "return grad")]),
    Answer(S, "forward FLOPs alone", [("6 * 12", "2 * 12")]),
    Answer(S, "compute not shared", [("width**2 / tp / flops_per_s", "width**2 / flops_per_s")]),
    Answer(S, "forward's messages alone", [("communication = 4 * 2", "communication = 2 * 2")]),
    Answer(S, "upside down", [("communication / compute", "compute / communication")]),
    Answer(S, "numbers of 4 bytes", [("* 2 * width / busbw", "* 4 * width / busbw")]),
    Answer(S, "an all-reduce sends once", [("4 * 2 * (tp - 1) / tp", "4 * (tp - 1) / tp")]),
    Answer(S, "attention's parameters alone", [("6 * 12 * width", "6 * 4 * width")]),
    Answer(S, "share of the whole step", [("communication / compute", "communication / (compute + communication)")]),
    Answer(A, "one message each", [("    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])\n    mean = dp_group.all_reduce(vector) / dp_group.size\n    parts = mean.split([gradient.numel() for gradient in gradients])\n    return [part.reshape(old.shape) for part, old in zip(parts, gradients, strict=True)]", "    return [dp_group.all_reduce(gradient) / dp_group.size for gradient in gradients]")]),
    Answer(A, "sum", [(" / dp_group.size", "")]),
    Answer(A, "view of what has gaps", [("gradient.reshape(-1)", "gradient.view(-1)")]),
    Answer(A, "writes into the gradients", [("return [part.reshape(old.shape) for", "return [old.copy_(part.reshape(old.shape)) for")]),
    Answer(A, "divides by the number of gradients", [("dp_group.size", "len(gradients)")]),
    Answer(A, "flat parts", [("part.reshape(old.shape)", "part")]),
    Answer(A, "transposed before it is laid flat", [("gradient.reshape(-1)", "gradient.T.reshape(-1)")]),
    Answer(A, "sorted by size", [("gradient in gradients])\n    mean", "gradient in sorted(gradients, key=torch.Tensor.numel)])\n    mean")]),
    # Right answers, written differently.
    Answer(T, "one by one", [('shapes = dict.fromkeys(("fc_q", "fc_k", "fc_v", "fc_o, naive"), (whole, (width, part), slice_))', 'shapes = {name: (whole, (width, part), slice_) for name in ("fc_q", "fc_k", "fc_v")}\n    shapes["fc_o, naive"] = shapes["fc_q"]')], says=None),
    Answer(I, "keys are ranks", [("key=mp_idx", "key=rank"), ("key=dp_idx", "key=rank"), ("mp_idx, dp_idx = rank % mp_size, rank // mp_size", "dp_idx, mp_idx = divmod(rank, mp_size)")], says=None),
    Answer(D, "split by NumPy", [("    return x_train[mine], y_train[mine]", "    return np.split(x_train, dp_size)[dp_idx], np.split(y_train, dp_size)[dp_idx]"), ("    mine = slice", "    import numpy as np\n\n    mine = slice")], says=None),
    Answer(F, "transposes", [("np.concatenate(list(parts), axis=2)", "parts.transpose(1, 2, 0, 3).reshape(x.shape[0], x.shape[1], -1)")], says=None),
    Answer(X, "stacks the parts", [("grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)", "np.stack(np.split(grad_x, mp_size, axis=2))")], says=None),
    Answer(C, "einsum", [("x.flatten(0, 1).T @ grad_out.flatten(0, 1)", 'torch.einsum("bli,blo->io", x, grad_out)'), ("    ### BEGIN SOLUTION\n    out =", "    ### BEGIN SOLUTION\n    import torch\n\n    out =")], says=None),
    Answer(R, "a part of the bias each", [("group.all_reduce(x @ weight) + bias", "group.all_reduce(x @ weight + bias / group.size)")], says=None),
    Answer(O, "branches", [("return group.all_gather(x, 1) if sequence_parallel else x.view_as(x)", "if sequence_parallel:\n                return group.all_gather(x.contiguous(), dim=1)\n            return x.clone()")], says=None),
    Answer(S, "simplified", [("return communication / compute", "return 2 * (tp - 1) * flops_per_s / (9 * width * busbw)")], says=None),
    Answer(A, "divides first", [("gradient.reshape(-1) for", "(gradient / dp_group.size).flatten() for"), ("dp_group.all_reduce(vector) / dp_group.size", "dp_group.all_reduce(vector)")], says=None),
    Answer("parallel_cross_entropy", "no maximum", [('group.all_reduce(logits.amax(-1), "max")', "torch.zeros_like(logits[..., 0])")], source=CROSS),
    Answer("parallel_cross_entropy", "each rank its own maximum", [('group.all_reduce(logits.amax(-1), "max")', "logits.amax(-1)")], source=CROSS),
    Answer("parallel_cross_entropy", "maxima added up", [(', "max")', ")")], source=CROSS),
    Answer("parallel_cross_entropy", "sum of its own part", [("group.all_reduce(shifted.sum(-1))", "shifted.sum(-1)")], source=CROSS),
    Answer("parallel_cross_entropy", "the right logit of one rank", [("    right = group.all_reduce(right)\n", "")], source=CROSS),
    Answer("parallel_cross_entropy", "others contribute too", [(".squeeze(-1) * here", ".squeeze(-1)")], source=CROSS),
    Answer("parallel_cross_entropy", "gradient of the sum", [("grad / targets.numel()", "grad")], source=CROSS),
    Answer("parallel_cross_entropy", "mean over the batch alone", [("grad / targets.numel()", "grad / targets.shape[0]")], source=CROSS),
    Answer("parallel_cross_entropy", "less 1 on every rank", [("-here.to(grad.dtype)[..., None]", "-torch.ones_like(here, dtype=grad.dtype)[..., None]")], source=CROSS),
    Answer("parallel_cross_entropy", "maximum forgotten in the loss", [("total.log() + top - right", "total.log() - right")], source=CROSS),
    Answer("parallel_cross_entropy", "collects the logits", [("    part = logits.shape[-1]\n", "    part = logits.shape[-1]\n    group.all_gather(logits, 2)\n")], source=CROSS),
    Answer("parallel_cross_entropy", "from nothing", says=None, source=CROSS),
    Answer("parallel_cross_entropy", "in another order", [("(total.log() + top - right).mean()", "total.log().sub(right - top).mean()")], says=None, source=CROSS),
]
