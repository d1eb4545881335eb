"""Exercise 6 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "reduce_in_backward"
AGAIN = "        missing[number] = len(buckets[number])\n"
FLAT = "        flat = torch.cat([p.grad.reshape(-1) for p in buckets[number]]).to(mine.dtype) / size\n"
DROP = "        for p in buckets[number]:\n            p.grad = None\n"
PAD = "        flat = torch.nn.functional.pad(flat, (0, size * mine.numel() - flat.numel()))\n"
WORK = "        work = dist.reduce_scatter_tensor(mine, flat, group=group, async_op=True)\n"
KEEP = "        started.append((shards[number], mine, work))\n"
WAIT = "            work.wait()\n"
ADD = "shard.grad = mine if shard.grad is None else shard.grad + mine"
CLEAR = "        started.clear()\n"

BUGS: list = [
    (
        NAME,
        "always float32",
        [("torch.empty_like(shards[number])", "torch.empty(shards[number].numel())")],
        "may be bfloat16 or float64",
    ),
    (
        NAME,
        "a view of the whole gradient",
        [
            ("mine = torch.empty_like(shards[number])", "mine = shards[number]"),
            (WORK, "        mine = flat.chunk(size)[dist.get_rank(group)]\n" + WORK),
        ],
        r"reduce-scatter into torch\.empty_like\(shard\),",
    ),
    (
        NAME,
        "whole gradients kept in a list",
        [
            ("    started = []\n", "    started, kept = [], []\n"),
            (DROP, "        kept.append([p.grad for p in buckets[number]])\n" + DROP),
        ],
        "a list or a buffer of your own still holds",
    ),
    (
        NAME,
        "whole gradients kept in an iterator",
        [
            ("    started = []\n", "    started, kept = [], []\n"),
            (DROP, "        kept.append(iter([p.grad for p in buckets[number]]))\n" + DROP),
        ],
        "a list or a buffer of your own still holds",
    ),
    (
        NAME,
        "a buffer per bucket",
        [
            ("    started = []\n", "    started, flats = [], {}\n"),
            (WORK, "        flats[number] = flat\n" + WORK),
        ],
        "a list or a buffer of your own still holds",
    ),
    (
        NAME,
        "always the last shard",
        [("started.append((shards[number], ", "started.append((shards[-1], ")],
        "the received part has the size of its own",
    ),
    (
        NAME,
        "elements are counted",
        [("len(bucket) for", "sum(p.numel() for p in bucket) for")],
        "a bucket never filled, in the first pass or a",
    ),
    (
        NAME,
        "received into shard.grad",
        [
            ("    started = []\n", "    started = []\n    buffers = [torch.empty_like(s) for s in shards]\n"),
            ("torch.empty_like(shards[number])", "buffers[number]"),
        ],
        "the next pass receives into the tensor that is",
    ),
    (
        NAME,
        "padded with gradients",
        [
            (
                "torch.nn.functional.pad(flat, (0, size * mine.numel() - flat.numel()))",
                "torch.cat([flat, flat[: size * mine.numel() - flat.numel()]])",
            )
        ],
        "the padding after the last gradient must be",
    ),
    (NAME, "the sum", [(") / size\n", ")\n")], "this is the sum over the ranks: the division by"),
    (NAME, "divided twice", [(") / size\n", ") / size**2\n")], "divided by the number of ranks twice"),
    (NAME, "count not begun anew", [(AGAIN, "")], "a bucket is sent before all its gradients have"),
    (
        NAME,
        "count not begun anew, exact",
        [(AGAIN, ""), ("missing[number] > 0", "missing[number] != 0")],
        "a bucket never filled, in the first pass or a",
    ),
    (NAME, "whole gradients stay", [(DROP, "")], r"set p\.grad = None to release a gradient once it"),
    (
        NAME,
        "zeroed, not dropped",
        [("p.grad = None", "p.grad.zero_()")],
        r"set p\.grad = None to release a gradient once it",
    ),
    (
        NAME,
        "one gradient alone",
        [("        if missing[number] > 0:\n            return\n", "")],
        "a bucket is sent before all its gradients have",
    ),
    (
        NAME,
        "waited for in the hook",
        [(WORK, WORK + "        work.wait()\n")],
        r"call wait\(\) in finish\(\), because a wait in the",
    ),
    (NAME, "synchronous", [(", async_op=True)", ")"), (WAIT, "")], "async_op=True starts the collective without"),
    (
        NAME,
        "synchronous, waited for",
        [(", async_op=True)", ")")],
        "without it, the call itself waits",
    ),
    (NAME, "never waited", [(WAIT, "")], "is never waited for"),
    (NAME, "overwritten", [(ADD, "shard.grad = mine")], "only the last pass counts: each pass must add"),
    (NAME, "not forgotten", [(CLEAR, "")], r"finish\(\) adds the result of an earlier pass"),
    (
        NAME,
        "padding in front",
        [("(0, size * mine.numel() - flat.numel())", "(size * mine.numel() - flat.numel(), 0)")],
        "the zeros are in front, but belong after the",
    ),
    (NAME, "not padded", [(PAD, "")], "as large as all outputs together|equal"),
    (
        NAME,
        "all-reduce",
        [
            (
                WORK,
                "        work = dist.all_reduce(flat, group=group, async_op=True)\n"
                "        mine = flat.chunk(size)[dist.get_rank(group)]\n",
            )
        ],
        "an all-reduce gives every rank the whole,|you add shards padded with zeros, which sends",
    ),
    (
        NAME,
        "a call per gradient",
        [(KEEP, KEEP + "        dist.all_reduce(torch.zeros(1), group=group)\n")],
        "waits in backward",
    ),
    (
        NAME,
        "order of arrival",
        [("for p in buckets[number]]", "for p in reversed(buckets[number])]")],
        "the gradients are concatenated in order of",
    ),
    (
        NAME,
        "not reduced",
        [
            (
                WORK,
                "        mine.copy_(flat.chunk(size)[dist.get_rank(group)])\n"
                "        work = dist.barrier(group=group, async_op=True)\n",
            )
        ],
        "nothing is reduced",
    ),
    (NAME, "freed before it is read", [(FLAT + DROP, DROP + FLAT)], r"p\.grad = None runs before the gradient is"),
    (
        NAME,
        "freed on arrival",
        [("        missing[number] -= 1\n", "        parameter.grad = None\n        missing[number] -= 1\n")],
        r"p\.grad = None runs before the gradient is",
    ),
    (
        NAME,
        "one list for all buckets",
        [
            ("missing = [len(bucket) for bucket in buckets]", "missing = []"),
            (
                "        missing[number] -= 1\n        if missing[number] > 0:",
                "        missing.append(parameter)\n        if len(missing) < len(buckets[number]):",
            ),
            (AGAIN, "        missing.clear()\n"),
        ],
        "a bucket is sent before all its gradients have",
    ),
    (
        NAME,
        "the first-listed taken for the last to arrive",
        [
            (
                "        missing[number] -= 1\n        if missing[number] > 0:",
                "        if parameter is not buckets[number][0]:",
            )
        ],
        "expect any parameter to be the last",
    ),
    (
        NAME,
        "the weights are zeroed",
        [("p.grad = None", "p.grad = None\n            p.data.zero_()")],
        "p.data and p itself",
    ),
    (
        NAME,
        "averaged in bfloat16",
        [(").to(mine.dtype) / size", ") / size"), (WORK, "        flat = flat.to(mine.dtype)\n" + WORK)],
        "averaged in bfloat16",
    ),
    (
        NAME,
        "sent in bfloat16",
        [
            (").to(mine.dtype) / size", ") / size"),
            ("torch.empty_like(shards[number])", "torch.empty_like(shards[number], dtype=buckets[number][0].dtype)"),
        ],
        "here the shard's",
    ),
    (NAME, "changed under way", [(WORK, WORK + "        flat.zero_()\n")], "belongs to the collective"),
    (NAME, "not handed over", [(ADD, "mine += 0")], r"finish\(\) must store the result in \.grad"),
    (NAME, "added to the parameters", [(ADD, "shard.data += mine")], r"finish\(\) must store the result in \.grad"),
]

DIFFERENT: list = [
    (  # scratch memory of one bucket stays
        NAME,
        [
            ("    started = []\n", "    started, scratch = [], {}\n"),
            (WORK, "        scratch['last'] = flat\n" + WORK),
        ],
    ),
    (
        NAME,
        [
            (") / size\n", ")\n"),
            ("reduce_scatter_tensor(mine, flat, ", "reduce_scatter_tensor(mine, flat, dist.ReduceOp.AVG, "),
        ],
    ),
    (NAME, [(") / size\n", ")\n"), (WAIT, WAIT + "            mine /= size\n")]),
    (
        NAME,
        [
            (
                FLAT,
                "        flat = torch.cat([p.grad.flatten().to(mine.dtype) for p in buckets[number]])\n"
                "        flat /= size\n",
            ),
            (PAD, "        flat = torch.cat([flat, flat.new_zeros(-flat.numel() % size)])\n"),
        ],
    ),
    (NAME, [(ADD, "shard.grad = mine if shard.grad is None else shard.grad.add_(mine)")]),
    (
        NAME,
        [("missing[number] -= 1\n        if missing[number] > 0:", "if any(p.grad is None for p in buckets[number]):")],
    ),
]
