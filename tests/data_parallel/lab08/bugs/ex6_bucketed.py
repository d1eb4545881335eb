"""Exercise 6 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "bucketed"
ZERO = "                view.zero_()\n"
COPY = "                view.copy_(parameter.grad)\n"
VIEW = "            parameter.grad = view\n"
START = "        under_way.append(dist.all_reduce(bucket.flat, group=group, async_op=True))\n"
PAUSED = "        if not synchronize:\n            return\n"
WHILE = (
    "        while len(under_way) < len(buckets) and buckets[len(under_way)].missing == 0:\n"
    "            send(buckets[len(under_way)])\n"
)
FLUSH = "        for bucket in buckets[len(under_way) :]:\n            send(bucket)\n"
WAIT = "            work.wait()\n"
DIVIDE = "            bucket.flat /= dist.get_world_size(group)\n"
RESET = "            bucket.missing = len(bucket.parameters)\n"
CLEAR = "        under_way.clear()\n"

BUGS: list = [
    (NAME, "a sum", [(DIVIDE, "")], "the sum over the ranks, not the mean"),
    (
        NAME,
        "the mean twice",
        [("(bucket.flat, group=group,", "(bucket.flat, op=dist.ReduceOp.AVG, group=group,")],
        "the mean is taken twice",
    ),
    (NAME, "never flushed", [(FLUSH, "")], "finish.. has to send"),
    (
        NAME,
        "the last is left out",
        [("len(under_way) < len(buckets) and", "len(under_way) < len(buckets) - 1 and"), (FLUSH, "")],
        "the last bucket is never sent",
    ),
    (NAME, "wait forgotten", [(WAIT, "")], "wait"),
    (
        NAME,
        "divided before wait",
        [(WAIT + DIVIDE, DIVIDE + WAIT)],
        "under way: it was sent before it was full, or divided before wait",
    ),
    (NAME, "waits at once", [(START, START + "        under_way[-1].wait()\n")], "the hook calls wait"),
    (NAME, "not asynchronous", [(", async_op=True", ""), (WAIT, "")], "async_op=True is missing"),
    (NAME, "reduces in no_sync", [(PAUSED, "")], r"in no_sync\(\), backward only accumulates"),
    (
        NAME,
        "no_sync changes nothing",
        [("    def no_sync():\n        nonlocal synchronize\n", "    def no_sync():\n")],
        r"in no_sync\(\), backward only accumulates",
    ),
    (
        NAME,
        "no_sync stays",
        [("        finally:\n            synchronize = True\n", "        finally:\n            pass\n")],
        r"or sending is not switched on again after the block",
    ),
    (
        NAME,
        "any order",
        [
            (
                WHILE,
                (
                    "        bucket = bucket_of[parameter]\n        if bucket.missing == 0:\n        "
                    "    send(bucket)\n            sent.append(bucket)\n"
                ),
            ),
            (
                FLUSH,
                (
                    "        for bucket in buckets:\n            if bucket not in sent:\n            "
                    "    send(bucket)\n                sent.append(bucket)\n"
                ),
            ),
            (
                "        for bucket, work in zip(buckets, under_way, strict=True)",
                "        for bucket, work in zip(sent, under_way, strict=True)",
            ),
            (CLEAR, CLEAR + "        sent.clear()\n"),
            ("    def send(", "    sent = []\n\n    def send("),
        ],
        "all ranks have to send the buckets in the same order",
    ),
    (NAME, "stale view", [(ZERO, "                pass\n")], "the view still holds the mean of the previous step"),
    (
        NAME,
        "unused keeps None",
        [
            (
                "            if parameter.grad is None:\n" + ZERO + "            else:\n" + COPY + VIEW,
                "            if parameter.grad is None:\n"
                + ZERO
                + (
                    "            else:\n                view.copy_(parameter.grad)\n               "
                    " parameter.grad = view\n"
                ),
            )
        ],
        "is None",
    ),
    (NAME, "gradients not moved in", [(COPY, "                pass\n")], "got "),
    (NAME, "not views", [(VIEW, "")], "own gradient: it was not sent"),
    (NAME, "missing not set back", [(RESET, "")], "does not reset bucket.missing"),
    (
        NAME,
        "under_way not cleared",
        [(CLEAR, "")],
        "step 2(.|\n)*(finish.. does not clear under_way|does not reset bucket.missing)",
    ),
    (
        NAME,
        "sent at the first arrival",
        [(WHILE, WHILE.replace("missing == 0", "missing < len(buckets[len(under_way)].parameters)"))],
        "sent before it was full|got ",
    ),
    (NAME, "one at a time", [(WHILE, WHILE.replace("while len", "if len"))], "`while`, not `if`|too late"),
    (NAME, "all in finish", [(WHILE, "")], "sends all buckets in finish"),
    (
        NAME,
        "finish backwards",
        [("for bucket in buckets[len(under_way) :]:", "for bucket in buckets[len(under_way) :][::-1]:")],
        "in a different order than backward",
    ),
    (NAME, "all ranks divide", [("dist.get_world_size(group)", "dist.get_world_size()")], "without group"),
    (NAME, "group forgotten", [("group=group, ", "")], "group= is missing|group=group is missing"),
    (
        NAME,
        "counted in no_sync",
        [
            (
                PAUSED + "        bucket_of[parameter].missing -= 1\n",
                "        bucket_of[parameter].missing -= 1\n" + PAUSED,
            )
        ],
        r"arrivals in no_sync\(\) are counted",
    ),
    (NAME, "returned the other way", [("return finish, no_sync", "return no_sync, finish")], "in this order"),
    (
        NAME,
        "nonlocal forgotten in arrived",
        [
            (
                "        bucket_of[parameter].missing -= 1\n",
                "        bucket_of[parameter].missing -= 1\n        synchronize = True\n",
            )
        ],
        "nonlocal|makes a name",
    ),
    (NAME, "added to the view", [(COPY, "                view.add_(parameter.grad)\n")], "step 2|got "),
    (
        NAME,
        "an exception in no_sync",
        [
            (
                "        try:\n            yield\n        finally:\n            synchronize = True\n",
                "        yield\n        synchronize = True\n",
            )
        ],
        "after an exception(.|\n)*leaves sending off",
    ),
    (
        NAME,
        "no yield",
        [("        try:\n            yield\n        finally:\n            synchronize = True\n", "")],
        "has to reach exactly one `yield`",
    ),
    (
        NAME,
        "zeroed first",
        [
            (
                "            if parameter.grad is None:\n" + ZERO + "            else:\n" + COPY,
                "            if parameter.grad is not None:\n" + COPY,
            ),
            ("        for parameter, view in zip(", "        bucket.flat.zero_()\n        for parameter, view in zip("),
        ],
        "step 3(.|\n)*set to 0 before it was read",
    ),
    (
        NAME,
        "views once",
        [
            (
                "            if parameter.grad is None:\n" + ZERO + "            else:\n" + COPY + VIEW,
                "            pass\n",
            ),
            (
                "    for parameter in bucket_of:\n",
                (
                    "    for bucket in buckets:\n        for parameter, view in zip(bucket.parameters, bucket.views):\n"
                    "            parameter.grad = view\n    for parameter in bucket_of:\n"
                ),
            ),
        ],
        "step 2(.|\n)*view is set only once; set it in each step",
    ),
    (
        NAME,
        "not None is arrived",
        [
            ("        bucket_of[parameter].missing -= 1\n", ""),
            (
                "buckets[len(under_way)].missing == 0",
                "all(p.grad is not None for p in buckets[len(under_way)].parameters)",
            ),
        ],
        "step 3(.|\n)*may be from an earlier step",
    ),
    (
        NAME,
        "all again in finish",
        [("in buckets[len(under_way) :]", "in buckets"), (", strict=True):\n" + WAIT, "):\n" + WAIT)],
        "a bucket is sent twice",
    ),
    (
        NAME,
        "divided into new ones",
        [(DIVIDE, "            for p in bucket.parameters:\n                p.grad = p.grad / group.size()\n")],
        "and so does p.grad = p.grad / n",
    ),
]
DIFFERENT: list = [
    (NAME, [(START, "        bucket.flat /= group.size()\n" + START), (DIVIDE, "")]),
    (
        NAME,
        [
            (
                "            if parameter.grad is None:\n" + ZERO + "            else:\n" + COPY + VIEW,
                (
                    "            if parameter.grad is not view:\n                view[...] = 0 if "
                    "parameter.grad is None else parameter.grad\n                parameter.grad = view\n"
                ),
            ),
            ("    def send(", "    started = 0\n\n    def send("),
            (
                WHILE,
                (
                    "        nonlocal started\n        while started < len(buckets) and not "
                    "buckets[started].missing:\n            send(buckets[started])\n            started += 1\n"
                ),
            ),
            (
                FLUSH,
                (
                    "        nonlocal started\n        while started < len(buckets):\n            "
                    "send(buckets[started])\n            started += 1\n        started = 0\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (
                PAUSED + "        bucket_of[parameter].missing -= 1\n" + WHILE,
                (
                    "        if synchronize:\n            bucket_of[parameter].missing -= 1\n        "
                    "    for bucket in buckets[len(under_way) :]:\n                if "
                    "bucket.missing > 0:\n                    break\n                send(bucket)\n"
                ),
            ),
            (WAIT + DIVIDE + RESET, WAIT + "            bucket.flat.mul_(1 / dist.get_world_size(group))\n" + RESET),
        ],
    ),
    (
        NAME,
        [
            (VIEW, ""),
            (
                RESET,
                RESET
                + "            for p, view in zip(bucket.parameters, bucket.views):\n                p.grad = view\n",
            ),
        ],
    ),
]
